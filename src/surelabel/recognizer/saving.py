"""Save a recognizer as a folder with these files.

run.toml             run with all settings
names.txt            one label per line, in the order of the columns
fit_names.txt        labels of the fit; only if they are needed and differ from names.txt
link.json            loss whose link converts scores to log-odds, or ``model`` for the encoder
selection.json       results of the model selection that selected the method; optional
calibration.json     fitted calibrator and description of the calibration data
record.safetensors   validation record, for operating points and guarantees; optional
cross_fitted.safetensors  cross-fitted log-odds of calibration rows of precomputed scores; optional
used_rows.safetensors  hashes of the annotated images of the fit and of the calibration; optional
label_tree.txt       parents of the labels, as lines such as animal > dog; optional
dtype_checks.json    changes of the probabilities if images are encoded in bf16; optional
weights.safetensors  weights of the method
encoder/             encoder with its preprocessing, or the name of an embedded encoder
about.json           versions and fingerprint
README.md            model card
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from torch import Tensor

from surelabel.config import Run, run_as_toml
from surelabel.data import label_tree_as_text
from surelabel.decisions import ValidationRecord
from surelabel.encoders import Encoder
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file
from surelabel.files import atomic_folder
from surelabel.links import Link
from surelabel.methods import Method, UsesFitLabels
from surelabel.recognizer.calibration_record import CalibrationRecord
from surelabel.recognizer.dtype_check import DtypeCheck, dtype_checks_as_json
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.model_card import recognizer_model_card
from surelabel.recognizer.score_calibration import CrossFittedScoreRows
from surelabel.recognizer.used_rows import UsedRows
from surelabel.recognizer_folder_checks import check_saved_recognizer_folder
from surelabel.records import LabelTree
from surelabel.records.calibration_description import MODEL
from surelabel.training import delete_checkpoint

COPY_AGAIN = "Copy the complete folder again, or save the recognizer again."
FORMAT_VERSION = 2  # 1: folders of 0.1.0, whose names migration.py maps
RECORD_FILE = "record.safetensors"
FIT_NAMES_FILE = "fit_names.txt"
SELECTION_FILE = "selection.json"
CROSS_FITTED_FILE = "cross_fitted.safetensors"
USED_ROWS_FILE = "used_rows.safetensors"
DTYPE_CHECKS_FILE = "dtype_checks.json"
LABEL_TREE_FILE = "label_tree.txt"
CHECKSUM_FILES = (
    "calibration.json",
    RECORD_FILE,
    CROSS_FITTED_FILE,
    USED_ROWS_FILE,
    DTYPE_CHECKS_FILE,
    LABEL_TREE_FILE,
)  # the fingerprint does not depend on all of these files


@dataclass(frozen=True)
class SavedRecognizer:
    """Contents of the folder of a saved recognizer.

    Attributes:
        run: Run with all settings.
        names_with_aliases: Labels; aliases are separated by ``|``.
        fit_names: Labels of the fit. If the method does not need them, they equal
            ``names_with_aliases``.
        encoder: Encoder with its preprocessing.
        link: Key of the loss whose link converts scores to log-odds, or ``model`` for the link of
            the encoder. If None, there is no link.
        calibration: Calibration as a JSON object; see ``CalibrationRecord.state``. If None, the
            recognizer is not calibrated.
        record: Validation record of the calibration. If None, there is no calibration, or its
            record was dropped or had too few images.
        weights: Weights of the method.
        selection: Results of the model selection that selected the method. If None, the method was
            given.
        cross_fitted: Cross-fitted log-odds of the calibration rows. If the rows are not precomputed
            scores, the value is None.
        used_rows: Hashes of the annotated images that the recognizer was fitted or calibrated on.
            If an earlier version wrote the folder, the value is None.
        fingerprint: Fingerprint of the recognizer.
        dtype_checks: Changes of the probabilities if images are encoded in bf16.
        label_tree: Tree of the labels. If None, the labels have no tree.
    """

    run: Run
    names_with_aliases: list[str]
    fit_names: list[str]
    encoder: Encoder
    link: str | None
    calibration: dict[str, Any] | None
    record: ValidationRecord | None
    weights: dict[str, Tensor]
    selection: MethodSelection | None
    cross_fitted: CrossFittedScoreRows | None
    used_rows: UsedRows | None
    fingerprint: str
    dtype_checks: tuple[DtypeCheck, ...] = ()
    label_tree: LabelTree | None = None


def saved_recognizer_contents(
    run: Run,
    names_with_aliases: list[str],
    encoder: Encoder,
    method: Method,
    link: Link | None,
    calibration: CalibrationRecord | None,
    selection: MethodSelection | None,
    cross_fitted: CrossFittedScoreRows | None,
    used_rows: UsedRows | None,
    fingerprint: str,
    dtype_checks: tuple[DtypeCheck, ...] = (),
    label_tree: LabelTree | None = None,
) -> SavedRecognizer:
    """Return the contents of the folder of a fitted recognizer.

    Args:
        run: Run with all settings.
        names_with_aliases: Labels; aliases are separated by ``|``.
        encoder: Encoder of the recognizer.
        method: Fitted method.
        link: Link of the loss of the run, or of the encoder. If None, scores are not converted to
            log-odds.
        calibration: Fitted calibration. If None, the recognizer is not calibrated.
        selection: Results of a model selection, or None.
        cross_fitted: Cross-fitted log-odds of the calibration rows, or None.
        used_rows: Hashes of the images of the fit and of the calibration, or None if unknown.
        fingerprint: Fingerprint of the recognizer.
        dtype_checks: Changes of the probabilities if images are encoded in bf16.
        label_tree: Tree of the labels, or None.
    """
    return SavedRecognizer(
        run=run,
        names_with_aliases=names_with_aliases,
        fit_names=method.fit_names if isinstance(method, UsesFitLabels) else names_with_aliases,
        encoder=encoder,
        link=_name_of_saved_link(run, method) if link else None,
        calibration=calibration.state() if calibration else None,
        record=calibration.record if calibration else None,
        weights=method.state_dict(),
        selection=selection,
        cross_fitted=cross_fitted,
        used_rows=used_rows,
        fingerprint=fingerprint,
        dtype_checks=dtype_checks,
        label_tree=label_tree,
    )


def write_saved_recognizer(
    folder: str | Path, recognizer: SavedRecognizer, *, checkpoint: Path | None = None
) -> None:
    """Write a recognizer to a folder atomically, then delete the checkpoint of the fit.

    If an error occurs, the folder and the checkpoint are not changed.

    Args:
        folder: Folder for the recognizer.
        recognizer: Contents of the folder.
        checkpoint: Checkpoint of the fit of the recognizer, which may be in the folder.

    Raises:
        DataError: If the folder cannot be written, or contains other files.
    """
    try:
        check_saved_recognizer_folder(folder, checkpoint=checkpoint)
        with atomic_folder(folder) as new_folder:
            _write_saved_recognizer_files(new_folder, recognizer)
    except DataError as error:
        if checkpoint is None:
            raise
        raise DataError(
            f"{error} The fit is stored in the checkpoint {checkpoint}. To resume from the "
            "checkpoint, run the same fit again."
        ) from error
    if checkpoint:
        delete_checkpoint(checkpoint)


def _write_saved_recognizer_files(folder: Path, recognizer: SavedRecognizer) -> None:
    """Write all files of a recognizer to a new folder."""
    recognizer.encoder.save(folder / "encoder")
    weights = {name: tensor.contiguous() for name, tensor in recognizer.weights.items()}
    save_file(weights, folder / "weights.safetensors")
    if recognizer.record:
        save_arrays(recognizer.record.state(), folder / RECORD_FILE)
    if recognizer.cross_fitted:
        save_arrays(recognizer.cross_fitted.state(), folder / CROSS_FITTED_FILE)
    if recognizer.used_rows is not None:
        save_arrays(recognizer.used_rows.state(), folder / USED_ROWS_FILE)
    texts = {
        "run.toml": run_as_toml(recognizer.run),
        "names.txt": "".join(f"{name}\n" for name in recognizer.names_with_aliases),
        "link.json": _saved_recognizer_json(
            {"loss": None, MODEL: True} if recognizer.link == MODEL else {"loss": recognizer.link}
        ),
        "calibration.json": _saved_recognizer_json(recognizer.calibration),
        "README.md": recognizer_model_card(
            recognizer.run,
            recognizer.names_with_aliases,
            recognizer.encoder,
            _description_of_saved_calibration(recognizer),
            recognizer.weights,
            recognizer.selection,
            recognizer.dtype_checks,
            recognizer.label_tree,
        ),
    }
    if recognizer.selection:
        texts[SELECTION_FILE] = _saved_recognizer_json(recognizer.selection.state())
    if recognizer.dtype_checks:
        texts[DTYPE_CHECKS_FILE] = _saved_recognizer_json(
            dtype_checks_as_json(recognizer.dtype_checks)
        )
    if recognizer.label_tree is not None:
        texts[LABEL_TREE_FILE] = label_tree_as_text(recognizer.label_tree)
    if recognizer.fit_names != recognizer.names_with_aliases:
        texts[FIT_NAMES_FILE] = "\n".join(recognizer.fit_names) + "\n"
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    about = {
        "format": FORMAT_VERSION,
        "surelabel": version("surelabel"),
        "fingerprint": recognizer.fingerprint,
        "checksums": saved_recognizer_checksums(folder),
    }
    (folder / "about.json").write_text(_saved_recognizer_json(about), encoding="utf-8")


def saved_recognizer_checksums(folder: Path) -> dict[str, str]:
    """Return the BLAKE2b hash of each file of ``CHECKSUM_FILES`` that exists, by file name."""
    checksums = {}
    for name in CHECKSUM_FILES:
        if (folder / name).exists():
            with open_regular_file(folder / name, remedy=COPY_AGAIN) as stream:
                checksums[name] = hashlib.blake2b(stream.read(), digest_size=16).hexdigest()
    return checksums


def _description_of_saved_calibration(recognizer: SavedRecognizer) -> str | None:
    """Return the description of the calibration or of the link of the encoder, or None."""
    if recognizer.calibration:
        return str(recognizer.calibration["about"])
    return f"{MODEL} (scale and bias of the encoder)" if recognizer.link == MODEL else None


def _name_of_saved_link(run: Run, method: Method) -> str:
    """Return the loss of a link, or ``model`` if the method is not fitted."""
    return MODEL if method.learns_from == "nothing" else run.loss.name


def _saved_recognizer_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
