"""Rows of a table, and how far each is from the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from surelabel.bench.cells import Cells, digest
from surelabel.bench.open_vocabulary.measures import MEASURES, drawn, judged, values
from surelabel.bench.open_vocabulary.pictures import Pictures
from surelabel.bench.open_vocabulary.plan import Plan
from surelabel.bench.open_vocabulary.taught import Answer
from surelabel.bench.resampling import differences
from surelabel.metrics import Interval, paired_over_seeds
from surelabel.records import Array


@dataclass(frozen=True)
class Difference:
    """A row minus the reference, mean over seeds.

    Attributes:
        value: Of the test pictures.
        over_seeds: 95 % interval over other trainings, on these pictures.
        over_pictures: 95 % interval over other test pictures, for these trainings.
    """

    value: float
    over_seeds: Interval
    over_pictures: Interval

    @property
    def told_apart(self) -> bool:
        """Whether both intervals lie on one side of 0."""
        ends = (self.over_seeds.low, self.over_pictures.low)
        tops = (self.over_seeds.high, self.over_pictures.high)
        return min(ends) > 0 or max(tops) < 0


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        title: What it is.
        values: Metric → one value a seed.
        parameters: That were learnt.
        seconds: Of one core, for each seed.
        differences: Metric → row minus reference; empty for the reference itself.
    """

    title: str
    values: dict[str, list[float]]
    parameters: int
    seconds: list[float]
    differences: dict[str, Difference]

    def mean(self, metric: str) -> float:
        """Over seeds."""
        return mean(self.values[metric])


@dataclass(frozen=True)
class Measured:
    """One kind of recognizer on the test pictures.

    Attributes:
        answers: One a seed.
        values: Metric → one value a seed.
        drawn: Metric → mean over seeds, of the test pictures and each resample, ``(1 + draws,)``.
    """

    answers: Sequence[Answer]
    values: dict[str, list[float]]
    drawn: dict[str, Array]


def measured(answers: Sequence[Answer], pictures: Pictures, plan: Plan, cells: Cells) -> Measured:
    """All metrics of recognizers that differ in their seed alone."""
    found = [_values(one, pictures, cells) for one in answers]
    resamples = [_drawn(one, pictures, plan, cells) for one in answers]
    return Measured(
        answers,
        {name: [one[name] for one in found] for name in found[0]},
        {name: np.mean([one[name] for one in resamples], axis=0) for name in MEASURES},
    )


def row(title: str, found: Measured, reference: Measured) -> Row:
    """A line of a table; the reference has no differences."""
    return Row(
        title,
        found.values,
        found.answers[0].parameters,
        [one.seconds for one in found.answers],
        {} if found is reference else _apart(found, reference),
    )


def _apart(found: Measured, reference: Measured) -> dict[str, Difference]:
    over_pictures = differences(found.drawn, reference.drawn)
    apart: dict[str, Difference] = {}
    for name in MEASURES:
        each = np.subtract(found.values[name], reference.values[name])
        over_seeds = paired_over_seeds(each)
        apart[name] = Difference(over_seeds.value, over_seeds, over_pictures[name])
    return apart


def _values(one: Answer, pictures: Pictures, cells: Cells) -> Mapping[str, float]:
    key = ("values", pictures.identity, digest(one.scores, one.logits))
    found: Mapping[str, float] = cells.value(*key, otherwise=lambda: values(judged(pictures, one)))
    return found


def _drawn(one: Answer, pictures: Pictures, plan: Plan, cells: Cells) -> dict[str, Array]:
    return cells.arrays(
        *("drawn", pictures.identity, digest(one.scores, one.logits), plan.draws),
        shapes={name: (1 + plan.draws,) for name in MEASURES},
        otherwise=lambda: drawn(pictures, one, draws=plan.draws),
    )
