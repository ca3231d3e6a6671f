"""Select prompt templates: sentences in which ``{}`` is replaced by the label."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch.nn.functional as F
from open_clip.zero_shot_metadata import OPENAI_IMAGENET_TEMPLATES
from torch import Tensor

from surelabel.errors import ConfigError, DataError
from surelabel.file_readers import read_text

TEMPLATES: dict[str, tuple[str, ...]] = {
    "one": ("a photo of a {}.",),
    "ensemble": tuple(template("{}") for template in OPENAI_IMAGENET_TEMPLATES),
}


def prompt_templates(choice: str | Path | Sequence[str]) -> tuple[str, ...]:
    """Return prompt templates that are selected by name, read from a file, or passed directly.

    Args:
        choice: Name of a set of templates, a template with one ``{}``, the path of a text file with
            one template per line, or a sequence of templates. The set ``one`` contains only "a
            photo of a {}.", and the set ``ensemble`` contains the 80 ImageNet templates of CLIP.

    Raises:
        ConfigError: If there is no template, if a template does not contain exactly one ``{}``, or
            if ``choice`` is neither a name, a template nor a file.
        DataError: If the file of templates cannot be read as text, or is empty.

    Example:
        >>> prompt_templates("a drawing of a {}.")
        ('a drawing of a {}.',)
    """
    if not isinstance(choice, str | Path):
        return check_prompt_templates(tuple(choice))
    if str(choice) in TEMPLATES:
        return TEMPLATES[str(choice)]
    if "{" not in str(choice):
        return check_prompt_templates(_read_prompt_templates(Path(choice)))
    return check_prompt_templates((str(choice),))


def check_prompt_templates(templates: tuple[str, ...]) -> tuple[str, ...]:
    """Check that each template contains exactly one ``{}``, and return the templates.

    Raises:
        ConfigError: If a template does not contain exactly one ``{}``, or if there is no template.
    """
    if not templates:
        raise ConfigError(
            "templates must contain at least one template, such as 'a photo of a {}.'; got none."
        )
    for template in templates:
        if template.count("{}") != 1:
            raise ConfigError(
                "A template must contain {} exactly once, at the position of the label; got "
                f"{template!r}, which contains {{}} {template.count('{}')} times. Example: 'a "
                "photo of a {}.'"
            )
    return templates


def _read_prompt_templates(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        raise ConfigError(
            f"templates must be the name of a set ({', '.join(TEMPLATES)}), a sentence with one "
            f"{{}}, or a text file with one template per line; got {str(path)!r}."
        )
    lines = read_text(path).splitlines()
    templates = tuple(line.strip() for line in lines if line.strip())
    if not templates:
        raise DataError(f"{path} must contain one template per line; the file is empty.")
    return templates


def encode_labels_with_templates(
    encode_sentences: Callable[[Sequence[str]], Tensor],
    names: Sequence[str],
    templates: Sequence[str],
) -> Tensor:
    """Return one unit vector for each of ``c`` labels, ``(c, d)``.

    The vector of a label is the normalized mean of the sentence vectors over the templates.

    Args:
        encode_sentences: Function that returns one unit vector for each of s sentences, ``(s, d)``.
        names: The labels to encode.
        templates: Prompt templates, each with one ``{}``.

    Raises:
        ConfigError: If there is no template, or a template does not contain exactly one ``{}``.
    """
    check_prompt_templates(tuple(templates))
    sentences = [template.replace("{}", name) for name in names for template in templates]
    vectors = encode_sentences(sentences).unflatten(0, (len(names), len(templates)))
    return F.normalize(vectors.mean(dim=1), dim=-1)
