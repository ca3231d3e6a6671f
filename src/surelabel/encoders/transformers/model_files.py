"""Find the files of a transformers model in a folder or the hub cache, or download the files."""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

from surelabel.encoders.loading.hub_files import (
    cached_hub_file,
    cached_or_downloaded_hub_file,
    cached_or_downloaded_hub_tokenizer,
    optional_hub_file,
)
from surelabel.encoders.loading.licenses import MODEL_CARD_FILE
from surelabel.encoders.open_clip.architecture_settings import HUB_NAME
from surelabel.encoders.open_clip.hugging_face_texts import TOKENIZER_FILES, VOCABULARY_FILES
from surelabel.encoders.transformers.image_processor import PROCESSOR_FILES
from surelabel.encoders.transformers.model import WEIGHTS_FILE
from surelabel.encoders.transformers.model_config import CONFIG_FILE
from surelabel.errors import DataError, MissingPart
from surelabel.file_readers import quote_of_file

PREFIX = "transformers:"


class TransformersModelFiles(NamedTuple):
    """Paths of the files of a model.

    Attributes:
        config: Configuration of the model.
        weights: Weights in safetensors.
        image_processor: Settings of the image processor.
        tokenizer_folder: Folder of the tokenizer.
        model_card: Model card, or None if the model has no model card.
    """

    config: Path
    weights: Path
    image_processor: Path
    tokenizer_folder: Path
    model_card: Path | None


def check_transformers_package(name: str) -> None:
    """Check that transformers is installed.

    Raises:
        MissingPart: If transformers is not installed.
    """
    if importlib.util.find_spec("transformers") is None:
        raise MissingPart(
            f"{name} needs the package transformers, which is not installed. Run pip install "
            "'surelabel[texts]'."
        )


def transformers_model_files(source: str) -> TransformersModelFiles:
    """Return the files of a model in a folder, or of a repository on the Hugging Face hub.

    Args:
        source: Path of a folder, or name of a repository, ``owner/name``.

    Raises:
        DataError: If a file is missing, or cannot be downloaded.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return transformers_folder_files(folder)
    name = f"{PREFIX}{source}"
    if not re.fullmatch(HUB_NAME, source) or "/" not in source:
        raise DataError(
            f"{PREFIX} must be followed by an existing folder or a repository of the hub, "
            f"OWNER/NAME; got {quote_of_file(source)}. Check the path."
        )
    remedy = (
        f"There is no folder {source}. If you are offline, copy all these files into a folder, and "
        f"use {PREFIX}FOLDER: {CONFIG_FILE}, {WEIGHTS_FILE}, {' or '.join(PROCESSOR_FILES)}, and, "
        f"if they exist, {', '.join(TOKENIZER_FILES)}."
    )
    is_cached = cached_hub_file(source, [WEIGHTS_FILE])
    config, weights, processor = (
        cached_or_downloaded_hub_file(source, *files, encoder_name=name, remedy=remedy)
        for files in ((CONFIG_FILE,), (WEIGHTS_FILE,), PROCESSOR_FILES)
    )
    tokenizer = cached_or_downloaded_hub_tokenizer(
        source,
        required=VOCABULARY_FILES,
        optional=TOKENIZER_FILES,
        encoder_name=name,
        remedy=remedy,
    )
    model_card = cached_hub_file(source, [MODEL_CARD_FILE])
    if not is_cached and not model_card:
        model_card = optional_hub_file(source, MODEL_CARD_FILE)
    return TransformersModelFiles(config, weights, processor, tokenizer, model_card)


def transformers_folder_files(folder: Path) -> TransformersModelFiles:
    """Return the files of a model in a folder.

    Raises:
        DataError: If a file is missing.
    """
    needed = {  # description of a file: its names
        CONFIG_FILE: (CONFIG_FILE,),
        WEIGHTS_FILE: (WEIGHTS_FILE,),
        " or ".join(PROCESSOR_FILES): PROCESSOR_FILES,
        f"one of {', '.join(VOCABULARY_FILES)}": VOCABULARY_FILES,
    }
    paths = {text: _first_existing_file(folder, files) for text, files in needed.items()}
    missing = [text for text, path in paths.items() if path is None]
    if missing:
        raise DataError(
            f"{folder} must contain the files of a model of transformers. Missing: "
            f"{'; '.join(missing)}. Copy the files into the folder. Weights in pickle files or in "
            "several files are not supported; save the weights as one file with save_pretrained."
        )
    config, weights, processor, vocabulary = (path for path in paths.values() if path)
    model_card = _first_existing_file(folder, (MODEL_CARD_FILE,))
    return TransformersModelFiles(config, weights, processor, vocabulary.parent, model_card)


def _first_existing_file(folder: Path, files: tuple[str, ...]) -> Path | None:
    return next((folder / file for file in files if (folder / file).is_file()), None)
