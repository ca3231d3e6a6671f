"""Check paths of saved and exported recognizers, without an import of torch or of an encoder."""

import json
from contextlib import suppress
from pathlib import Path

from surelabel.errors import DataError

ENCODER_MANIFEST_PATH = Path("encoder", "surelabel_encoder.json")  # in a saved recognizer
EXPORTED_SUFFIXES = (".onnx", ".xml", ".pt2")  # of files that `surelabel export` writes
ENCODER_FILES = ("open_clip_config.json", "surelabel_encoder.json")  # in an encoder


def check_saved_recognizer_folder(folder: str | Path, *, checkpoint: Path | None = None) -> None:
    """Check that a folder is new, empty or a saved recognizer, without changing the folder.

    Args:
        folder: Folder for the recognizer.
        checkpoint: Checkpoint file of the fit of the recognizer. The folder may contain this file
            and files whose paths begin with its path, such as the checkpoints of folds.

    Raises:
        DataError: If the folder contains other files, or is a file.
    """
    folder = Path(folder)
    is_replaceable = folder.is_dir() and (
        (folder / "about.json").exists()
        or all(
            checkpoint and str(file.resolve()).startswith(str(checkpoint.resolve()))
            for file in folder.iterdir()
        )
    )
    if folder.exists() and not is_replaceable:
        actual = "contains other files" if folder.is_dir() else "is a file"
        raise DataError(
            f"The output folder must be new, empty or a saved recognizer; {folder} {actual}. Give "
            "another folder, or delete the existing path first."
        )


def check_folder_is_not_encoder(folder: str | Path) -> None:
    """Check that a folder does not contain an encoder in place of a saved recognizer.

    Args:
        folder: Folder that is given as the path of a saved recognizer.

    Raises:
        DataError: If the folder is a checkpoint of open_clip or a saved encoder.
    """
    if any((Path(folder) / name).is_file() for name in ENCODER_FILES):
        raise DataError(
            f"{folder} contains an encoder, not a saved recognizer. Give local-dir:{folder} to use "
            "the encoder."
        )


def score_kind_of_recognizer_folder(folder: str | Path) -> str | None:
    """Return the kind of precomputed scores of a saved recognizer, such as ``logits``.

    Args:
        folder: Path of a folder, or name of an encoder.

    Returns:
        The kind, or None if the folder contains no recognizer of precomputed scores.
    """
    with suppress(OSError, ValueError):
        manifest = json.loads((Path(folder) / ENCODER_MANIFEST_PATH).read_text(encoding="utf-8"))
        kind = manifest.get("scores") if isinstance(manifest, dict) else None
        return kind if isinstance(kind, str) else None
    return None


def exported_file_of_model(model: str) -> Path | None:
    """Return the path in a model argument that is an exported file by its suffix, or None.

    The path need not exist. Model names with a prefix, such as ``onnx:FILE``, are not paths.

    Args:
        model: Folder of a saved recognizer, name of an encoder, or exported file.

    Example:
        >>> exported_file_of_model("tagger.onnx")
        PosixPath('tagger.onnx')
        >>> exported_file_of_model("onnx:tagger.onnx")
    """
    path = Path(model).expanduser()
    if path.suffix.lower() not in EXPORTED_SUFFIXES:
        return None
    return path if path.is_file() or ":" not in model else None


def is_recognizer_path(model: str) -> bool:
    """Return whether a model argument is a folder or an exported file, and no name of an encoder.

    Args:
        model: Folder of a saved recognizer, name of an encoder, or exported file.
    """
    return Path(model).is_dir() or exported_file_of_model(model) is not None
