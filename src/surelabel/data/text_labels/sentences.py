"""Generate sentences with one label each from prompt templates."""

from collections.abc import Sequence

import numpy as np

from surelabel.data.label_names import parse_label_names
from surelabel.errors import InputError
from surelabel.records import LabelledTexts


def template_sentences(names: Sequence[str], templates: Sequence[str]) -> LabelledTexts:
    """Return one sentence for each label and template, in which only this label is positive.

    Args:
        names: Labels with optional aliases, as in ``sofa|couch``. The sentences contain the label
            without its aliases.
        templates: Prompt templates that contain ``{}`` once, at the place of the label.

    Returns:
        The sentences of the first label with all templates, followed by the sentences of the other
        labels.

    Raises:
        InputError: If a label is invalid, if there are no templates, or if a template does not
            contain ``{}`` exactly once.

    Example:
        >>> texts = template_sentences(["dog", "teddy bear"], ["a photo of a {}."])
        >>> texts.texts, texts.targets.tolist()
        (['a photo of a dog.', 'a photo of a teddy bear.'], [[1.0, 0.0], [0.0, 1.0]])
    """
    if isinstance(templates, str) or not len(templates):
        raise InputError(
            f"templates must be a list with at least one sentence, such as 'a photo of a {{}}.'; "
            f"got {templates!r}. Give a list of templates."
        )
    if invalid := [template for template in templates if template.count("{}") != 1]:
        raise InputError(
            "A template must contain {} exactly once, at the place of the label; got "
            f"{invalid[0]!r}. Correct the template."
        )
    labels, _ = parse_label_names(names)
    texts = [template.replace("{}", label) for label in labels for template in templates]
    return LabelledTexts(texts, labels, np.repeat(np.eye(len(labels)), len(templates), axis=0))
