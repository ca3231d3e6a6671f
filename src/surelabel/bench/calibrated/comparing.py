"""Row minus row: over fits on the same test pictures, and over test pictures for one fit."""

from collections.abc import Mapping

import numpy as np

from surelabel.bench.calibrated.plan import COMPARED, SHOWN
from surelabel.bench.calibrated.results import Comparison, Row
from surelabel.bench.resampling import Resamples, differences
from surelabel.metrics import Interval, paired_over_seeds
from surelabel.records import Array, LabelledFeatures


def compared(
    rows: Mapping[str, Row], logits: Mapping[str, Array], test: LabelledFeatures
) -> tuple[Comparison, ...]:
    """All pairs of ``COMPARED``.

    Args:
        rows: By title.
        logits: Of the first fit, by title.
        test: What they were measured on.
    """
    resamples = Resamples(test.targets, test.known)
    titles = {title for pair in COMPARED for title in pair}
    drawn = {title: resamples.metrics(logits[title]) for title in titles}
    return tuple(
        Comparison(
            one, other, _over_seeds(rows[one], rows[other]), differences(drawn[one], drawn[other])
        )
        for one, other in COMPARED
    )


def _over_seeds(one: Row, other: Row) -> dict[str, Interval]:
    return {
        name: paired_over_seeds(np.subtract(one.values[name], other.values[name])) for name in SHOWN
    }
