"""Save and load a recognizer as a folder; loading an incomplete folder raises an error.

run.toml             run with all settings
names.txt            one label per line, in the order of the columns
fit_names.txt        labels of the fit; only if they are needed and differ from names.txt
link.json            loss whose link converts scores to log-odds
calibration.json     fitted calibrator and description of the calibration data
record.safetensors   validation record, for operating points and guarantees; optional
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

from surelabel.array_files import read_safetensors
from surelabel.config import Choice, Run, load_run, run_as_toml
from surelabel.decisions import ValidationRecord
from surelabel.encoders import TEMPLATES, Encoder, load_encoder
from surelabel.errors import DataError
from surelabel.file_readers import open_regular_file, read_json, read_text
from surelabel.files import atomic_folder
from surelabel.methods import METHODS, Method
from surelabel.migration import ENCODER_FOLDER, migrate_validation_record, migrate_weights

COPY_AGAIN = "Copy the complete folder again, or save the recognizer again."
FORMAT_VERSION = 2  # 1: folders of 0.1.0, whose names migration.py maps
RECORD_FILE = "record.safetensors"
FIT_NAMES_FILE = "fit_names.txt"
CHECKSUM_FILES = ("calibration.json", RECORD_FILE)  # the fingerprint does not cover all of these
REQUIRED_FILES = (
    "run.toml",
    "names.txt",
    "link.json",
    "calibration.json",
    "weights.safetensors",
    "encoder",
    "about.json",
)


@dataclass(frozen=True)
class SavedRecognizer:
    """Contents of the folder of a saved recognizer.

    Attributes:
        run: Run with all settings.
        names_with_aliases: Labels; aliases are separated by ``|``.
        fit_names: Labels of the fit. If the method does not need them, they equal
            ``names_with_aliases``.
        encoder: Encoder with its preprocessing.
        link: Key of the loss whose link converts scores to log-odds. If None, there is no link.
        calibration: Calibration as a JSON object with ``calibrator``, ``state`` and ``about``. If
            None, the recognizer is not calibrated.
        record: Validation record of the calibration. If None, the recognizer is not calibrated, or
            there were too few images.
        weights: Weights of the method.
        fingerprint: Fingerprint of the recognizer.
    """

    run: Run
    names_with_aliases: list[str]
    fit_names: list[str]
    encoder: Encoder
    link: str | None
    calibration: dict[str, Any] | None
    record: ValidationRecord | None
    weights: dict[str, Tensor]
    fingerprint: str


def check_saved_recognizer_folder(folder: str | Path, *, checkpoint: Path | None = None) -> None:
    """Check that a folder is new, empty or a saved recognizer; do not change the folder.

    Args:
        folder: Folder for the recognizer.
        checkpoint: Checkpoint of the fit of the recognizer, which may be in the folder.

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
        raise DataError(
            f"The output folder must be new, empty or a saved recognizer; {folder} contains "
            "other files. Give another folder, or delete the existing folder first."
        )


def write_saved_recognizer(
    folder: str | Path, recognizer: SavedRecognizer, *, checkpoint: Path | None = None
) -> None:
    """Write a recognizer to a folder atomically: if an error occurs, the folder is not changed.

    Args:
        folder: Folder for the recognizer.
        recognizer: Contents of the folder.
        checkpoint: Checkpoint of the fit of the recognizer, which may be in the folder.

    Raises:
        DataError: If the folder cannot be written, or contains other files.
    """
    check_saved_recognizer_folder(folder, checkpoint=checkpoint)
    with atomic_folder(folder) as new_folder:
        recognizer.encoder.save(new_folder / "encoder")
        save_file(
            {name: tensor.contiguous() for name, tensor in recognizer.weights.items()},
            new_folder / "weights.safetensors",
        )
        if recognizer.record:
            save_arrays(recognizer.record.state(), new_folder / RECORD_FILE)
        texts = {
            "run.toml": run_as_toml(recognizer.run),
            "names.txt": "\n".join(recognizer.names_with_aliases) + "\n",
            "link.json": _saved_recognizer_json({"loss": recognizer.link}),
            "calibration.json": _saved_recognizer_json(recognizer.calibration),
            "README.md": _saved_recognizer_model_card(recognizer),
        }
        if recognizer.fit_names != recognizer.names_with_aliases:
            texts[FIT_NAMES_FILE] = "\n".join(recognizer.fit_names) + "\n"
        for name, text in texts.items():
            (new_folder / name).write_text(text, encoding="utf-8")
        about = {
            "format": FORMAT_VERSION,
            "surelabel": version("surelabel"),
            "fingerprint": recognizer.fingerprint,
            "checksums": _saved_recognizer_checksums(new_folder),
        }
        (new_folder / "about.json").write_text(_saved_recognizer_json(about), encoding="utf-8")


def read_saved_recognizer(folder: str | Path, *, device: str = "cpu") -> SavedRecognizer:
    """Read the folder of a saved recognizer, without network access.

    Folders that were written by surelabel 0.1.0 are supported.

    Raises:
        DataError: If a file is missing or damaged, or if a newer version of surelabel wrote the
            folder.
    """
    folder = Path(folder)
    is_0_1_0 = not (folder / "encoder").exists() and (folder / ENCODER_FOLDER).exists()
    encoder_folder = ENCODER_FOLDER if is_0_1_0 else "encoder"
    missing = [name for name in REQUIRED_FILES if not (folder / name).exists()]
    if is_0_1_0:
        missing.remove("encoder")
    if missing:
        raise DataError(
            f"{folder} must be a complete saved recognizer; missing: {', '.join(missing)}. "
            f"{COPY_AGAIN}"
        )
    about = _read_saved_recognizer_json(folder / "about.json")
    if not isinstance(about.get("format"), int):
        raise DataError(
            f"{folder / 'about.json'} must contain its format as an integer; got "
            f"{about.get('format')!r}. {COPY_AGAIN}"
        )
    if about["format"] > FORMAT_VERSION:
        raise DataError(
            f"surelabel {version('surelabel')} reads formats up to {FORMAT_VERSION}; {folder} has "
            f"format {about['format']} of surelabel {about.get('surelabel')}. Upgrade surelabel."
        )
    run = load_run(folder / "run.toml")
    _check_saved_recognizer_templates(folder, run)
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
    saved = SavedRecognizer(
        run=run,
        names_with_aliases=names,
        fit_names=fit_names,
        encoder=load_encoder(f"local-dir:{folder / encoder_folder}", device=device),
        link=_read_saved_recognizer_json(folder / "link.json").get("loss"),
        calibration=_read_saved_recognizer_json(folder / "calibration.json") or None,
        record=ValidationRecord.restore(record) if record else None,
        weights=weights,
        fingerprint=str(about.get("fingerprint", "")),
    )
    _check_saved_recognizer_consistency(folder, saved)
    return saved


def _saved_recognizer_checksums(folder: Path) -> dict[str, str]:
    """Return the BLAKE2b hash of each file of ``CHECKSUM_FILES`` that exists, by file name."""
    checksums = {}
    for name in CHECKSUM_FILES:
        if (folder / name).exists():
            with open_regular_file(folder / name, remedy=COPY_AGAIN) as stream:
                checksums[name] = hashlib.blake2b(stream.read(), digest_size=16).hexdigest()
    return checksums


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
        raise DataError(
            f"The weights in {folder} do not match run.toml: {' '.join(str(error).split())}. "
            f"{COPY_AGAIN}"
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
            f"{folder} was changed since it was saved: the fingerprint must be "
            f"{' '.join(saved.fingerprint.split())[:60]}; got {fingerprint}. {COPY_AGAIN}"
        )
    about = _read_saved_recognizer_json(Path(folder) / "about.json")
    expected = about.get("checksums")
    expected = expected if isinstance(expected, dict) else {}
    actual = _saved_recognizer_checksums(Path(folder))
    if about["format"] > 1 and any(expected.get(name) != actual[name] for name in actual):
        raise DataError(
            f"{folder} was changed since it was saved: {' and '.join(CHECKSUM_FILES)} must have "
            f"the checksums in about.json. {COPY_AGAIN}"
        )


def _check_saved_recognizer_templates(folder: Path, run: Run) -> None:
    """Check that no component of a saved run names a file of prompt templates.

    A saved run contains the sentences of a file. Therefore it refers to no file of this machine.

    Raises:
        DataError: If a component has the path of a file as ``templates``.
    """
    for choice in vars(run).values():
        templates = choice.settings.get("templates") if isinstance(choice, Choice) else None
        if isinstance(templates, str) and templates not in TEMPLATES and "{}" not in templates:
            raise DataError(
                f"templates in {folder / 'run.toml'} must be one of {', '.join(TEMPLATES)}, or "
                f"sentences with one {{}}; got {templates!r}. {COPY_AGAIN}"
            )


def _check_saved_recognizer_consistency(folder: Path, saved: SavedRecognizer) -> None:
    """Check that all files of a folder belong to the same recognizer.

    Raises:
        DataError: If the loss or the number of labels differs between files.
    """
    n_labels = len(saved.names_with_aliases)
    if saved.link not in (None, saved.run.loss.name):
        raise DataError(
            f"{folder / 'link.json'} must name the loss of run.toml, {saved.run.loss.name}, or "
            f"none; got {saved.link!r}. {COPY_AGAIN}"
        )
    shift = (saved.calibration or {}).get("shift") or [0.0] * n_labels
    labels_per_file = {
        RECORD_FILE: len(saved.record.predicted_positives) if saved.record else n_labels,
        "calibration.json": len(shift) if isinstance(shift, list) else n_labels,
    }
    for name, count in labels_per_file.items():
        if count != n_labels:
            raise DataError(
                f"{folder / name} must have {n_labels} labels, like names.txt; got {count}. "
                f"{COPY_AGAIN}"
            )


def _saved_recognizer_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _read_saved_recognizer_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file as a dictionary.

    If the file contains another JSON value, return an empty dictionary.

    Raises:
        DataError: If the file is damaged.
    """
    value = read_json(path, remedy=COPY_AGAIN)
    return value if isinstance(value, dict) else {}


def _saved_recognizer_model_card(saved: SavedRecognizer) -> str:
    """Return the model card of a saved recognizer in Markdown."""
    calibration = (saved.calibration or {}).get("about")
    names = saved.names_with_aliases
    first_names = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    return f"""# Recognizer of {len(names)} labels

Labels: {first_names}

| | |
|---|---|
| encoder | {saved.encoder.name} |
| training images of the encoder | {saved.encoder.training_domain or "see its model card"} |
| method | {saved.run.method.name} {saved.run.method.settings or ""} |
| loss | {_describe_fit_of_saved_recognizer(saved.run)} |
| calibration | {calibration or "none on held-out images"} |
| saved by | surelabel {version("surelabel")} |

Load the recognizer with `surelabel.Recognizer.load(folder)`, or give this folder as `--model`.
Probabilities are calibrated only for images that are similar to the calibration images. Before you
rely on the probabilities, run `surelabel evaluate` on your own annotated images.
"""


def _describe_fit_of_saved_recognizer(run: Run) -> str:
    """Describe the loss and the targets that the method was fitted with."""
    method = METHODS[run.method.name]
    if method.learns_from == "nothing":
        return "none: not fitted"
    if method.learns_from == "labels":
        return run.loss.name
    if run.teacher is None or run.pseudolabels is None:
        return "none: fitted on images without labels"
    teacher = f"{run.teacher.name} {run.teacher.settings or ''}".rstrip()
    return f"{run.loss.name}, on pseudo-labels ({run.pseudolabels.name} of {teacher})"
