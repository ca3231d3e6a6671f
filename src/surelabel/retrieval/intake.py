"""What predictions must be to enter an index."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError, NotFitted
from surelabel.records import LOGIT_LIMIT, Predictions
from surelabel.retrieval.contents import Contents
from surelabel.retrieval.shards import Batch
from surelabel.retrieval.stamps import stamped, whole


def new_contents(predictions: Predictions) -> Contents:
    """The contents of an index that has no pictures yet.

    Raises:
        NotFitted: nothing calibrated the predictions.
        InputError: there are no names, one is empty, or one comes twice.
    """
    if predictions.logits is None or predictions.calibration is None:
        raise NotFitted(
            "An index needs calibrated log-odds, so that several labels can be weighed together. "
            "These predictions have none: calibrate the recognizer (`surelabel calibrate`) and "
            "predict again."
        )
    names = tuple(predictions.names)
    if not names or not all(names) or len(set(names)) < len(names):
        twice = [name for name in names if not name or names.count(name) > 1]
        raise InputError(
            f"An index needs label names, each once and none empty. Got {_brief(twice)}: name "
            f"them apart."
        )
    return Contents(names, predictions.model, predictions.calibration)


def batch_of(predictions: Predictions) -> Batch:
    """The rows of these predictions, with the stamps of their files as they were predicted.

    Raises:
        InputError: a log-odds is outside [-40, 40], a score is not finite, or a path comes twice.
    """
    logits = np.asarray(predictions.logits, dtype=np.float32)
    scores = np.asarray(predictions.scores, dtype=np.float32)
    good = (np.abs(logits) <= LOGIT_LIMIT) & np.isfinite(scores)  # NaN compares as False
    if not good.all():
        row, column = np.argwhere(~good)[0]
        raise InputError(
            f"Log-odds must lie in [-{LOGIT_LIMIT:g}, {LOGIT_LIMIT:g}] and scores be finite. "
            f"{predictions.paths[row]!r} has log-odds {logits[row, column]} and score "
            f"{scores[row, column]} for {predictions.names[column]!r}: predict it again."
        )
    table = stamped(predictions.paths, predictions.hashes)
    return Batch(table, logits.T, scores.T, predictions.features)


def skipped_of(predictions: Predictions) -> dict[str, str]:
    """Pictures that could not be read, and why."""
    paths = whole(skipped.path for skipped in predictions.skipped)
    return dict(zip(paths, (skipped.reason for skipped in predictions.skipped), strict=True))


def check_same_recognizer(ours: Contents, predictions: Predictions) -> None:
    """Refuse predictions that cannot stand beside those of an index.

    Raises:
        InputError: model, calibration, names or the width of the vectors differ.
    """
    theirs = new_contents(predictions)
    pairs = {
        "model": (ours.model, theirs.model),
        "calibration": (ours.calibration, theirs.calibration),
        "names": (ours.names, theirs.names),
    }
    if ours.shards:
        widths = [_width(ours.shards[0].features), _width(predictions.features)]
        pairs["width of vectors"] = (str(widths[0]), str(widths[1]))
    for what, (here, there) in pairs.items():
        if here != there:
            raise InputError(
                f"An index holds predictions of one recognizer only. Its {what}: {_brief(here)}; "
                f"that of these predictions: {_brief(there)}. Predict with the same recognizer, "
                f"or build the index again (`surelabel index`)."
            )


def _width(vectors: npt.NDArray[np.float16] | None) -> int:
    return 0 if vectors is None else vectors.shape[1]


def _brief(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return repr(value)
    return f"{', '.join(map(repr, value[:5]))}{', …' if len(value) > 5 else ''} ({len(value)})"
