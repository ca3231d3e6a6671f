"""Load the folder of a saved recognizer; raise an error if it is incomplete or damaged."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

from surelabel.array_files import read_safetensors
from surelabel.config import Choice, Run, load_run, method_settings_of_run
from surelabel.counts import format_count
from surelabel.data import read_label_tree
from surelabel.decisions import ValidationRecord
from surelabel.encoders import TEMPLATES, load_encoder
from surelabel.errors import DataError, InputError
from surelabel.file_readers import read_json, read_text
from surelabel.label_aliases import split_label_aliases
from surelabel.methods import Method
from surelabel.migration import (
    ENCODER_FOLDER,
    migrate_validation_record,
    migrate_weights,
    settings_of_saved_method,
)
from surelabel.recognizer.dtype_check import DtypeCheck, restore_dtype_checks
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.saving import (
    COPY_AGAIN,
    CROSS_FITTED_FILE,
    DTYPE_CHECKS_FILE,
    FIT_NAMES_FILE,
    FORMAT_VERSION,
    LABEL_TREE_FILE,
    RECORD_FILE,
    SELECTION_FILE,
    USED_ROWS_FILE,
    SavedRecognizer,
    saved_recognizer_checksums,
)
from surelabel.recognizer.score_calibration import CrossFittedScoreRows
from surelabel.recognizer.used_rows import UsedRows
from surelabel.recognizer_folder_checks import check_folder_is_not_encoder
from surelabel.records import LabelTree
from surelabel.records.calibration_description import MODEL

REQUIRED_FILES = (
    "run.toml",
    "names.txt",
    "link.json",
    "calibration.json",
    "weights.safetensors",
    "encoder",
    "about.json",
)


def read_saved_recognizer(folder: str | Path, *, device: str = "cpu") -> SavedRecognizer:
    """Read the folder of a saved recognizer, without network access.

    Folders that were written by surelabel 0.1.0 are supported.

    Raises:
        DataError: If a file is missing or damaged, or if a newer version of surelabel wrote the
            folder.
    """
    folder = Path(folder)
    _check_saved_recognizer_is_complete(folder)
    about = _read_about_saved_recognizer(folder)
    run = _load_saved_run(folder / "run.toml")
    _check_saved_recognizer_paths(folder, run)
    weights = read_safetensors(folder / "weights.safetensors", "pt", remedy=COPY_AGAIN)
    record = None
    if (folder / RECORD_FILE).exists():
        record = read_safetensors(folder / RECORD_FILE, "numpy", remedy=COPY_AGAIN)
    if about["format"] == 1:
        weights = migrate_weights(run.method.name, weights)
        record = record and migrate_validation_record(record)
    names = fit_names = read_text(folder / "names.txt", remedy=COPY_AGAIN).splitlines()
    if (folder / FIT_NAMES_FILE).exists():
        fit_names = read_text(folder / FIT_NAMES_FILE, remedy=COPY_AGAIN).splitlines()
    encoder_folder = _encoder_folder_of_saved_recognizer(folder)
    saved = SavedRecognizer(
        run=run,
        names_with_aliases=names,
        fit_names=fit_names,
        encoder=load_encoder(f"local-dir:{encoder_folder}", device=device),
        link=_read_saved_link(folder / "link.json"),
        calibration=_read_saved_recognizer_json(folder / "calibration.json") or None,
        record=ValidationRecord.restore(record) if record else None,
        weights=weights,
        selection=_read_saved_selection(folder / SELECTION_FILE),
        cross_fitted=_read_cross_fitted_rows(folder / CROSS_FITTED_FILE, len(names)),
        used_rows=_read_used_rows(folder / USED_ROWS_FILE),
        fingerprint=str(about.get("fingerprint", "")),
        dtype_checks=_read_dtype_checks(folder / DTYPE_CHECKS_FILE),
        label_tree=_read_saved_label_tree(folder / LABEL_TREE_FILE),
    )
    _check_saved_recognizer_consistency(folder, saved)
    _check_saved_label_tree(folder, saved)
    return replace(saved, run=_run_with_score_domain(saved))


def _load_saved_run(path: Path) -> Run:
    """Return the run of a saved recognizer, with settings that earlier versions did not save."""
    run = load_run(path)
    stated = {
        key: run.method.settings[key] for key in method_settings_of_run(path) if key != "name"
    }
    settings = settings_of_saved_method(run.method.name, stated)
    return replace(run, method=Choice(run.method.name, settings))


def _run_with_score_domain(saved: SavedRecognizer) -> Run:
    """Return the run of a saved recognizer, with the score domain of its version of surelabel.

    In surelabel 0.1.0, zero-shot scores of all encoders are relative to the reference list. In this
    version, the scores of encoders with a bias are log-odds of the encoder.
    """
    run, settings = saved.run, saved.run.method.settings
    is_default = run.method.name == "zero_shot" and "domain" not in settings
    if saved.link == MODEL or saved.encoder.logit_bias is None or not is_default:
        return run
    return replace(run, method=Choice("zero_shot", {**settings, "domain": "reference"}))


def _read_saved_link(path: Path) -> str | None:
    """Return the loss of the link, ``model`` for the link of the encoder, or None."""
    link = _read_saved_recognizer_json(path)
    return MODEL if link.get(MODEL) is True else link.get("loss")


def _read_saved_selection(path: Path) -> MethodSelection | None:
    """Return the results of the model selection, or None if the method was given."""
    if not path.exists():
        return None
    state = _read_saved_recognizer_json(path)
    return MethodSelection.restore(state, source=path, remedy=COPY_AGAIN)


def _read_cross_fitted_rows(path: Path, n_labels: int) -> CrossFittedScoreRows | None:
    """Return the cross-fitted log-odds of calibration rows, or None if there is no file."""
    if not path.exists():
        return None
    return CrossFittedScoreRows.restore(
        read_safetensors(path, "numpy", remedy=COPY_AGAIN), n_labels
    )


def _read_dtype_checks(path: Path) -> tuple[DtypeCheck, ...]:
    """Return the checks of number formats; empty if there is no file."""
    return restore_dtype_checks(_read_saved_recognizer_json(path)) if path.exists() else ()


def _read_saved_label_tree(path: Path) -> LabelTree | None:
    """Return the tree of the labels, or None if there is no file."""
    return read_label_tree(path) if path.exists() else None


def _read_used_rows(path: Path) -> UsedRows | None:
    """Return the hashes of the images of the fit and of the calibration, or None without a file."""
    if not path.exists():
        return None
    return UsedRows.restore(read_safetensors(path, "numpy", remedy=COPY_AGAIN))


def _encoder_folder_of_saved_recognizer(folder: Path) -> Path:
    """Return the folder of the encoder, which has another name in folders of surelabel 0.1.0."""
    current, older = folder / "encoder", folder / ENCODER_FOLDER
    return older if older.exists() and not current.exists() else current


def _check_saved_recognizer_is_complete(folder: Path) -> None:
    """Check that no required file of a saved recognizer is missing.

    Raises:
        DataError: If a file is missing, or if the folder contains an encoder.
    """
    missing = [name for name in REQUIRED_FILES if not (folder / name).exists()]
    if "encoder" in missing and _encoder_folder_of_saved_recognizer(folder).exists():
        missing.remove("encoder")
    if missing:
        check_folder_is_not_encoder(folder)
        raise DataError(
            f"{folder} must be a complete saved recognizer; the folder does not contain "
            f"{', '.join(missing)}. {COPY_AGAIN}"
        )


def _read_about_saved_recognizer(folder: Path) -> dict[str, Any]:
    """Return the contents of about.json, with the format, the version and the fingerprint.

    Raises:
        DataError: If the file is damaged, or if a newer version of surelabel wrote the folder.
    """
    about = _read_saved_recognizer_json(folder / "about.json")
    if not isinstance(about.get("format"), int):
        raise DataError(
            f"format in {folder / 'about.json'} must be an integer; got {about.get('format')!r}. "
            f"{COPY_AGAIN}"
        )
    if about["format"] > FORMAT_VERSION:
        raise DataError(
            f"surelabel {version('surelabel')} reads formats up to {FORMAT_VERSION}; {folder} has "
            f"format {about['format']} of surelabel {about.get('surelabel')}. Upgrade surelabel."
        )
    return about


def load_saved_recognizer_weights(
    method: Method, weights: dict[str, Tensor], folder: str | Path
) -> None:
    """Load saved weights into a method.

    Raises:
        DataError: If names or shapes of the weights differ from the parameters of the method.
    """
    try:
        method.load_state_dict(weights)
    except RuntimeError as error:
        cause = " ".join(str(error).split()).removesuffix(".")
        raise DataError(
            f"The weights in {folder} do not match run.toml: {cause}. {COPY_AGAIN}"
        ) from error


def check_saved_recognizer_fingerprint(
    folder: str | Path, saved: SavedRecognizer, fingerprint: str
) -> None:
    """Check that the files of a saved recognizer were not changed.

    Raises:
        DataError: If the fingerprint of the loaded recognizer or a checksum differs from the saved
            one. Folders that were written by surelabel 0.1.0 have no checksums.
    """
    if fingerprint != saved.fingerprint:
        raise DataError(
            f"{folder} was changed after saving: the fingerprint must be "
            f"{' '.join(saved.fingerprint.split())[:60]}; got {fingerprint}. {COPY_AGAIN}"
        )
    about = _read_saved_recognizer_json(Path(folder) / "about.json")
    expected = about.get("checksums")
    expected = expected if isinstance(expected, dict) else {}
    actual = saved_recognizer_checksums(Path(folder))
    changed = [name for name in actual if expected.get(name) != actual[name]]
    if about["format"] > 1 and changed:
        raise DataError(
            f"{folder} was changed after saving: the checksums of {' and '.join(changed)} must "
            f"equal the values in about.json. {COPY_AGAIN}"
        )


def _check_saved_recognizer_paths(folder: Path, run: Run) -> None:
    """Check that no component of a saved run names a file of prompt templates or of words.

    A saved run contains the sentences or words of a file. Therefore it refers to no file of this
    machine.

    Raises:
        DataError: If a component has the path of a file as ``templates`` or ``words``.
    """
    for choice in (value for value in vars(run).values() if isinstance(value, Choice)):
        templates, words = choice.settings.get("templates"), choice.settings.get("words")
        if isinstance(words, str):
            raise DataError(
                f"words in {folder / 'run.toml'} must be a list of words; got {words!r}. "
                f"{COPY_AGAIN}"
            )
        if isinstance(templates, str) and templates not in TEMPLATES and "{}" not in templates:
            raise DataError(
                f"templates in {folder / 'run.toml'} must be one of {', '.join(TEMPLATES)}, or a "
                f"list of sentences with the placeholder {{}}; got {templates!r}. {COPY_AGAIN}"
            )


def _check_saved_recognizer_consistency(folder: Path, saved: SavedRecognizer) -> None:
    """Check that all files of a folder belong to the same recognizer.

    Raises:
        DataError: If the loss or the number of labels differs between files.
    """
    n_labels = len(saved.names_with_aliases)
    if saved.link not in (None, MODEL, saved.run.loss.name):
        raise DataError(
            f"The link in {folder / 'link.json'} must be the loss of run.toml, "
            f"{saved.run.loss.name}; got {saved.link!r}. {COPY_AGAIN}"
        )
    shift = (saved.calibration or {}).get("shift") or [0.0] * n_labels
    recalibration = (saved.calibration or {}).get("recalibration")
    if isinstance(recalibration, dict) and isinstance(shift, list) and len(shift) == n_labels:
        shift = recalibration.get("label_shifts") or shift
    labels_per_file = {
        RECORD_FILE: len(saved.record.predicted_positives) if saved.record else n_labels,
        "calibration.json": len(shift) if isinstance(shift, list) else n_labels,
    }
    for name, count in labels_per_file.items():
        if count != n_labels:
            raise DataError(
                f"{folder / name} must contain {format_count(n_labels, 'label')}, as in names.txt; "
                f"got {count}. {COPY_AGAIN}"
            )


def _check_saved_label_tree(folder: Path, saved: SavedRecognizer) -> None:
    """Check that the tree of the labels matches the labels and the calibration.

    Raises:
        DataError: If a label of the tree is unknown, or if the calibration uses another tree.
    """
    names = [split_label_aliases(name)[0] for name in saved.names_with_aliases]
    try:
        tree = LabelTreeProjection.of_labels(saved.label_tree, names)
    except InputError as error:
        raise DataError(f"{folder / LABEL_TREE_FILE}: {error} {COPY_AGAIN}") from error
    calibrated = (saved.calibration or {}).get("label_tree")
    if calibrated is None:
        return
    if (
        tree is None
        or LabelTreeProjection.restore(calibrated).parent_columns != tree.parent_columns
    ):
        raise DataError(
            f"{folder / LABEL_TREE_FILE} must be the label tree of calibration.json; got "
            f"{'another tree' if tree else 'no file'}. {COPY_AGAIN}"
        )


def _read_saved_recognizer_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file as a dictionary.

    If the file contains another JSON value, return an empty dictionary.

    Raises:
        DataError: If the file is damaged.
    """
    value = read_json(path, remedy=COPY_AGAIN)
    return value if isinstance(value, dict) else {}
