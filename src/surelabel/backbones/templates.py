"""Prompt templates: sentences with one ``{}`` where the name goes."""

from collections.abc import Sequence
from pathlib import Path

from open_clip.zero_shot_metadata import OPENAI_IMAGENET_TEMPLATES

from surelabel.errors import ConfigError, DataError

TEMPLATES: dict[str, tuple[str, ...]] = {
    "one": ("a photo of a {}.",),
    "ensemble": tuple(template("{}") for template in OPENAI_IMAGENET_TEMPLATES),
}


def prompt_templates(choice: str | Path | Sequence[str]) -> tuple[str, ...]:
    """The templates of a table entry, a sentence of one's own, or a file with one a line.

    Args:
        choice: ``one``, ``ensemble`` (the 80 of CLIP), a sentence with one ``{}``, a file,
            or several sentences.

    Raises:
        ConfigError: a template without exactly one ``{}``, that is no name and no file either.
        DataError: the file cannot be read as text, or holds no template.

    Example:
        >>> prompt_templates("a drawing of a {}.")
        ('a drawing of a {}.',)
    """
    if not isinstance(choice, str | Path):
        return check_templates(tuple(choice))
    if str(choice) in TEMPLATES:
        return TEMPLATES[str(choice)]
    if "{" not in str(choice):
        return check_templates(_read(Path(choice)))
    return check_templates((str(choice),))


def check_templates(templates: tuple[str, ...]) -> tuple[str, ...]:
    """The same templates; each has exactly one ``{}``.

    Raises:
        ConfigError: one has none or several, or there is no template at all.
    """
    if not templates:
        raise ConfigError("A prompt needs one template or more. Got none.")
    for template in templates:
        if template.count("{}") != 1:
            raise ConfigError(
                "A template must hold exactly one {} where the name goes, such as "
                f"'a photo of a {{}}.'. Got {template!r} with {template.count('{}')}."
            )
    return templates


def _read(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        raise ConfigError(
            f"A template is one of {', '.join(TEMPLATES)}, a sentence with one {{}}, or a file "
            f"with one template a line. Got {str(path)!r}."
        )
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a text file of templates: {error}.") from error
    templates = tuple(line.strip() for line in lines if line.strip())
    if not templates:
        raise DataError(f"{path} must hold one template a line. It is empty.")
    return templates
