"""Find the files of an open_clip checkpoint in a folder or the hub cache, or download the files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel.encoders.loading.hub_files import (
    cached_hub_file,
    cached_or_downloaded_hub_file,
    cached_or_downloaded_hub_tokenizer,
    optional_hub_file,
)
from surelabel.encoders.loading.licenses import (
    MODEL_CARD_FILE,
    model_card_license,
    repository_license,
)
from surelabel.encoders.open_clip.encoder import CONFIG_FILE, WEIGHTS_FILE
from surelabel.encoders.open_clip.hugging_face_texts import (
    HUB_TEXT_CONFIG_FILE,
    TEXT_CONFIG_FILE,
    TOKENIZER_FILES,
    VOCABULARY_FILES,
    check_hugging_face_package,
    check_sentencepiece_package,
)
from surelabel.errors import DataError
from surelabel.records import EncoderLicense

WEIGHTS_FILES = (  # in the order of preference; a pickle is read with weights_only=True
    WEIGHTS_FILE,
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "pytorch_model.safetensors",
    "pytorch_model.bin",
)
TOKENIZER_FILE_LIST = (
    f"one of {', '.join(VOCABULARY_FILES)}, and, if they exist, "
    f"{', '.join(sorted({*TOKENIZER_FILES} - {*VOCABULARY_FILES}))}"
)


def offline_remedy(
    repository: str,
    text_cfg: Mapping[str, Any] | None,
    weights: Sequence[str] = WEIGHTS_FILES,
) -> str:
    """Return sentences that list all files that a checkpoint needs without a network connection.

    Args:
        repository: Name of the repository of the checkpoint on the hub.
        text_cfg: Settings of the text tower. If None, the settings are unknown, because the
            configuration is not available.
        weights: Names of the weights file, in the order of preference. The first three are listed.
    """
    files = [f"{CONFIG_FILE} and {' or '.join(weights[:3])} of {repository}"]
    if text_cfg is None:
        files.append(
            f"the files of the tokenizer, if {CONFIG_FILE} contains hf_tokenizer_name "
            f"({TOKENIZER_FILE_LIST})"
        )
    elif text_cfg.get("hf_tokenizer_name"):
        files.append(f"the tokenizer of {text_cfg['hf_tokenizer_name']} ({TOKENIZER_FILE_LIST})")
    if text_cfg and text_cfg.get("hf_model_name"):
        files.append(f"{HUB_TEXT_CONFIG_FILE} of {text_cfg['hf_model_name']} as {TEXT_CONFIG_FILE}")
    return (
        "If you are offline, copy all these files into a folder, and use local-dir:FOLDER: "
        f"{'; '.join(files)}."
    )


def checkpoint_folder_weights(folder: Path) -> Path:
    """Return the weights file in the folder of a checkpoint.

    Raises:
        DataError: If the configuration or the weights are missing.
    """
    weights = next((folder / file for file in WEIGHTS_FILES if (folder / file).is_file()), None)
    missing = [CONFIG_FILE] if not (folder / CONFIG_FILE).is_file() else []
    missing += [] if weights else [" or ".join(WEIGHTS_FILES)]
    if missing or weights is None:
        raise DataError(
            f"{folder} must contain {CONFIG_FILE} and {WEIGHTS_FILE}. Missing: "
            f"{'; '.join(missing)}. Copy the files of the model into the folder."
        )
    return weights


def checkpoint_folder_tokenizer(folder: Path, text_cfg: Mapping[str, Any]) -> Path:
    """Return the folder of the tokenizer of a checkpoint in a folder, without a network connection.

    Args:
        folder: Folder of the checkpoint.
        text_cfg: Checked settings of the text tower, the ``text_cfg`` of open_clip.

    Returns:
        The folder of the checkpoint, or a folder in the cache of the hub. If the text tower uses
        the tokenizer of CLIP, the folder of the checkpoint is returned.

    Raises:
        DataError: If the tokenizer is in neither of the folders.
    """
    repository = text_cfg.get("hf_tokenizer_name")
    if not repository or any((folder / file).exists() for file in VOCABULARY_FILES):
        return folder
    cached = cached_hub_file(repository, VOCABULARY_FILES)
    if cached is None:
        raise DataError(
            f"{folder} must contain the tokenizer of {repository}; the tokenizer is missing. "
            f"Copy these files of {repository} from the hub to the folder: {TOKENIZER_FILE_LIST}."
        )
    return cached.parent


def downloaded_text_files(
    name: str, text_cfg: Mapping[str, Any], *, remedy: str
) -> tuple[Path | None, Path | None]:
    """Return the files of tokenizer and text tower that a checkpoint names on the hub.

    The files are downloaded before the weights, because the files are smaller.

    Args:
        name: Model name of the encoder, for error messages.
        text_cfg: Checked settings of the text tower, the ``text_cfg`` of open_clip.
        remedy: Last sentences of the error messages if a file cannot be downloaded.

    Returns:
        The folder of the tokenizer, and the configuration of the text tower. A path that the
        checkpoint does not need is None.

    Raises:
        MissingPart: If transformers or sentencepiece is needed and not installed.
        DataError: If a file cannot be downloaded.
    """
    check_hugging_face_package(name, text_cfg)
    folder = config = None
    if text_cfg.get("hf_tokenizer_name"):
        folder = cached_or_downloaded_hub_tokenizer(
            text_cfg["hf_tokenizer_name"],
            required=VOCABULARY_FILES,
            optional=TOKENIZER_FILES,
            encoder_name=name,
            remedy=remedy,
        )
        check_sentencepiece_package(name, folder)
    if text_cfg.get("hf_model_name"):
        config = cached_or_downloaded_hub_file(
            text_cfg["hf_model_name"], HUB_TEXT_CONFIG_FILE, encoder_name=name, remedy=remedy
        )
    return folder, config


def hub_checkpoint_license(repository: str, *, can_download: bool) -> EncoderLicense:
    """Return the license in the model card of a repository, or the license in ``PUBLISHERS``.

    Args:
        repository: Name of the repository of the weights on the hub.
        can_download: If False, only a model card in the cache is read.
    """
    card = cached_hub_file(repository, [MODEL_CARD_FILE])
    if card is None and can_download:
        card = optional_hub_file(repository, MODEL_CARD_FILE)
    license = model_card_license(card, f"the model card of {repository}")
    return license if license.name else repository_license(repository)
