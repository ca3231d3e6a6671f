"""From what somebody calls a model to a recognizer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.config import Run, is_student, load_run
from surelabel.errors import ConfigError, InputError, UnknownName
from surelabel.methods import METHODS
from surelabel.recognizer.recognizer import Recognizer


def open_recognizer(
    model: str,
    names: Sequence[str] | None = None,
    *,
    otherwise: Sequence[str] | None = None,
    template: str | None = None,
    settings: Sequence[str] = (),
    device: str = "cpu",
) -> Recognizer:
    """A saved recognizer, or an encoder with a method that needs no labels.

    Args:
        model: The folder of a saved recognizer, or the name of an encoder.
        names: What to look for; a saved recognizer keeps its own when left out.
        otherwise: What an encoder, which has no names of its own, looks for without ``names``.
        template: ``one``, ``ensemble``, or a sentence with ``{}``; for an encoder only.
        settings: Of the run, such as ``method.name=tiles`` and ``method.domain=centred``; for
            an encoder only, which is zero-shot without them.
        device: Where the encoder runs.

    Returns:
        A recognizer; where its method learns from images, it has seen none yet: ``fitted`` says
        so.

    Raises:
        InputError: an encoder without names, or a saved recognizer with a template or settings.
        ConfigError: the method must be fitted first.
        UnknownName: it is neither a folder nor an encoder.
        DataError: the saved recognizer is not whole.
    """
    if not Path(model).is_dir():
        wanted = names or otherwise
        if not wanted:
            raise InputError(
                f"{model} needs names to look for and got none. Give them with --labels: in words "
                '("dog, bicycle"), in a file with one name a line, or - for standard input.'
            )
        return _of_encoder(_run(model, template, settings), wanted, device)
    if template is not None or settings:
        what, option = ("template", "--template") if template else ("method", "--method and --set")
        raise InputError(
            f"{model} is a saved recognizer and keeps the {what} it was saved with. Leave "
            f"{option} out, or name an encoder."
        )
    saved = Recognizer.load(model, device=device)
    return saved if names is None or list(names) == saved.spellings else saved.with_names(names)


def _run(model: str, template: str | None, settings: Sequence[str]) -> Run:
    said = [] if template in (None, "one") else [f"method.templates={json.dumps(template)}"]
    whole = ["method.name=zero_shot", *settings, *said, f"backbone.name={json.dumps(model)}"]
    run = load_run(overrides=whole)
    entry: Any = METHODS[run.method.name]
    if entry.learns_from == "labels" or is_student(entry):
        what = "LABELS" if entry.learns_from == "labels" else "PICTURES"
        raise ConfigError(
            f"{run.method.name} is trained on {entry.learns_from}. Fit it first (`surelabel fit "
            f"{what} --method {run.method.name} --out FOLDER`) and give FOLDER as the model."
        )
    return run


def _of_encoder(run: Run, names: Sequence[str], device: str) -> Recognizer:
    try:
        return Recognizer(run, names, device=device)
    except UnknownName as error:
        model = run.backbone.name
        raise UnknownName(
            f"{error} The folder of a saved recognizer is taken too; there is none at {model}."
        ) from error
