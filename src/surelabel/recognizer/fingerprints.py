"""Compute hashes that identify a recognizer, and the run and data of a fit."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from surelabel.config import Run
from surelabel.encoders import Encoder
from surelabel.features import SentenceFeatures
from surelabel.links import Link
from surelabel.mapped_arrays import row_blocks
from surelabel.methods import Method, UsesFitLabels
from surelabel.migration import choice_before_migration, weights_before_migration
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.fitting import FittingData
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.pair_fitting import PairFittingData
from surelabel.training import Checkpoint


def recognizer_fingerprint(
    run: Run,
    names_with_aliases: Sequence[str],
    encoder: Encoder,
    method: Method,
    link: Link | None,
    calibration: CalibrationRecord | None,
    tree: LabelTreeProjection | None = None,
) -> str:
    """Return a hash that identifies the predictions of a recognizer.

    The hash depends on encoder, method, names, labels of the fit, link, method weights, calibration
    and label tree. If a zero-shot recognizer of an encoder with a bias has no link, its score
    domain ``reference`` is left out, because this was the default of surelabel 0.1.0.
    """
    digest = hashlib.sha256(encoder.fingerprint.encode())
    settings = dict(run.method.settings)
    if encoder.logit_bias is not None and run.method.name == "zero_shot":
        settings = {k: v for k, v in settings.items() if (k, v) != ("domain", "reference")}
    choice = choice_before_migration(run.method.name, settings)
    digest.update(f"({choice}, {names_with_aliases!r}, {link!r})".encode())
    if isinstance(method, UsesFitLabels) and method.fit_names != list(names_with_aliases):
        digest.update(repr(method.fit_names).encode())
    for name, tensor in weights_before_migration(run.method.name, method.state_dict()):
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    if calibration:
        digest.update(repr((calibration.name, calibration.calibrator.state())).encode())
        digest.update(repr(calibration.shift).encode() if calibration.shift else b"")
        recalibration = calibration.recalibration
        digest.update(repr(recalibration.state()).encode() if recalibration else b"")
    tree = calibration.tree if calibration else tree if link else None
    digest.update(f"label tree {tree.parent_columns}".encode() if tree else b"")
    return digest.hexdigest()[:16]


def run_fingerprint(
    run: Run, names_with_aliases: Sequence[str], data: FittingData | PairFittingData
) -> str:
    """Return a text with a hash of a run, its labels and its training data, for checkpoints."""
    if isinstance(data, PairFittingData):
        digest = hashlib.sha256(repr((run, names_with_aliases)).encode())
        return f"{run.method.name} on {data.fingerprint()}, {digest.hexdigest()[:16]}"
    digest = hashlib.sha256(repr((run, names_with_aliases, data.paths)).encode())
    for tensor in (data.targets, data.known, data.features.pooled):
        for rows in row_blocks(tensor.numpy()):
            digest.update(tensor[rows].numpy().tobytes())
    unit = "texts" if isinstance(data.features, SentenceFeatures) else "images"
    return f"{run.method.name} on {len(data.paths)} {unit}, {digest.hexdigest()[:16]}"


def checkpoint_of_fit(
    path: str | Path | None,
    run: Run,
    names_with_aliases: Sequence[str],
    data: FittingData | PairFittingData,
) -> Checkpoint | None:
    """Return the checkpoint of a fit, from which only a fit of the same run and data can resume.

    Args:
        path: File of the checkpoint. If None, the fit has no checkpoint.
        run: Run of the fit.
        names_with_aliases: Labels; aliases are separated by ``|``.
        data: Training data of the fit.
    """
    if not path:
        return None
    return Checkpoint(path, run_id=run_fingerprint(run, names_with_aliases, data))
