"""Print tables of the risks of uncertainties, and of the heads that compute them."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.resampling import bench_resampling_difference_intervals
from surelabel.bench.rows import RowDifference, difference_over_seeds
from surelabel.metrics import ConfidenceInterval
from surelabel.records import UNCERTAINTY_KINDS

DOMAINS = ("photo", "sketch", "night", "blur", "noise")  # the first is the domain of scenes-80
OWN, PLAIN = UNCERTAINTY_KINDS[0], "plain head, 4p(1 - p)"
ROWS = (PLAIN, *UNCERTAINTY_KINDS)
RISKS, DECISIONS = ("AURC", "risk at 80 %"), ("accepted labels", "images")
HEAD_COLUMNS = ["mAP, %", "Brier skill, %", "log loss, mnat", "ECE, %", "accepted labels"]
Statistics = dict[str, Array]  # values by row, for seeds and resamples of the images


def difference(first: Array, second: Array) -> RowDifference:
    """Return ``first`` - ``second`` with paired intervals; both are (seeds, 1 + resamples).

    If a value of a seed is NaN, the difference is NaN.
    """
    if np.isnan([first[:, 0], second[:, 0]]).any():
        undefined = ConfidenceInterval(np.nan, np.nan, np.nan)
        return RowDifference(np.nan, undefined, undefined)
    over_seeds = difference_over_seeds(first[:, 0], second[:, 0])
    means = ({"": values.mean(axis=0)} for values in (first, second))
    over_images = bench_resampling_difference_intervals(*means)[""]
    return RowDifference(over_seeds.value, over_seeds, over_images)


def difference_cell(change: RowDifference) -> str:
    """Return a difference and its half-width as text, bold if both intervals exclude 0."""
    if np.isnan(change.value):
        return "–"
    intervals = (change.over_seeds, change.over_images)
    half_width = max(abs(x - change.value) for i in intervals for x in (i.low, i.high))
    text = f"{change.value:+.2f} ± {half_width:.2f}".replace("-", "−")
    return f"**{text}**" if abs(change.value) > half_width else text


def print_risks(statistics: Mapping[str, dict[str, Statistics]], decisions: str) -> None:
    """Print the risks of accepted labels or of images in all domains."""
    columns = [f"{risk}{suffix}" for risk in RISKS for suffix in ("", ": over plain", ": over own")]
    print(f"\nRisk of {decisions}, %\n\n| domain | uncertainty |", " | ".join(columns), "|")
    print("|", "---|" * (len(columns) + 2), sep="")
    for domain, found in statistics.items():
        for row, risks in found[decisions].items():
            cells = []
            for k in range(len(RISKS)):
                mean = risks[:, k, 0].mean()
                cells.append("–" if np.isnan(mean) else f"{mean:.2f}")
                for reference in (PLAIN, OWN):
                    change = gain(found[decisions], reference, row, k)
                    cells.append(difference_cell(change) if is_compared(row, reference) else "")
            print(f"| {domain} | {row} |", " | ".join(cells), "|")


def print_auroc(statistics: Mapping[str, dict[str, Statistics]]) -> None:
    """Print the AUROC of errors over all labels in all domains."""
    print("\nAUROC of errors over all labels, %\n\n| uncertainty |", " | ".join(statistics), "|")
    print("|", "---|" * (len(statistics) + 1), sep="")
    for row in ROWS:
        cells = [f"{found['AUROC'][row].mean():.1f}" for found in statistics.values()]
        print(f"| {row} |", " | ".join(cells), "|")


def print_heads(statistics: Mapping[str, dict[str, Array]]) -> None:
    """Print the metrics of both heads in all domains, and their differences."""
    print("\n| domain | head |", " | ".join(HEAD_COLUMNS), "|")
    print("|", "---|" * (len(HEAD_COLUMNS) + 2), sep="")
    for domain, found in statistics.items():
        for head, values in found.items():
            means = values[:, :, 0].mean(axis=0)
            cells = [f"{mean:,.2f}".replace("-", "−") for mean in means]
            print(f"| {domain} | {head} |", " | ".join(cells), "|")
        pairs = zip(*(values.swapaxes(0, 1) for values in found.values()), strict=True)
        cells = [difference_cell(difference(*pair)) for pair in pairs]
        print(f"| {domain} | difference |", " | ".join(cells), "|")


def print_conditions(statistics: Mapping[str, Mapping[str, dict[str, Statistics]]]) -> None:
    """Print the domains in which the gains of the uncertainties exclude 0, by encoder."""
    print("\nGains whose intervals exclude 0: + above 0, − below 0\n")
    print("| uncertainty | gain over | decisions | encoder |", " | ".join(RISKS), "| fulfilled |")
    print("|", "---|" * (len(RISKS) + 5), sep="")
    for kind, reference in product(UNCERTAINTY_KINDS, (PLAIN, OWN)):
        if not is_compared(kind, reference):
            continue
        for decisions, encoder in product(DECISIONS, statistics):
            cells, is_fulfilled = [], True
            for k in range(len(RISKS)):
                gains = {
                    domain: gain(found[decisions], reference, kind, k)
                    for domain, found in statistics[encoder].items()
                }
                above, below = (
                    [d for d, g in gains.items() if g.excludes_zero and sign * g.value > 0]
                    for sign in (1, -1)
                )
                signs = {"+": above, "−": below}
                cells.append("; ".join(f"{s} {', '.join(d)}" for s, d in signs.items() if d))
                is_fulfilled &= DOMAINS[0] in above and not below
            print(
                f"| {kind} | {'own' if reference == OWN else 'plain'} | {decisions} | {encoder} |",
                " | ".join(cells),
                f"| {'yes' if is_fulfilled else 'no'} |",
            )


def is_compared(row: str, reference: str) -> bool:
    """Return whether an uncertainty is compared with a reference."""
    return row not in (PLAIN, reference)


def gain(risks: Statistics, reference: str, row: str, k: int) -> RowDifference:
    """Return the risk of a reference minus the risk of an uncertainty."""
    return difference(risks[reference][:, k], risks[row][:, k])
