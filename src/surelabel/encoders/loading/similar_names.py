"""Suggest names of encoders for names of other libraries, such as ``google/siglip2-…``."""

import re

import open_clip
from open_clip.pretrained import get_pretrained_cfg, list_pretrained

SIGLIP = re.compile(
    r"google/siglip(?P<version>2?)-(?P<size>base|large|so400m|giant-opt)-patch(?P<patch>\d+)-"
    r"(?P<side>\d+|naflex)(?P<multilingual>-multilingual|-i18n)?"
)
SIGLIP_SIZES = {"base": "B", "large": "L", "so400m": "SO400M", "giant-opt": "gopt"}
ORIGINALS = {  # repository of the publisher: the same weights in open_clip
    "apple/MobileCLIP2-B": "MobileCLIP2-B/dfndr2b",
    "apple/MobileCLIP2-L-14": "MobileCLIP2-L-14/dfndr2b",
    "apple/MobileCLIP2-S0": "MobileCLIP2-S0/dfndr2b",
    "apple/MobileCLIP2-S2": "MobileCLIP2-S2/dfndr2b",
    "apple/MobileCLIP2-S3": "MobileCLIP2-S3/dfndr2b",
    "apple/MobileCLIP2-S4": "MobileCLIP2-S4/dfndr2b",
    "facebook/PE-Core-B16-224": "PE-Core-B-16/meta",
    "facebook/PE-Core-G14-448": "PE-Core-bigG-14-448/meta",
    "facebook/PE-Core-L14-336": "PE-Core-L-14-336/meta",
    "facebook/PE-Core-S16-384": "PE-Core-S-16-384/meta",
    "facebook/PE-Core-T16-384": "PE-Core-T-16-384/meta",
    "facebook/metaclip-2-worldwide-giant": "ViT-bigG-14-worldwide/metaclip2_worldwide",
    "facebook/metaclip-2-worldwide-giant-378": "ViT-bigG-14-worldwide-378/metaclip2_worldwide",
    "facebook/metaclip-2-worldwide-huge-378": "ViT-H-14-worldwide-378/metaclip2_worldwide",
    "facebook/metaclip-2-worldwide-huge-quickgelu": "ViT-H-14-worldwide/metaclip2_worldwide",
}
OPENAI = re.compile(r"openai/clip-vit-(?P<size>base|large)-patch(?P<patch>\d+)(?P<side>-336)?")


def open_clip_name_hint(repository: str) -> str:
    """Return a sentence with the model name for a repository of the hub, or an empty string.

    The repositories of SigLIP, SigLIP 2 and CLIP in the format of transformers are translated to
    the same weights in open_clip. If open_clip lacks these weights, the sentence names the most
    similar weights. For TIPSv2 and NaFlex models, the sentence names the prefix ``transformers:``.

    Args:
        repository: Name of a repository on the hub, such as ``google/siglip2-base-patch16-224``.

    Example:
        >>> open_clip_name_hint("google/siglip2-base-patch16-224")
        'The same weights are available as ViT-B-16-SigLIP2/webli or hf-hub:timm/ViT-B-16-SigLIP2. '
        >>> open_clip_name_hint("owner/model")
        ''
    """
    names = {**_pretrained_names_by_repository(), **ORIGINALS}
    name = names.get(repository, "")
    if re.fullmatch(r"google/tipsv2-\w+", repository):
        return f"Load TIPSv2 models with transformers:{repository}. "
    if match := SIGLIP.fullmatch(repository):
        if match["side"] == "naflex":
            return f"Load NaFlex models with transformers:{repository}. "
        name = f"{_siglip_architecture(match)}/webli"
    elif match := OPENAI.fullmatch(repository):
        size = {"base": "B", "large": "L"}[match["size"]]
        name = f"ViT-{size}-{match['patch']}{match['side'] or ''}/openai"
    architecture, _, tag = name.partition("/")
    cfg = get_pretrained_cfg(architecture, tag)
    if cfg:
        hub = cfg["hf_hub"].rpartition("/")[0]
        return f"The same weights are available as {name} or hf-hub:{hub}. "
    similar = [
        known for known in open_clip.list_models() if name and known.startswith(architecture)
    ]
    return f"The most similar weights are {similar[0]}/{tag}. " if similar else ""


def _siglip_architecture(match: re.Match[str]) -> str:
    """Return the open_clip name of a SigLIP architecture from the parts of a transformers name."""
    size, patch, side = SIGLIP_SIZES[match["size"]], match["patch"], match["side"]
    if (match["version"], size, patch, side) == ("2", "SO400M", "14", "384"):
        side = "378"  # 27 patches of 14 pixels
    language = "-i18n" if match["multilingual"] else ""
    suffix = "" if side == "224" else f"-{side}"
    return f"ViT-{size}-{patch}-SigLIP{match['version']}{language}{suffix}"


def _pretrained_names_by_repository() -> dict[str, str]:
    """Return the first ``ARCHITECTURE/PRETRAINED`` of open_clip for each repository."""
    names: dict[str, str] = {}
    for architecture, tag in list_pretrained():
        repository = get_pretrained_cfg(architecture, tag)["hf_hub"].rpartition("/")[0]
        names.setdefault(repository, f"{architecture}/{tag}")
    return names
