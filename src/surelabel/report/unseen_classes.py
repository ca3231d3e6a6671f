"""Render tables and reliability diagrams of seen and unseen classes (generalized zero-shot)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.evaluation import RankingResults, UnseenClassResults
from surelabel.markup import Markup, markup_element, markup_header_cells, markup_table_region
from surelabel.metrics import ReliabilityBins, reliability_bins
from surelabel.report.metric_descriptions import (
    describe_metric,
    format_described_metric_value,
    format_described_metric_with_unit,
    sort_by_metric_descriptions,
)
from surelabel.report.plot_style import Plot
from surelabel.report.reliability_diagram import BINS, draw_reliability_diagram

MAX_NAMES = 40  # unseen classes listed by name
RANKING_COLUMNS = (
    "",
    "unseen only",
    "perfect ranking",
    "seen and unseen",
    "perfect ranking",
)
SEEN_UNSEEN_COLUMNS = ("", "seen", "noise floor", "unseen", "noise floor", "unit")
RANKING_NOTE = (
    "Seen classes may have training annotations; unseen classes have none. In the column “unseen "
    "only” (zero-shot), only the unseen classes are ranked, in the {images} images with a positive "
    "unseen class. In the column “seen and unseen” (generalized zero-shot), seen and unseen "
    "classes are ranked together, in all images. A perfect ranking places all positive labels "
    "first. The metrics at k of a perfect ranking are below 100 % if images have more or fewer "
    "than k positive labels."
)
CALIBRATION_NOTE = (
    "All values are computed on all images. The noise floor is the expected value for perfectly "
    "calibrated probabilities. With fewer decisions, the noise floor is higher."
)


@dataclass(frozen=True)
class UnseenClasses:
    """Unseen classes of an evaluation, and their metrics.

    Attributes:
        names: Labels of the evaluation that are unseen classes.
        results: Result of ``evaluate_unseen_classes``.
    """

    names: Sequence[str]
    results: UnseenClassResults


def check_unseen_classes_of_report(names: Sequence[str], unseen: UnseenClasses | None) -> None:
    """Check that at least one evaluated label, but not every evaluated label, is an unseen class.

    Args:
        names: Labels of the evaluation.
        unseen: Unseen classes. If None, the check is skipped.

    Raises:
        InputError: If an unseen class was not evaluated, or if no class or every class is unseen.
    """
    if unseen is None:
        return
    evaluated, unseen_names = set(names), set(unseen.names)
    not_evaluated = [name for name in unseen.names if name not in evaluated]
    if not_evaluated or not 0 < len(unseen_names) < len(evaluated):
        raise InputError(
            f"unseen.names must contain some, but not all, of the {len(evaluated)} evaluated "
            f"labels; got {format_count(len(unseen_names), 'label')}"
            + (f", of which {not_evaluated[0]!r} was not evaluated." if not_evaluated else ".")
            + " Add or remove unseen classes."
        )


def unseen_classes_report_reliability(
    probabilities: Array, targets: Array, known: Flags, is_unseen: Flags
) -> dict[str, ReliabilityBins]:
    """Compute the reliability bins of seen and of unseen classes.

    Args:
        probabilities: Probabilities in [0, 1], ``(n, c)``.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        is_unseen: True for unseen classes, ``(c,)``.

    Returns:
        Mapping from ``seen`` and ``unseen`` to the reliability bins of these classes.
    """
    return {
        group: reliability_bins(probabilities[:, c], targets[:, c], known[:, c], bins=BINS)
        for group, c in {"seen": ~is_unseen, "unseen": is_unseen}.items()
    }


def plot_unseen_classes_reliability(
    bins: Mapping[str, ReliabilityBins], ece: Mapping[str, float], n_images: int
) -> Plot:
    """Plot the reliability diagrams of seen and unseen classes in one figure.

    Args:
        bins: Mapping from ``seen`` and ``unseen`` to the reliability bins of these classes.
        ece: Mapping from ``seen`` and ``unseen`` to the expected calibration error, in [0, 1].
        n_images: Number of images.
    """
    errors = [
        f"{group} classes: ECE {format_described_metric_with_unit(ece[group], 'points')}"
        for group in bins
    ]
    counts = [f"{group_bins.counts.sum():,.0f} of {group}" for group, group_bins in bins.items()]
    note = (
        f"The probabilities are grouped into {BINS} equal-width bins. Decisions with known "
        f"targets: {' and '.join(counts)} classes, in {n_images:,} images. If the probabilities of "
        "unseen classes are calibrated and the decisions are independent, the band contains 95 % "
        "of the points of unseen classes. Counts are on a logarithmic scale."
    )
    curves = [(f"{group} classes", bins[group]) for group in ("unseen", "seen")]
    return Plot(
        "reliability_seen_unseen",
        "Calibration of seen and unseen classes",
        f"Two reliability diagrams of the same images. {'; '.join(errors)}.",
        "Dots show unseen classes, with their consistency band. Squares show seen classes.",
        draw_reliability_diagram(curves, note),
    )


def describe_unseen_classes_in_report(unseen: UnseenClasses) -> str:
    """Describe the columns of the ranking table, and list the first 40 unseen classes."""
    n_more = len(unseen.names) - MAX_NAMES
    names = ", ".join(unseen.names[:MAX_NAMES]) + (f" and {n_more:,} more" if n_more > 0 else "")
    note = RANKING_NOTE.format(images=f"{unseen.results.zsl.images:,}")
    return f"{note} Unseen classes: {names}."


def render_unseen_classes_ranking_table(results: UnseenClassResults) -> Markup:
    """Return an HTML table of the ranking metrics, with the values of a perfect ranking."""
    rows = unseen_classes_ranking_table_rows(results.zsl, results.gzsl)
    return _unseen_classes_table_region("Ranking of seen and unseen classes", RANKING_COLUMNS, rows)


def render_unseen_classes_metric_table(results: UnseenClassResults) -> Markup:
    """Return an HTML table of the metrics of seen and unseen classes, with the noise floor."""
    note = markup_element("p", CALIBRATION_NOTE, class_="soft")
    rows = unseen_classes_metric_table_rows(results)
    table = _unseen_classes_table_region(
        "Metrics of seen and unseen classes", SEEN_UNSEEN_COLUMNS, rows
    )
    return markup_element("div", note, table)


def unseen_classes_ranking_table_rows(*rankings: RankingResults) -> list[list[str]]:
    """Return a table row for each ranking metric, with two cells for each ranking.

    Args:
        rankings: Ranking results, such as those of zero-shot and generalized zero-shot rankings.

    Returns:
        Rows with the title of a metric, and the achieved value and the value of a perfect ranking
        for each element of ``rankings``.
    """
    rows = []
    for k in rankings[0].achieved.micro:
        for metric in ("precision", "recall", "f1"):
            pairs = [(r.achieved.micro[k], r.perfect_ranking.micro[k]) for r in rankings]
            cells = [
                format_described_metric_value(getattr(values, metric), "%")
                for pair in pairs
                for values in pair
            ]
            rows.append([f"{metric.capitalize()} at {k}", *cells])
    for title, attribute in (
        ("mAP", "mean_average_precision"),
        ("mAP, with AP = 0 for labels without positives", "mean_average_precision_zero_filled"),
    ):
        metrics = [values for r in rankings for values in (r.achieved, r.perfect_ranking)]
        rows.append(
            [title, *(format_described_metric_value(getattr(of, attribute), "%") for of in metrics)]
        )
    for title, counts in (
        ("Images", [f"{r.images:,}" for r in rankings]),
        ("Positive labels per image", [f"{r.labels_per_image:.2f}" for r in rankings]),
        ("Labels without positives", [f"{r.labels_without_positives:,}" for r in rankings]),
    ):
        rows.append([title, *(cell for count in counts for cell in (count, ""))])
    return rows


def unseen_classes_metric_table_rows(results: UnseenClassResults) -> list[list[str]]:
    """Return a table row for each metric: values and noise floors of both groups, and the unit."""
    rows = []
    for metric in sort_by_metric_descriptions(results.metrics_by_group):
        description, noise_floor = describe_metric(metric), results.noise_floor.get(metric, {})
        cells = [
            format_described_metric_value(values.get(group), description.unit)
            for group in ("seen", "unseen")
            for values in (results.metrics_by_group[metric], noise_floor)
        ]
        rows.append([description.title, *cells, description.unit])
    return rows


def _unseen_classes_table_region(
    label: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> Markup:
    body = [
        markup_element(
            "tr",
            markup_element("th", title, scope="row"),
            *(markup_element("td", cell) for cell in cells),
        )
        for title, *cells in rows
    ]
    return markup_table_region(label, markup_header_cells(header), body)
