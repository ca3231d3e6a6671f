"""Load the recognizer that computed the image vectors and log-odds of an index."""

import os
from pathlib import Path

from surelabel.errors import InputError
from surelabel.recognizer.index_calibration import restore_index_calibration
from surelabel.recognizer.model_resolution import PATH_PREFIXES, resolve_model
from surelabel.recognizer.recognizer import Recognizer
from surelabel.retrieval import Index


def recognizer_of_index(
    index: Index, model: str | None = None, *, device: str = "cpu"
) -> Recognizer:
    """Load the recognizer whose image vectors an index stores.

    Args:
        index: Index of images.
        model: Saved recognizer or name of an encoder. If None, the name that the index records is
            used.
        device: PyTorch device of the encoder.

    Raises:
        InputError: If the index records no recognizer and ``model`` is None, if the recorded folder
            does not exist, or if the recognizer is not that of the index.
        UnknownName, DataError: If the recognizer cannot be loaded.
    """
    recorded = index.recognizer
    labels = None if recorded is None else recorded.labels
    if model is None:
        if recorded is None:
            raise InputError(
                f"The search needs the recognizer of {index.folder}, which the index does not "
                "record. Give --model, or run `surelabel index` with --model once."
            )
        model = recorded.model
        if _is_missing_path(model):
            raise InputError(
                f"The recognizer of {index.folder} must be in {model}; the folder does not exist. "
                "Give the new folder of the recognizer with --model."
            )
    recognizer = resolve_model(model, labels, default_names=index.names, device=device)
    restore_index_calibration(index, recognizer)
    check_recognizer_of_index(index, recognizer)
    return recognizer


def check_recognizer_of_index(index: Index, recognizer: Recognizer) -> None:
    """Check that the image vectors of an index come from a recognizer.

    Raises:
        InputError: If the fingerprints differ.
    """
    if index.model != recognizer.fingerprint:
        recorded = index.recognizer
        remedy = "" if recorded is None else f", or leave out --model to use {recorded.model}"
        raise InputError(
            f"The index {index.folder} contains image vectors of the recognizer {index.model}; got "
            f"the recognizer {recognizer.fingerprint}. Give the recognizer of the index with "
            f"--model{remedy}. Or build the index again."
        )


def _is_missing_path(model: str) -> bool:
    """Return whether a recorded model is an absolute path that does not exist."""
    prefix, colon, path = model.partition(":")
    path = path if colon and prefix in PATH_PREFIXES else model
    return os.path.isabs(path) and not Path(path).exists()
