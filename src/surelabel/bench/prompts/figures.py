"""Plot the figures of the comparison of prompt tuning, with one row of plots per dataset."""

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from surelabel.bench.class_group_metrics import NEW
from surelabel.bench.prompts.page import (
    text_metric_correlation,
    text_metric_point,
    text_metric_rows,
)
from surelabel.bench.prompts.plan import CCR, LOSS_TITLES, NONE
from surelabel.bench.prompts.results import CURVE, WEIGHTS, PromptResults, PromptRow
from surelabel.metrics.arrays.nan_division import mean_ignoring_nan
from surelabel.report.plot_style import (
    BLUE,
    ORANGE,
    PAPER,
    TEXT,
    apply_plot_style_to_axes,
    plot_style_figure_to_png,
)

HEIGHT = 4.6  # inches of the plots of one dataset
WIDTH_SPACE = 0.4  # space between plots, relative to their width
K = 5  # number of nearest labels of ED@K and NP@K
COLOURS = (TEXT, ORANGE, BLUE, "#009e73", "#cc79a7", "#56b4e9", "#8a6d00", "#7a7a7a")
MARKERS = {NONE: "o", CCR: "s"}  # all other variants have ^
COVARIANCE_LIMIT = 0.5  # limit of the colour scale
DrawPlots = Callable[[Sequence[Axes], PromptResults], None]


def plot_prompt_texts(results: Sequence[PromptResults]) -> bytes:
    """Return a PNG with neighbourhood preservation against embedding divergence, by loss."""
    n_losses = len(results[0].plan.losses)
    note = (
        "Each point is the mean of base and new labels. Circles show rows without a regularizer, "
        "squares rows with CCR, and triangles rows with DOR. r is the Pearson correlation over the "
        "points of one plot."
    )
    return _draw_prompt_grid(results, n_losses, 5.2, _draw_texts, note)


def plot_prompt_covariance(results: Sequence[PromptResults]) -> bytes:
    """Return a PNG with the correlation of predictions minus text similarity, as heat maps."""
    note = (
        "The heat maps show the correlation of predictions on negative targets minus the cosine of "
        "the frozen text vectors. Values are for the test images and the first fit with BCE. "
        "Labels are sorted by group: head, medium and tail base labels, then new labels. The bars "
        "are mean absolute values over the pairs of labels from two groups."
    )
    return _draw_prompt_grid(results, 3, 5.2, _draw_covariance, note)


def plot_prompt_shots(results: Sequence[PromptResults]) -> bytes:
    """Return a PNG with metrics of new labels against the number of shots."""
    note = (
        "The plots show metrics of new labels with BCE. Lines are means over seeds, and error bars "
        "extend two standard errors to each side."
    )
    return _draw_prompt_grid(results, 3, 4.6, _draw_shots, note)


def plot_prompt_weights(results: Sequence[PromptResults]) -> bytes:
    """Return a PNG with the ECE of new labels and the processor time per epoch, as tables.

    The rows of a table are batch sizes, and its columns are weights of CCR.
    """
    note = "All fits use BCE. Weight 0 means no regularizer. The ECE is before calibration."
    return _draw_prompt_grid(results, 2, 4.8, _draw_weights, note)


def _draw_prompt_grid(
    results: Sequence[PromptResults], columns: int, width: float, draw: DrawPlots, note: str
) -> bytes:
    """Return a PNG with one row of plots for each dataset."""
    height = HEIGHT * len(results)
    figure = Figure(figsize=(width * columns, height), facecolor=PAPER)
    grid = figure.subplots(len(results), columns, squeeze=False)
    for result, row in zip(results, grid, strict=True):
        draw(list(row), result)
        row[0].set_title(
            f"{result.dataset}: {row[0].get_title(loc='left')}",
            color=TEXT,
            fontsize=10,
            loc="left",
        )
    figure.subplots_adjust(wspace=WIDTH_SPACE)
    return plot_style_figure_to_png(
        figure, left=0.8 / (width * columns), bottom=0.6 / height, top=1 - 0.4 / height, note=note
    )


def _title_plot(axes: Axes, text: str) -> None:
    axes.set_title(text, color=TEXT, fontsize=10, loc="left")


def _draw_texts(grid: Sequence[Axes], results: PromptResults) -> None:
    for axes, loss in zip(grid, results.plan.losses, strict=True):
        apply_plot_style_to_axes(axes)
        rows = text_metric_rows(results.tables[loss])
        tuners = list(dict.fromkeys(row.setting.tuner_title for row in rows))
        for row in rows:
            divergence, preservation = text_metric_point(row, K)
            colour = COLOURS[tuners.index(row.setting.tuner_title) % len(COLOURS)]
            label = row.setting.tuner_title if row.variant == NONE else None
            marker = MARKERS.get(row.variant, "^")
            axes.plot(divergence, preservation, marker, color=colour, markersize=7, label=label)
        r = text_metric_correlation(results.tables[loss], K)
        _title_plot(axes, LOSS_TITLES[loss] + ("" if isnan(r) else f", r = {r:.2f}"))
        axes.ticklabel_format(useOffset=False)
        axes.set(xlabel=f"embedding divergence ED@{K}")
        axes.set_ylabel(f"neighbourhood preservation NP@{K}")
        axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)


def _draw_covariance(grid: Sequence[Axes], results: PromptResults) -> None:
    covariance, tuner = results.covariance, results.plan.studied_tuner
    groups = list(dict.fromkeys(covariance["groups"]))
    borders = [covariance["groups"].index(group) - 0.5 for group in groups]
    for axes, variant in zip(grid, (NONE, CCR), strict=False):
        apply_plot_style_to_axes(axes)
        axes.grid(visible=False)
        image = axes.imshow(
            covariance[variant], cmap="PuOr", vmin=-COVARIANCE_LIMIT, vmax=COVARIANCE_LIMIT
        )
        for border in borders[1:]:
            axes.axhline(border, color=TEXT, linewidth=0.6)
            axes.axvline(border, color=TEXT, linewidth=0.6)
        axes.set_xticks([border + 0.5 for border in borders], groups, ha="left")
        axes.set_yticks([border + 0.5 for border in borders], groups, va="top")
        colorbar = axes.figure.colorbar(image, ax=axes, fraction=0.046)
        colorbar.ax.tick_params(colors=TEXT, labelsize=8)
        _title_plot(axes, f"{tuner}, {variant}")
    _draw_covariance_by_group(grid[2], results, groups)


def _draw_covariance_by_group(axes: Axes, results: PromptResults, groups: Sequence[str]) -> None:
    apply_plot_style_to_axes(axes)
    of_label = np.array(results.covariance["groups"])
    pairs = [(a, b) for i, a in enumerate(groups) for b in groups[i:]]
    for offset, (variant, colour) in enumerate(((NONE, TEXT), (CCR, ORANGE))):
        errors = np.abs(np.array(results.covariance[variant]))
        np.fill_diagonal(errors, np.nan)
        means = [mean_ignoring_nan(errors[np.ix_(of_label == a, of_label == b)]) for a, b in pairs]
        positions = np.arange(len(pairs)) + 0.4 * offset
        axes.barh(positions, means, 0.38, color=colour, label=variant)
    axes.set_yticks(np.arange(len(pairs)) + 0.2, [f"{a}, {b}" for a, b in pairs])
    axes.invert_yaxis()
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.06),
        ncol=2,
        frameon=False,
        labelcolor=TEXT,
        fontsize=9,
    )
    _title_plot(axes, "mean absolute difference")


def _draw_shots(grid: Sequence[Axes], results: PromptResults) -> None:
    metrics = {
        f"raw_{NEW}_mean_average_precision": "mAP, %",
        f"raw_{NEW}_ece": "ECE before calibration, points",
        f"calibrated_{NEW}_brier_skill": "Brier skill after calibration, %",
    }
    for axes, (metric, label) in zip(grid, metrics.items(), strict=True):
        apply_plot_style_to_axes(axes)
        for variant, colour in ((NONE, TEXT), (CCR, ORANGE)):
            rows = [row for row in results.tables[CURVE] if row.variant == variant]
            axes.errorbar(
                [row.setting.shots for row in rows],
                [100 * row.mean(metric) for row in rows],
                yerr=[200 * _standard_error(row, metric) for row in rows],
                fmt="o-",
                color=colour,
                markersize=5,
                capsize=3,
                label=variant,
            )
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_xscale("log", base=2)
        axes.set_xticks(results.plan.curve_shots, [str(n) for n in results.plan.curve_shots])
        axes.set(xlabel="shots per base label", ylabel=label)
        axes.legend(loc="best", frameon=False, labelcolor=TEXT, fontsize=9)
    _title_plot(grid[0], results.plan.studied_tuner)


def _standard_error(row: PromptRow, metric: str) -> float:
    """Return the standard error of the mean over seeds, 0 for one seed."""
    values = row.metrics[metric]
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _draw_weights(grid: Sequence[Axes], results: PromptResults) -> None:
    plan, rows = results.plan, results.tables[WEIGHTS]
    shape = (len(plan.batch_sizes), len(plan.weights))
    values = {
        "ECE of new labels, points": [100 * row.mean(f"raw_{NEW}_ece") for row in rows],
        "processor seconds per epoch": [row.mean("epoch_seconds") for row in rows],
    }
    for axes, (title, cells) in zip(grid, values.items(), strict=True):
        apply_plot_style_to_axes(axes)
        axes.grid(visible=False)
        table = np.reshape(cells, shape)
        axes.imshow(table, cmap="Blues", aspect="auto")
        middle = (table.min() + table.max()) / 2
        for (row, column), value in np.ndenumerate(table):
            colour = PAPER if value > middle else TEXT
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
        axes.set_xticks(range(shape[1]), [f"{weight:g}" for weight in plan.weights])
        axes.set_yticks(range(shape[0]), [str(size) for size in plan.batch_sizes])
        axes.set(xlabel="weight λ of CCR", ylabel="batch size")
        _title_plot(axes, title)
