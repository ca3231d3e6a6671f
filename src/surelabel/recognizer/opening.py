"""From what somebody calls a model to a recognizer."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.errors import InputError, UnknownName
from surelabel.recognizer.recognizer import Recognizer


def open_recognizer(
    model: str,
    names: Sequence[str] | None = None,
    *,
    otherwise: Sequence[str] | None = None,
    template: str | None = None,
    device: str = "cpu",
) -> Recognizer:
    """A saved recognizer, or a zero-shot one.

    Args:
        model: The folder of a saved recognizer, or the name of an encoder.
        names: What to look for; a saved recognizer keeps its own when left out.
        otherwise: What an encoder, which has no names of its own, looks for without ``names``.
        template: ``one``, ``ensemble``, or a sentence with ``{}``; for an encoder only.
        device: Where the encoder runs.

    Raises:
        InputError: an encoder without names, or a saved recognizer with a template.
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
        try:
            return Recognizer.zero_shot(model, wanted, templates=template or "one", device=device)
        except UnknownName as error:
            raise UnknownName(
                f"{error} The folder of a saved recognizer is taken too; there is none at {model}."
            ) from error
    if template is not None:
        raise InputError(
            f"{model} is a saved recognizer and keeps the template it was saved with. Leave "
            "--template out, or name an encoder."
        )
    saved = Recognizer.load(model, device=device)
    return saved if names is None or list(names) == saved.spellings else saved.with_names(names)
