"""Write alternative texts of images in HTML: labels, probabilities and annotated labels."""

from collections.abc import Iterable, Sequence
from itertools import islice

from surelabel.evaluation import Example
from surelabel.report.metric_descriptions import format_described_probability
from surelabel.retrieval import Hit

N_LABELS, MAX_ANNOTATED_LABELS = 3, 6  # maximum numbers of labels in a text


def alternative_text_of_example(example: Example, *, is_calibrated: bool) -> str:
    """Return the three labels of an example with the highest scores, and its annotated labels.

    The annotated labels are the positive ones, at most six. If all targets are unknown, they are
    left out.

    Args:
        example: Example of an evaluation.
        is_calibrated: True if the scores are calibrated probabilities.

    Example:
        >>> from surelabel.evaluation import ExampleLabel
        >>> labels = ExampleLabel("lion", 0.97, True), ExampleLabel("bear", 0.62, False)
        >>> example = Example("a.jpg", labels, missed_labels=(), loss=0.1)
        >>> alternative_text_of_example(example, is_calibrated=True)
        'lion 97.0 %, bear 62 %; annotated: lion'
    """
    predicted = [
        (
            label.name,
            format_described_probability(label.score) if is_calibrated else f"{label.score:.3f}",
        )
        for label in example.labels
    ]
    if not example.missed_labels and all(label.is_positive is None for label in example.labels):
        return alternative_text_of_labels(predicted)
    positives = [label.name for label in example.labels if label.is_positive]
    annotated = _annotated_labels([*positives, *example.missed_labels])
    return f"{alternative_text_of_labels(predicted)}; annotated: {annotated}"


def alternative_text_of_hit(hit: Hit) -> str:
    """Return the probability of each label of a search hit, such as ``fork 93.0 %, cow 4.0 %``."""
    return ", ".join(
        f"{name} {format_described_probability(probability)}"
        for name, probability in hit.terms.items()
    )


def alternative_text_of_labels(labels: Iterable[tuple[str, str]]) -> str:
    """Return the first three labels with their formatted values.

    Args:
        labels: Name and formatted value of each label, the highest first.

    Example:
        >>> alternative_text_of_labels([("lion", "97.0 %"), ("bear", "62 %")])
        'lion 97.0 %, bear 62 %'
    """
    return ", ".join(f"{name} {value}" for name, value in islice(labels, N_LABELS))


def _annotated_labels(names: Sequence[str]) -> str:
    n_more = len(names) - MAX_ANNOTATED_LABELS
    more = f" and {n_more} more" if n_more > 0 else ""
    return ", ".join(names[:MAX_ANNOTATED_LABELS]) + more or "no label"
