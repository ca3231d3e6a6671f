"""Plot the co-occurrence of labels: predicted by recognizer and baseline, and annotated."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from surelabel.arrays import Array
from surelabel.report.baseline_comparison import (
    GROUND_TRUTH,
    RECOGNIZER,
    WITH_ARTICLE,
    ThresholdedLabels,
    baseline_comparison_pairs_per_image,
)
from surelabel.report.metric_descriptions import format_described_metric_with_unit
from surelabel.report.plot_style import (
    BLUE,
    FAINT,
    PAPER,
    TEXT,
    Plot,
    apply_plot_style_to_axes,
    new_figure_in_plot_style,
    plot_style_figure_to_png,
    shorten_label_for_plot_style,
)

MAX_LABELS = 20
COLUMNS = 2  # matrices in a row
LABEL_LENGTH = 14  # characters of a label beside a matrix
DARK_BLUE, GREY = "#00213a", "#aab2bf"  # colour of the highest share; of unknown pairs
COLOUR_MAP = LinearSegmentedColormap.from_list("pairs", [PAPER, "#a6cbe6", BLUE, DARK_BLUE])
Order = npt.NDArray[np.int64]


def plot_cooccurrence(
    names: Sequence[str], labels_by_source: Mapping[str, ThresholdedLabels]
) -> Plot | None:
    """Plot one co-occurrence matrix for each source of predictions and for the ground truth.

    Args:
        names: Labels, length c.
        labels_by_source: Mapping from source (recognizer or baseline) to predicted labels.

    Returns:
        Co-occurrence plot, or None if the recognizer is not calibrated or there is only one label.
    """
    if not labels_by_source or len(names) < 2:
        return None
    positive = labels_by_source[RECOGNIZER].cooccurrence.positive
    assert positive is not None  # an evaluation has targets
    order = select_cooccurrence_plot_labels(positive)
    selected_names = [names[column] for column in order]
    matrices = {
        source: _select_cooccurrence_plot_pairs(labels.cooccurrence.predicted, order)
        for source, labels in labels_by_source.items()
    }
    matrices[GROUND_TRUTH] = _select_cooccurrence_plot_pairs(positive, order)
    n_omitted = len(positive) - len(order)
    return Plot(
        "cooccurrence",
        f"Co-occurrence of the {len(order)} most frequent labels",
        f"{len(matrices)} matrices show, for each pair of labels, the fraction of images with both "
        f"labels. "
        f"{_describe_cooccurrence_plot_pairs(matrices, selected_names)}",
        _cooccurrence_plot_caption(labels_by_source, positive),
        _draw_cooccurrence_matrices(matrices, selected_names, n_omitted),
    )


def select_cooccurrence_plot_labels(cooccurrence: Array) -> Order:
    """Return the columns of the most frequent labels, at most ``MAX_LABELS``, sorted by frequency.

    Args:
        cooccurrence: Fraction of images with both labels of a pair, ``(c, c)``. The diagonal
            contains the fraction of images with each label.

    Example:
        >>> select_cooccurrence_plot_labels(np.array([[0.1, 0.0], [0.0, 0.3]]))
        array([1, 0])
    """
    return np.argsort(-np.nan_to_num(np.diag(cooccurrence)), kind="stable")[:MAX_LABELS]


def _select_cooccurrence_plot_pairs(cooccurrence: Array, order: Order) -> Array:
    """Return the co-occurrence matrix of selected labels, with NaN on the diagonal."""
    selected = cooccurrence[np.ix_(order, order)].copy()
    np.fill_diagonal(selected, np.nan)
    return selected


def _cooccurrence_plot_caption(
    labels_by_source: Mapping[str, ThresholdedLabels], positive: Array
) -> str:
    predicted_pairs = [
        f"{WITH_ARTICLE[source]} predicts "
        f"{baseline_comparison_pairs_per_image(labels.cooccurrence.predicted):.2f} pairs"
        for source, labels in labels_by_source.items()
    ]
    errors = [
        format_described_metric_with_unit(labels.cooccurrence.mean_absolute_difference, "points")
        + f" for {WITH_ARTICLE[source]}"
        for source, labels in labels_by_source.items()
    ]
    shares = positive[np.triu_indices(len(positive), k=1)]
    error_without_pairs = baseline_comparison_pairs_per_image(positive) / max(
        1, (~np.isnan(shares)).sum()
    )
    return (
        f"On average, an image has {baseline_comparison_pairs_per_image(positive):.2f} pairs of "
        f"positive labels; {' and '.join(predicted_pairs)}. The error of a pair is the difference "
        "between the predicted and the true fraction of images with both labels. The mean absolute "
        f"error over all pairs is {' and '.join(errors)}. Without any predicted pair, the mean "
        "absolute error would be "
        f"{format_described_metric_with_unit(error_without_pairs, 'points')}."
    )


def _describe_cooccurrence_plot_pairs(matrices: Mapping[str, Array], names: Sequence[str]) -> str:
    """Describe the most frequent label pair of each co-occurrence matrix."""
    sentences = []
    for source, matrix in matrices.items():
        shares = np.nan_to_num(matrix)
        row, column = divmod(int(shares.argmax()), len(shares))
        share = 100 * shares[row, column]
        sentences.append(
            f"{source}: the most frequent pair is {names[row]} and {names[column]}, in "
            f"{share:.1f} % of the images"
        )
    return f"{'; '.join(sentences)}."


def _draw_cooccurrence_matrices(
    matrices: Mapping[str, Array], names: Sequence[str], n_omitted: int
) -> bytes:
    height, bottom = (5.6, 0.02) if len(matrices) > COLUMNS else (3.6, 0.07)
    figure = new_figure_in_plot_style(height)
    panels, colour_bar = _add_cooccurrence_matrix_axes(figure, len(matrices))
    greatest = max(float(np.nan_to_num(matrix).max()) for matrix in matrices.values()) or 1.0
    tick_labels = [shorten_label_for_plot_style(name, LABEL_LENGTH) for name in names]
    for i, (axes, (source, matrix)) in enumerate(zip(panels, matrices.items(), strict=True)):
        image = _draw_cooccurrence_matrix(axes, source, 100 * matrix, 100 * greatest)
        axes.set_yticks(range(len(names)), tick_labels if i % COLUMNS == 0 else [""] * len(names))
        for text in axes.get_yticklabels():
            text.set_parse_math(False)
    _draw_cooccurrence_colour_bar(colour_bar, image)
    note = (
        "Rows and columns are sorted by frequency, most frequent label first. The diagonal and "
        f"pairs without known targets are grey. Number of omitted labels: {n_omitted:,}."
    )
    return plot_style_figure_to_png(
        figure, left=0.2, bottom=bottom, top=1 - 0.25 / height, note=note
    )


def _add_cooccurrence_matrix_axes(figure: Figure, n_panels: int) -> tuple[list[Axes], Axes]:
    """Add axes for each co-occurrence matrix, two in a row, and axes for the colour bar."""
    if n_panels > COLUMNS:
        cells = figure.subplots(2, COLUMNS).ravel()
        cells[-1].set_axis_off()
        return list(cells[:-1]), cells[-1].inset_axes((0.1, 0.5, 0.8, 0.05))
    grid = figure.add_gridspec(2, COLUMNS, height_ratios=[1, 0.2])
    lower = figure.add_subplot(grid[1, :])
    lower.set_axis_off()
    panels = [figure.add_subplot(grid[0, i]) for i in range(COLUMNS)]
    return panels, lower.inset_axes((0.3, 0.6, 0.4, 0.25))


def _draw_cooccurrence_matrix(axes: Axes, title: str, percent: Array, greatest: float) -> AxesImage:
    apply_plot_style_to_axes(axes)
    axes.set_facecolor(GREY)
    axes.grid(False)
    image = axes.imshow(percent, COLOUR_MAP, Normalize(0, greatest), aspect="auto")
    axes.set_xticks([])
    axes.tick_params(labelsize=7, pad=2)
    axes.set_title(title, color=TEXT, fontsize=9.5, loc="left", pad=4)
    for spine in axes.spines.values():
        spine.set(visible=True, color=FAINT)
    return image


def _draw_cooccurrence_colour_bar(axes: Axes, image: AxesImage) -> None:
    bar = axes.figure.colorbar(image, cax=axes, orientation="horizontal")
    bar.set_label("images with both labels, %", color=TEXT, fontsize=8.5)
    axes.tick_params(colors=TEXT, labelsize=8, length=0)
    for spine in axes.spines.values():
        spine.set_edgecolor(FAINT)
