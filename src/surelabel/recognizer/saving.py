"""A saved recognizer: a folder that is whole, or an error that names what is missing.

run.toml             every choice, as resolved
names.txt            one label a line, in the order of the columns
link.json            from scores to log-odds
calibration.json     the fitted calibrator and on what it was fitted
record.safetensors   how it did there, for goals and guarantees; only where that is known
weights.safetensors  what the method learnt
backbone/            the encoder with its preprocessing, or the name of an embedded one
about.json           versions and fingerprint
README.md            the model card
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from torch import Tensor

from surelabel.backbones import Backbone, load_backbone
from surelabel.config import Run, load_run, run_as_toml
from surelabel.decisions import TrackRecord
from surelabel.errors import DataError
from surelabel.files import new_folder
from surelabel.methods import METHODS

FORMAT = 1
RECORD = "record.safetensors"
PARTS = (
    "run.toml",
    "names.txt",
    "link.json",
    "calibration.json",
    "weights.safetensors",
    "backbone",
    "about.json",
)


@dataclass(frozen=True)
class Parts:
    """What a saved recognizer is made of.

    Attributes:
        run: Every choice.
        spellings: Names with their aliases.
        backbone: The encoder.
        link: Loss whose link turns scores into log-odds; None without one.
        calibration: ``calibrator``, ``state`` and ``about``; None without one.
        record: How the calibration did on labelled pictures; None where that is not known.
        weights: Of the method.
        fingerprint: Of the recognizer.
    """

    run: Run
    spellings: list[str]
    backbone: Backbone
    link: str | None
    calibration: dict[str, Any] | None
    record: TrackRecord | None
    weights: dict[str, Tensor]
    fingerprint: str


def check_free(folder: str | Path) -> None:
    """Refuse a folder that holds something else than a recognizer.

    Raises:
        DataError: it does; nothing in it is touched.
    """
    folder = Path(folder)
    ours = folder.is_dir() and ((folder / "about.json").exists() or not any(folder.iterdir()))
    if folder.exists() and not ours:
        raise DataError(
            f"{folder} exists and is no saved recognizer, so it is left alone. "
            "Name a new folder, or remove this one first."
        )


def write_parts(folder: str | Path, parts: Parts) -> None:
    """Write all parts at once: the folder appears whole or not at all.

    Raises:
        DataError: the folder cannot be written, or holds something else than a recognizer.
    """
    check_free(folder)
    with new_folder(folder) as new:
        parts.backbone.save(new / "backbone")
        save_file(
            {k: v.contiguous() for k, v in parts.weights.items()}, new / "weights.safetensors"
        )
        if parts.record:
            save_arrays(parts.record.state(), new / RECORD)
        texts = {
            "run.toml": run_as_toml(parts.run),
            "names.txt": "\n".join(parts.spellings) + "\n",
            "link.json": _json({"loss": parts.link}),
            "calibration.json": _json(parts.calibration),
            "about.json": _json(
                {
                    "format": FORMAT,
                    "surelabel": version("surelabel"),
                    "fingerprint": parts.fingerprint,
                }
            ),
            "README.md": _card(parts),
        }
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")


def read_parts(folder: str | Path, *, device: str = "cpu") -> Parts:
    """Read what ``write_parts`` wrote, with no network.

    Raises:
        DataError: a part is missing, damaged, or from a newer version.
    """
    folder = Path(folder)
    missing = [part for part in PARTS if not (folder / part).exists()]
    if missing:
        raise DataError(
            f"{folder} is no whole recognizer: {', '.join(missing)} is missing. "
            "Copy the whole folder again, or save the recognizer anew."
        )
    about = _object(folder / "about.json")
    if not isinstance(about.get("format"), int):
        raise DataError(
            f"{folder / 'about.json'} must state its format as a number. Got "
            f"{about.get('format')!r}. Copy the whole folder again, or save the recognizer anew."
        )
    if about["format"] > FORMAT:
        raise DataError(
            f"{folder} was saved by surelabel {about.get('surelabel')}, in a format that this "
            f"version ({version('surelabel')}) does not know. Upgrade surelabel to load it."
        )
    state = _whole(folder / "weights.safetensors", load_file)
    record = folder / RECORD
    try:
        names = (folder / "names.txt").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{folder / 'names.txt'} cannot be read: {error}.") from error
    parts = Parts(
        run=load_run(folder / "run.toml"),
        spellings=names,
        backbone=load_backbone(f"local-dir:{folder / 'backbone'}", device=device),
        link=_object(folder / "link.json").get("loss"),
        calibration=_object(folder / "calibration.json") or None,
        record=TrackRecord.restore(_whole(record, load_arrays)) if record.exists() else None,
        weights=state,
        fingerprint=str(about.get("fingerprint", "")),
    )
    _check_together(folder, parts)
    return parts


def give_weights(method: Any, weights: dict[str, Tensor], folder: str | Path) -> None:
    """Put what was learnt into a method made by the same run.

    Raises:
        DataError: they do not fit it.
    """
    try:
        method.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"The weights in {folder} do not fit its run.toml: {error}. "
            "Copy the whole folder again, or save the recognizer anew."
        ) from error


def check_unchanged(folder: str | Path, parts: Parts, fingerprint: str) -> None:
    """Refuse parts that no longer make the recognizer that was saved.

    Raises:
        DataError: what they make has another fingerprint.
    """
    if fingerprint != parts.fingerprint:
        raise DataError(
            f"{folder} has been changed since it was saved: its parts do not give the "
            "fingerprint in about.json. Copy the whole folder again, or save it anew."
        )


def _check_together(folder: Path, parts: Parts) -> None:
    """Refuse parts that are each whole and not of one recognizer."""
    labels, again = len(parts.spellings), "Copy the whole folder again, or save it anew."
    if parts.link not in (None, parts.run.loss.name):
        raise DataError(
            f"{folder / 'link.json'} must name the loss of run.toml, {parts.run.loss.name}, or "
            f"none. Got {parts.link!r}. {again}"
        )
    shift = (parts.calibration or {}).get("shift") or [0.0] * labels
    of = {
        RECORD: len(parts.record.shown) if parts.record else labels,
        "calibration.json": len(shift) if isinstance(shift, list) else labels,
    }
    for name, count in of.items():
        if count != labels:
            raise DataError(
                f"{folder / name} is of {count} labels and the recognizer of {labels}. {again}"
            )


def _whole(path: Path, load: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    try:
        return load(path)
    except (SafetensorError, OSError) as error:
        raise DataError(
            f"{path} is damaged ({error}). Copy it again, or save the recognizer anew."
        ) from error


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged ({error}). Copy it again, or save the recognizer anew."
        ) from error
    return value if isinstance(value, dict) else {}


def _card(parts: Parts) -> str:
    calibrated = (parts.calibration or {}).get("about")
    shown = ", ".join(parts.spellings[:20]) + (" …" if len(parts.spellings) > 20 else "")
    return f"""# A recognizer of {len(parts.spellings)} labels

Labels: {shown}

| | |
|---|---|
| encoder | {parts.backbone.name} |
| its world | {parts.backbone.world or "see the encoder's own card"} |
| method | {parts.run.method.name} {parts.run.method.settings or ""} |
| loss | {_lesson(parts.run)} |
| calibration | {calibrated or "none on held-out pictures"} |
| made with | surelabel {version("surelabel")} |

Load it with `surelabel.Recognizer.load(folder)` or name this folder after `--model`.
Its probabilities hold for pictures like those it was calibrated on; measure them on your own
labelled pictures with `surelabel evaluate` before you rely on them.
"""


def _lesson(run: Run) -> str:
    """What fitting made small, and of which labels, in words."""
    method: Any = METHODS[run.method.name]
    if method.learns_from == "nothing":
        return "none: nothing was fitted"
    if method.learns_from == "labels":
        return run.loss.name
    if run.teacher is None or run.pseudolabels is None:
        return "none: it has looked at pictures without labels"
    made = f"{run.pseudolabels.name} of {run.teacher.name} {run.teacher.settings or ''}".rstrip()
    return f"{run.loss.name}, on labels of its own ({made})"
