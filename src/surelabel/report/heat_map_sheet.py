"""Render a heat map sheet: an image with its labels and heat maps in one PNG file."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image, ImageOps

from surelabel.data.images import open_image
from surelabel.evaluation import RegionMaps
from surelabel.report.heat_map_drawing import draw_heat_map
from surelabel.report.plot_style import (
    PAPER,
    TEXT,
    plot_style_figure_to_png,
    shorten_label_for_plot_style,
)
from surelabel.report.region_overlay import (
    COLOURS,
    REGION_WEIGHTS,
    STRONGEST_LABELS,
    draw_region_overlay_of_strongest_labels,
    region_overlay_heat_map_groups,
)

SIDE = 256  # pixels of the longer side of a panel; small images are enlarged
WIDTH, HEIGHT = 1.75, 1.95  # inches of a panel
TEXT_WIDTH = 20  # characters of a line beside a row, and of a title above a panel
MIN_PANELS = 3  # panels in a row: the image, the best label of each region, the region weights
NOTE = (
    "In each map, purple is the lowest value and yellow is the highest value. "
    "Therefore, even the map of a negative label has a yellow region."
)
Panel = tuple[str, Image.Image]


@dataclass(frozen=True)
class HeatMapLabel:
    """Label of a heat map sheet.

    Attributes:
        name: Name of the label.
        value: Probability, or score if ``threshold`` is None.
        threshold: Minimum probability of a shown label, in [0, 1]. If None, the scores are not
            calibrated.
        is_shown: Whether the label is shown, with its heat map. A label below its threshold is not
            shown.
    """

    name: str
    value: float
    threshold: float | None
    is_shown: bool

    @property
    def title(self) -> str:
        """Return the name on one line, truncated if it is long, and the value with two decimals."""
        return f"{shorten_label_for_plot_style(self.name, TEXT_WIDTH - 5)} {self.value:.2f}"


def render_heat_map_sheet(path: str, regions: RegionMaps, labels: Sequence[HeatMapLabel]) -> bytes:
    """Render an image with the best label of each region, region weights and heat maps.

    Only shown labels have a heat map and a colour. A label below its threshold is listed below the
    heat maps, with its probability and its threshold.

    Args:
        path: Path of the image.
        regions: Region maps of the image, with a map of each shown label.
        labels: Labels of the image. The first six shown labels have heat maps.

    Returns:
        Content of a PNG file.

    Raises:
        DataError: If the image cannot be read.
    """
    image = ImageOps.contain(open_image(path, min_side=SIDE), (SIDE, SIDE))
    crop_mode, shown = regions.crop_mode, [label for label in labels if label.is_shown]
    shown = shown[: len(COLOURS)]
    regions = replace(regions, maps={label.name: regions.maps[label.name] for label in shown})
    overview: list[Panel] = [("image", image)]
    if shown:
        overview.append(("all labels", draw_region_overlay_of_strongest_labels(image, regions)))
    if regions.region_weights is not None:
        weights_map = draw_heat_map(image, regions.region_weights, crop_mode=crop_mode)
        overview.append((REGION_WEIGHTS.lower(), weights_map))
    heat_maps = [
        (
            title,
            [
                (label.title, draw_heat_map(image, maps[label.name], crop_mode=crop_mode))
                for label in shown
            ],
        )
        for title, maps in region_overlay_heat_map_groups(regions)
        if shown
    ]
    rows = [("", overview), *heat_maps]
    return _draw_heat_map_sheet(shown, rows, describe_labels_of_heat_map_sheet(labels))


def describe_labels_of_heat_map_sheet(labels: Sequence[HeatMapLabel]) -> str:
    """Return the note of a sheet: its colours, its numbers, and the labels without a heat map.

    Args:
        labels: Labels of the image.

    Example:
        >>> labels = [HeatMapLabel("bear", 0.12, 0.5, is_shown=False)]
        >>> describe_labels_of_heat_map_sheet(labels).split(". ")[1]
        'Labels below their threshold have no heat map: bear 0.12 (threshold 0.50).'
    """
    is_calibrated = all(label.threshold is not None for label in labels)
    value = "probability" if is_calibrated else "uncalibrated score"
    sentences = [f"The number beside each label is its {value}."]
    below = [
        f"{shorten_label_for_plot_style(label.name)} {label.value:.2f} "
        f"(threshold {label.threshold:.2f})"
        for label in labels
        if not label.is_shown and label.threshold is not None
    ]
    if below:
        sentences.append(f"Labels below their threshold have no heat map: {', '.join(below)}.")
    if any(label.is_shown for label in labels):
        sentences.append(NOTE)
    return " ".join(sentences)


def _draw_heat_map_sheet(
    labels: Sequence[HeatMapLabel], rows: Sequence[tuple[str, Sequence[Panel]]], note: str
) -> bytes:
    n_columns = 1 + max(MIN_PANELS, len(labels))
    figure = Figure(figsize=(n_columns * WIDTH, len(rows) * HEIGHT), facecolor=PAPER)
    grid = figure.subplots(len(rows), n_columns, squeeze=False, gridspec_kw={"wspace": 0.06})
    for axes in grid.flat:
        axes.set_axis_off()
        axes.set_anchor("N")
    for (title, panels), (title_axes, *panel_axes) in zip(rows, grid, strict=True):
        _write_heat_map_sheet_row_title(title_axes, title)
        for (caption, image), axes in zip(panels, panel_axes, strict=False):
            axes.imshow(image)
            panel_title = axes.set_title(
                shorten_label_for_plot_style(caption, TEXT_WIDTH + 1), color=TEXT, fontsize=9
            )
            panel_title.set_parse_math(False)
    if labels:
        _write_heat_map_sheet_row_title(grid[0, 0], f"{STRONGEST_LABELS}:")
        _draw_heat_map_sheet_legend(grid[0, 0], labels)
    else:
        _write_heat_map_sheet_row_title(grid[0, 0], "No label reaches its threshold.")
    top = 1 - 0.3 / figure.get_figheight()
    return plot_style_figure_to_png(figure, left=0.02, bottom=0.01, top=top, note=note)


def _draw_heat_map_sheet_legend(axes: Axes, labels: Sequence[HeatMapLabel]) -> None:
    """Draw the colours of labels in the left of empty axes."""
    patches = [
        Patch(color=colour, label=label.title)
        for label, colour in zip(labels, COLOURS, strict=False)
    ]
    legend = axes.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=(0, 0.68),
        borderaxespad=0,
        frameon=False,
        fontsize=8.5,
        labelcolor=TEXT,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _write_heat_map_sheet_row_title(axes: Axes, text: str) -> None:
    """Write the title of a row in the upper left corner of empty axes."""
    lines = "\n".join(textwrap.wrap(text, TEXT_WIDTH))
    axes.text(0, 1, lines, color=TEXT, fontsize=9.5, va="top", transform=axes.transAxes)
