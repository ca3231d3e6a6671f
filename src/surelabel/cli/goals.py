"""What to show: options that state a goal, and the thresholds that meet it."""

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Terminal

if TYPE_CHECKING:
    from surelabel.decisions import Thresholds
    from surelabel.recognizer import Recognizer
    from surelabel.records import Array

Command = Callable[..., None]


class Finite(click.FloatRange):
    """A range of numbers; NaN and infinity are none."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{found} is no number.", param, ctx)
        return found


SHARE = Finite(0, 1, min_open=True, max_open=True)
NAMED = 5  # labels named that do not reach their goal
POINTS = {  # option: goal and its setting
    "precision": ("precision", "at_least"),
    "recall": ("recall", "at_least"),
    "best_f1": ("f1", None),
    "as_many": ("as_many", None),
    "cost_of_miss": ("cost", "of_miss"),
}
PROMISES = {"at_most_wrong": "at_most_wrong", "at_most_missed": "at_most_missed"}
OPTIONS = (
    click.option(
        "--precision",
        type=SHARE,
        help="Show a label where this share of what is shown can be expected to be right.",
    ),
    click.option(
        "--recall",
        type=SHARE,
        help="Show a label so that this share of the pictures that have it can be expected.",
    ),
    click.option("--best-f1", is_flag=True, help="The balance of both that gives the best F1."),
    click.option("--as-many", is_flag=True, help="As many labels in all as can be expected."),
    click.option(
        "--cost-of-miss",
        type=Finite(0, min_open=True),
        help="What a label that is not shown and there costs, where a wrong one costs 1.",
    ),
    click.option(
        "--at-most-wrong",
        type=SHARE,
        help="A guarantee, 90 % sure: at most this share of the shown is wrong, over pictures.",
    ),
    click.option(
        "--at-most-missed",
        type=SHARE,
        help="A guarantee, 90 % sure: at most this share of what is there is not shown.",
    ),
)


def goal_options(function: Command) -> Command:
    """The options that state a goal; they rest on the pictures that calibrated the recognizer."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def one_goal(threshold: float | None, goals: dict[str, Any]) -> tuple[str, Any] | None:
    """The goal that was stated; None without one.

    Raises:
        UsageError: there is more than one, or a threshold beside it.
    """
    stated = {key: value for key, value in goals.items() if value not in (None, False)}
    if len(stated) > 1 or (stated and threshold is not None):
        several = [*stated, *(["threshold"] if threshold is not None else [])]
        options = ", ".join(f"--{key.replace('_', '-')}" for key in several)
        raise click.UsageError(f"One goal decides what is shown. Got several: {options}.")
    return next(iter(stated.items()), None)


def thresholds_for(
    terminal: Terminal, recognizer: "Recognizer", goal: tuple[str, Any]
) -> "float | Array":
    """One threshold for all labels, or one each; says on stderr what they can be trusted with."""
    from surelabel.errors import NotFitted
    from surelabel.recognizer import guarantee, operating_point

    key, value = goal
    if key in PROMISES:
        promise = guarantee(recognizer, PROMISES[key], level=value)
        if not promise.reached:
            raise NotFitted(promise.sentence)
        terminal.say(promise.sentence)
        return promise.threshold
    name, setting = POINTS[key]
    point = operating_point(recognizer, name, **({setting: value} if setting else {}))
    failing = [n for n, reached in zip(recognizer.names, point.reached, strict=True) if not reached]
    if failing:
        more = " …" if len(failing) > NAMED else ""
        click.echo(
            f"{len(failing)} of {len(recognizer.names)} labels cannot reach this goal and are not "
            f"shown: {', '.join(failing[:NAMED])}{more}",
            err=True,
        )
    found = recognizer.calibration
    unseen = "" if found is None or found.labelled else " Nobody has seen a label to check that."
    terminal.say(expected(point) + unseen)
    return point.values


def expected(point: "Thresholds") -> str:
    """What to expect of thresholds, over the labels that are shown."""
    import numpy as np

    seen = point.reached & ~np.isnan(point.precision) & ~np.isnan(point.recall)
    if not seen.any():
        return "What to expect of that is not known: nothing shown was ever held against the truth."
    right, found = point.precision[seen].mean(), point.recall[seen].mean()
    return (
        f"To expect, as a mean over {seen.sum()} labels: {100 * right:.0f} % of what is shown is "
        f"right, {100 * found:.0f} % of what is there is shown."
    )
