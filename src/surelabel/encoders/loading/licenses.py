"""Find the licenses of encoder weights that have a name in open_clip or a model card.

A model card is a file ``README.md`` that begins with metadata between two lines ``---``, as on the
Hugging Face hub.
"""

import re
from pathlib import Path

from open_clip.pretrained import get_pretrained_cfg, list_pretrained

from surelabel.file_readers import open_regular_file
from surelabel.records import EncoderLicense

MODEL_CARD_FILE = "README.md"
METADATA_LIMIT = 2**16  # bytes of a model card that can contain metadata
PUBLISHERS: dict[str, tuple[str, str]] = {  # pattern of a repository: license, its source
    r"laion/.*": ("mit", "the model cards of laion"),
    r"timm/.*\.(openai|yfcc15m|cc12m)": ("mit", "OpenAI CLIP and open_clip on GitHub"),
    r"timm/.*\.laion.*": ("mit", "open_clip on GitHub"),
    r"timm/eva.*": ("mit", "timm"),
    r"timm/.*\.metaclip.*": ("cc-by-nc-4.0", "timm"),
    r"timm/ViT-.*-SigLIP.*": ("apache-2.0", "timm"),
    r"timm/PE-Core-.*": ("apache-2.0", "timm"),
    r"(timm|apple)/MobileCLIP.*": ("apple-amlr", "timm"),
    r"apple/DFN.*": ("apple-ascl", "timm"),
    r"jienengchen/ViTamin-.*": ("mit", "timm"),
}


def pretrained_licenses() -> dict[str, EncoderLicense]:
    """Return the license of each ``ARCHITECTURE/PRETRAINED`` of open_clip, by model name."""
    return {
        f"{architecture}/{tag}": repository_license(_repository(architecture, tag))
        for architecture, tag in list_pretrained()
    }


def repository_license(repository: str) -> EncoderLicense:
    """Return the license of a repository of the hub whose weights have a name in open_clip.

    For other repositories, the license is unknown.

    Args:
        repository: Name of the repository, ``owner/name``.
    """
    if repository not in {_repository(*names) for names in list_pretrained()}:
        return EncoderLicense()
    for pattern, (name, source) in PUBLISHERS.items():
        if re.fullmatch(pattern, repository):
            return EncoderLicense(name, source)
    return EncoderLicense()


def _repository(architecture: str, tag: str) -> str:
    repository: str = get_pretrained_cfg(architecture, tag)["hf_hub"].rpartition("/")[0]
    return repository


def model_card_license(file: Path | None, source: str) -> EncoderLicense:
    """Return the license in the metadata of a model card.

    If the license is ``other``, the field ``license_name`` is used. A name with characters other
    than letters, digits, dots, hyphens and underscores is unknown.

    Args:
        file: Model card. If it is None or does not exist, the license is unknown.
        source: Description of the model card, such as ``the model card of owner/name``.
    """
    metadata = _model_card_metadata(file) if file and file.is_file() else {}
    name = metadata.get("license", "")
    if name == "other":
        name = metadata.get("license_name", name)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,60}", name):
        return EncoderLicense()
    stored_source = metadata.get("license_source", "")
    if re.fullmatch(r"[A-Za-z0-9._/, -]{1,250}", stored_source):
        source = stored_source
    return EncoderLicense(name.lower(), source)


def _model_card_metadata(file: Path) -> dict[str, str]:
    """Return the metadata of a model card as strings; the value of a list is its first item."""
    with open_regular_file(file) as stream:
        lines = stream.read(METADATA_LIMIT).decode("utf-8", errors="replace").splitlines()
    metadata: dict[str, str] = {}
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        return metadata
    key = ""
    for line in lines[1:]:
        if line.strip() == "---":
            break
        if line.startswith(("-", " ")):  # an item of a list, of which the first item is used
            metadata[key] = metadata.get(key) or line.strip(" -\"'")
        else:
            key, _, value = line.partition(":")
            metadata[key] = value.strip(" \"'")
    return metadata


def write_encoder_model_card(folder: Path, name: str, license: EncoderLicense) -> None:
    """Write the model card of a saved encoder, with the license if the license is known.

    Args:
        folder: Folder of the saved encoder.
        name: Model name of the encoder.
        license: License of the weights.
    """
    metadata = ""
    if license.name:
        metadata = f"---\nlicense: {license.name}\nlicense_source: {license.source}\n---\n\n"
    (folder / MODEL_CARD_FILE).write_text(
        f"{metadata}# {name}\n\nLicense of the weights: {license}.\n", encoding="utf-8"
    )
