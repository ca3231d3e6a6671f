"""Check the calibration for an index, and record the recognizer and its calibration."""

from typing import Any

from surelabel.errors import NotFitted
from surelabel.recognizer.calibration_record import restore_calibration_record
from surelabel.recognizer.fingerprints import recognizer_fingerprint
from surelabel.recognizer.recognizer import Recognizer
from surelabel.retrieval import Index, IndexRecognizer


def check_index_calibration(recognizer: Recognizer) -> None:
    """Check that a recognizer predicts log-odds, before any image is read for an index.

    Raises:
        NotFitted: If the recognizer is not calibrated, and its scores are not log-odds.
    """
    if recognizer.calibrated_on is None:
        raise NotFitted(
            f"An index needs probabilities to combine several labels; {recognizer.encoder.name} "
            f"with {recognizer.run.method.name} is not calibrated. Calibrate the recognizer on "
            "these images without labels (--calibrate-unlabelled; the result is not verified). Or "
            "run `surelabel calibrate MODEL DATASET --out FOLDER` on annotated images, and give "
            "FOLDER as the model."
        )


def index_calibration_state(recognizer: Recognizer) -> dict[str, Any] | None:
    """Return the calibration that an index records, as a JSON object.

    Only a calibration on images without labels is recorded, because the model argument may be an
    encoder without calibration. For other calibrations, return None.
    """
    calibration = recognizer.calibration
    return None if calibration is None or calibration.uses_labels else calibration.state()


def recognizer_record_of_index(recognizer: Recognizer, model: str) -> IndexRecognizer:
    """Return the record of the recognizer that computed the image vectors and scores of an index.

    Args:
        recognizer: Recognizer of the index.
        model: Absolute path of a saved recognizer, or name of an encoder.
    """
    return IndexRecognizer(
        model,
        tuple(recognizer.names_with_aliases),
        index_calibration_state(recognizer),
        recognizer.encoder.fingerprint,
        recognizer_fingerprint(
            recognizer.run,
            recognizer.names_with_aliases,
            recognizer.encoder,
            recognizer.method,
            recognizer.link,
            None,
        ),
    )


def restore_index_calibration(index: Index, recognizer: Recognizer) -> bool:
    """Give a recognizer without calibration the calibration that an index records.

    Args:
        index: Index of images.
        recognizer: Recognizer of the index, which may be changed.

    Returns:
        True if the recognizer now has the recorded calibration.

    Raises:
        DataError: If the recorded calibration is invalid.
    """
    recorded = index.recognizer
    if recorded is None or recorded.calibration is None or recognizer.calibration is not None:
        return False
    recognizer.calibration = restore_calibration_record(recorded.calibration)
    return True
