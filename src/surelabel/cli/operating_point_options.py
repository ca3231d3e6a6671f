"""Define options of ``tag`` that select thresholds by an operating point or a guarantee."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.arrays import Array
    from surelabel.decisions import Thresholds
    from surelabel.recognizer import Recognizer


class OperatingPointRange(click.FloatRange):
    """Option type for finite numbers in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"expected a finite number; got {number}.", param, ctx)
        return number


SHARE = OperatingPointRange(0, 1, min_open=True, max_open=True)
MAX_NAMED_LABELS = 10  # printed labels that do not reach the operating point, without --json
POINTS = {  # option: operating point and its setting
    "precision": ("precision", "at_least"),
    "recall": ("recall", "at_least"),
    "best_f1": ("f1", None),
    "expected_count": ("expected_count", None),
    "cost_of_miss": ("cost", "miss_cost"),
}
GUARANTEES = {"at_most_wrong": "at_most_wrong", "at_most_missed": "at_most_missed"}
OPTIONS = (
    click.option(
        "--precision",
        type=SHARE,
        help="For each label, use a threshold with at least this expected precision.",
    ),
    click.option(
        "--recall",
        type=SHARE,
        help="For each label, use a threshold with at least this expected recall.",
    ),
    click.option(
        "--best-f1",
        is_flag=True,
        help="For each label, use the threshold with the highest expected F1.",
    ),
    click.option(
        "--expected-count",
        is_flag=True,
        help="Use one threshold for all labels, at which the number of predicted labels equals "
        "the number of positive labels in the calibration images.",
    ),
    click.option(
        "--cost-of-miss",
        type=OperatingPointRange(0, min_open=True),
        help="Use the threshold with the lowest expected cost. The value is the cost of a missed "
        "label relative to a false positive.",
    ),
    click.option(
        "--at-most-wrong",
        type=SHARE,
        help="Guarantee with 90 % confidence that, on average, at most this fraction of the "
        "predicted labels of an image is wrong.",
    ),
    click.option(
        "--at-most-missed",
        type=SHARE,
        help="Guarantee with 90 % confidence that, on average, at most this fraction of the "
        "positive labels of an image is missed.",
    ),
)


def operating_point_options(function: Command) -> Command:
    """Add the options for operating points and guarantees."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def parse_operating_point_options(
    threshold: float | None, options: dict[str, Any]
) -> tuple[str, Any] | None:
    """Return the name and value of the operating point or guarantee on the command line.

    Args:
        threshold: Value of the option ``--threshold``.
        options: Values of the options for operating points and guarantees.

    Returns:
        Name and value of the option, or None if no option was given.

    Raises:
        UsageError: If several options, or an option and a threshold, were given.
    """
    given = {key: value for key, value in options.items() if value not in (None, False)}
    if len(given) > 1 or (given and threshold is not None):
        names = [*given, *(["threshold"] if threshold is not None else [])]
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise click.UsageError(f"Give only one operating point or threshold; got {flags}.")
    return next(iter(given.items()), None)


def thresholds_of_operating_point_options(
    terminal: Terminal, recognizer: "Recognizer", point: tuple[str, Any]
) -> "float | Array":
    """Return the thresholds of an operating point or a guarantee, and print their properties.

    For an operating point, print on stderr the labels that do not reach the operating point, and
    the expected precision and recall. For a guarantee, print its statement. The labels are printed
    as a warning, also with ``--quiet``. With ``--json``, all labels are printed, and otherwise the
    first ten.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Calibrated recognizer.
        point: Name and value of an option for an operating point or guarantee.

    Returns:
        One threshold for all labels, or an array ``(c,)`` with one threshold for each of c labels.

    Raises:
        NotFitted: If the recognizer is not calibrated on enough images, or if a guarantee cannot be
            reached.
    """
    from surelabel.errors import NotFitted
    from surelabel.recognizer import guarantee, operating_point

    option, value = point
    if option in GUARANTEES:
        result = guarantee(recognizer, GUARANTEES[option], level=value)
        if not result.is_reached:
            raise NotFitted(result.sentence)
        terminal.print_status(result.sentence)
        return result.threshold
    name, setting = POINTS[option]
    thresholds = operating_point(recognizer, name, **({setting: value} if setting else {}))
    limit = None if terminal.as_json else MAX_NAMED_LABELS
    unreached = describe_operating_point_options_unreached(thresholds, recognizer.names, limit)
    if unreached:
        terminal.print_warning(unreached)
    calibration = recognizer.calibration
    is_verified = calibration is None or calibration.record_uses_labels
    note = "" if is_verified else " Not verified: no labels were available."
    terminal.print_status(describe_operating_point_options_result(thresholds) + note)
    return thresholds.values


def describe_operating_point_options_result(thresholds: "Thresholds") -> str:
    """Describe the expected precision and recall as means over labels.

    Labels that do not reach the operating point are left out.
    """
    import numpy as np

    precision, recall = thresholds.precision, thresholds.recall
    is_known = thresholds.is_reached & ~np.isnan(precision) & ~np.isnan(recall)
    if not is_known.any():
        return "The expected precision and recall are undefined for all labels."
    return (
        f"The expected precision is {100 * precision[is_known].mean():.0f} % and the expected "
        f"recall is {100 * recall[is_known].mean():.0f} %, as means over "
        f"{format_count(is_known.sum(), 'label')}."
    )


def describe_operating_point_options_unreached(
    thresholds: "Thresholds", names: Sequence[str], limit: int | None
) -> str:
    """Name the labels that do not reach the operating point.

    Args:
        thresholds: Thresholds of c labels.
        names: Names of c labels.
        limit: Maximum number of labels that are named. If None, all labels are named.

    Returns:
        A sentence such as ``2 of 80 labels are never predicted, because no threshold satisfies the
        operating point: bear, camera``. The text is empty if every label reaches the operating
        point. The text is also empty if no label reaches a threshold that is common to all labels,
        for example because the recognizer has no validation record.
    """
    unreached = [name for name, flag in zip(names, thresholds.is_reached, strict=True) if not flag]
    is_never_predicted = bool((thresholds.values[~thresholds.is_reached] == 1).all())
    if not unreached or (len(unreached) == len(names) and not is_never_predicted):
        return ""
    reason = (
        "never predicted, because no threshold satisfies the operating point"
        if is_never_predicted
        else "excluded from the expected precision and recall, for lack of a positive or a "
        "predicted calibration image"
    )
    more = f" and {len(unreached) - limit} more" if limit and len(unreached) > limit else ""
    labels = ", ".join(unreached[:limit])
    verb = "is" if len(unreached) == 1 else "are"
    return (
        f"{len(unreached)} of {format_count(len(names), 'label')} {verb} {reason}: {labels}{more}."
    )
