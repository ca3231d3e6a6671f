"""Plot the figures of the comparison of similarity methods, one row of plots per dataset."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from surelabel.bench.similarity.plan import CONTRASTIVE, DETACHED, SIGMOID, VACSR
from surelabel.bench.similarity.results import (
    DIRECTIONS,
    MAIN,
    NOISE,
    PAIR_KINDS,
    SimilarityResults,
    SimilarityRow,
)
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    PAPER,
    TEXT,
    apply_plot_style_to_axes,
    plot_style_figure_to_png,
)

HEIGHT, WIDTH = 3.8, 4.4  # inches of one plot
QUANTITY_STYLES = {
    "uncertainty": (BLUE, "-", "uncertainty"),
    "minus_score": (ORANGE, "--", "minus score"),
    "minus_margin": (TEXT, ":", "minus margin"),
}
KIND_STYLES = {
    "own": (BLUE, "-", "own captions"),
    "false_negative": (ORANGE, "--", "other relevant captions"),
    "true_negative": (TEXT, ":", "irrelevant captions"),
}
GREEN = "#009e73"  # colour of the fourth row of a plot
ROW_STYLES = ((BLUE, "-"), (ORANGE, "--"), (TEXT, "-."), (GREEN, ":"))
DrawSimilarityPlots = Callable[[Sequence[Axes], SimilarityResults], None]


def similarity_row(results: SimilarityResults, title: str) -> SimilarityRow:
    """Return the row of the main table that has the given title."""
    return next(row for row in results.tables[MAIN] if row.title == title)


def plot_similarity_uncertainty(results: Sequence[SimilarityResults]) -> bytes:
    """Return a PNG with R@1 in ten bins of increasing uncertainty, for both rows of VACSR."""
    note = (
        "The plots show R@1 in ten bins with equal numbers of queries, for the first seed. Queries "
        "are sorted by the uncertainty, by minus the score, or by minus the margin of the first "
        "item over the second item. Each bin contains only a tenth of the queries, so "
        "the R@1 of a bin can vary by several points."
    )
    return _draw_similarity_grid(results, 2 * len(DIRECTIONS), _draw_uncertainty, note)


def plot_similarity_distributions(results: Sequence[SimilarityResults]) -> bytes:
    """Return a PNG with the distributions of scores of VACSR, sigmoid and contrastive loss."""
    note = (
        "The histograms show the scores of own captions, of other relevant captions and of "
        "irrelevant captions, for the first seed. A caption is relevant if all objects that the "
        "caption mentions are in the image. The first and the last bin include all scores outside "
        "the axis."
    )
    return _draw_similarity_grid(results, 3, _draw_distributions, note)


def plot_similarity_noise(results: Sequence[SimilarityResults]) -> bytes:
    """Return a PNG with mAP@R and R@1 against the fraction of noisy captions."""
    note = (
        "Points are means over seeds and both retrieval directions. Bars extend from the lowest to "
        "the highest value of a seed. The vertical axes do not start at 0."
    )
    return _draw_similarity_grid(results, 2, _draw_noise, note)


def _draw_similarity_grid(
    results: Sequence[SimilarityResults], columns: int, draw: DrawSimilarityPlots, note: str
) -> bytes:
    """Return a PNG with one row of plots for each dataset."""
    height, width = HEIGHT * len(results) + 0.5, WIDTH * columns
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    grid = figure.subplots(len(results), columns, squeeze=False)
    for result, row in zip(results, grid, strict=True):
        draw(list(row), result)
    figure.subplots_adjust(wspace=0.3, hspace=0.4)
    return plot_style_figure_to_png(
        figure, left=0.7 / width, bottom=0.8 / height, top=1 - 0.4 / height, note=note
    )


def _title_similarity_plot(axes: Axes, text: str) -> None:
    axes.set_title(text, color=TEXT, fontsize=9, loc="left")


def _draw_uncertainty(grid: Sequence[Axes], results: SimilarityResults) -> None:
    rows = [similarity_row(results, setting.title) for setting in (VACSR, DETACHED)]
    panels = [(row, direction) for row in rows for direction in DIRECTIONS]
    for axes, (row, direction) in zip(grid, panels, strict=True):
        apply_plot_style_to_axes(axes)
        for quantity, (colour, line, label) in QUANTITY_STYLES.items():
            values = row.curves.get(f"{direction}_{quantity}", [])
            numbers = list(range(1, len(values) + 1))
            axes.plot(numbers, values, line, color=colour, marker="o", markersize=3, label=label)
        title = f"{results.dataset}: {row.title}, {direction.replace('_', ' ')}"
        _title_similarity_plot(axes, title)
        axes.set(xlabel="bin, least uncertain first", ylim=(0, _recall_limit(panels)))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    grid[0].set_ylabel("R@1 (own)")
    grid[0].legend(loc="upper right", frameon=False, labelcolor=TEXT, fontsize=8)


def _recall_limit(panels: Sequence[tuple[SimilarityRow, str]]) -> float:
    """Return the upper limit of R@1 in the plots of a dataset, with space for the legend."""
    values = [
        value
        for row, direction in panels
        for quantity in QUANTITY_STYLES
        for value in row.curves.get(f"{direction}_{quantity}", [])
    ]
    return 1.4 * max(values, default=1.0) or 1.0


def _draw_distributions(grid: Sequence[Axes], results: SimilarityResults) -> None:
    for axes, setting in zip(grid, (VACSR, SIGMOID, CONTRASTIVE), strict=True):
        apply_plot_style_to_axes(axes)
        row = similarity_row(results, setting.title)
        for kind in PAIR_KINDS:
            colour, line, label = KIND_STYLES[kind]
            values, edges = row.curves[f"histogram_{kind}"], row.curves["histogram_edges"]
            axes.stairs(values, edges, color=colour, linestyle=line, label=label)
        _title_similarity_plot(axes, f"{results.dataset}: {row.title}")
        axes.set(xlabel="score")
    grid[0].set_ylabel("share of pairs")
    grid[0].legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=8)


def _draw_noise(grid: Sequence[Axes], results: SimilarityResults) -> None:
    titles = list(dict.fromkeys(row.title for row in results.tables[NOISE]))
    metrics = {"relevant_map_at_r": "mAP@R", "recall_at_1": "R@1, own captions"}
    for axes, (metric, label) in zip(grid, metrics.items(), strict=True):
        apply_plot_style_to_axes(axes)
        for number, (title, (colour, line)) in enumerate(zip(titles, ROW_STYLES, strict=True)):
            rows = [row for row in results.tables[NOISE] if row.title == title]
            means = [row.mean(metric) for row in rows]
            below = [row.mean(metric) - min(row.metrics[metric]) for row in rows]
            above = [max(row.metrics[metric]) - row.mean(metric) for row in rows]
            shift = 0.006 * (number - 1.5)  # so that bars do not overlap
            ratios = [row.setting.noise + shift for row in rows]
            axes.errorbar(
                *(ratios, means, [below, above]),
                color=colour,
                linestyle=line,
                capsize=2,
                label=title,
            )
        _title_similarity_plot(axes, f"{results.dataset}: {label}")
        axes.set(xlabel="fraction of permuted training captions")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    grid[0].legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=8)
