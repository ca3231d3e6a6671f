"""Heat map sheet: an image and its heat maps in one PNG file."""

import textwrap
from collections.abc import Sequence

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
MIN_PANELS = 3  # panels in a row: the image, its strongest labels, the region weights
NOTE = (
    "The colours of each map run from its lowest value (purple) to its highest value (yellow). "
    "Therefore even the map of a negative label has a yellow region."
)
Panel = tuple[str, Image.Image]


def render_heat_map_sheet(path: str, regions: RegionMaps) -> bytes:
    """Render an image with its strongest labels, region weights and heat maps.

    Args:
        path: Path of the image.
        regions: Region maps of the image. The sheet contains the first six labels of ``maps``.

    Returns:
        Content of a PNG file.

    Raises:
        DataError: If the image cannot be read.
    """
    image = ImageOps.contain(open_image(path, min_side=SIDE), (SIDE, SIDE))
    crop_mode, names = regions.crop_mode, list(regions.maps)[: len(COLOURS)]
    overview: list[Panel] = [
        ("image", image),
        ("all labels", draw_region_overlay_of_strongest_labels(image, regions)),
    ]
    if regions.region_weights is not None:
        weights_map = draw_heat_map(image, regions.region_weights, crop_mode=crop_mode)
        overview.append((REGION_WEIGHTS.lower(), weights_map))
    heat_maps = [
        (title, [(name, draw_heat_map(image, maps[name], crop_mode=crop_mode)) for name in names])
        for title, maps in region_overlay_heat_map_groups(regions)
    ]
    return _draw_heat_map_sheet(names, [("", overview), *heat_maps])


def _draw_heat_map_sheet(
    names: Sequence[str], rows: Sequence[tuple[str, Sequence[Panel]]]
) -> bytes:
    n_columns = 1 + max(MIN_PANELS, len(names))
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
                shorten_label_for_plot_style(caption, TEXT_WIDTH), color=TEXT, fontsize=9
            )
            panel_title.set_parse_math(False)
    patches = [
        Patch(color=colour, label=shorten_label_for_plot_style(name, TEXT_WIDTH))
        for name, colour in zip(names, COLOURS, strict=False)
    ]
    _write_heat_map_sheet_row_title(grid[0, 0], f"{STRONGEST_LABELS}:")
    position = {"loc": "upper left", "bbox_to_anchor": (0, 0.68), "borderaxespad": 0}
    legend = grid[0, 0].legend(
        handles=patches, frameon=False, fontsize=8.5, labelcolor=TEXT, **position
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    top = 1 - 0.3 / figure.get_figheight()
    return plot_style_figure_to_png(figure, left=0.02, bottom=0.01, top=top, note=NOTE)


def _write_heat_map_sheet_row_title(axes: Axes, text: str) -> None:
    """Write the title of a row in the upper left corner of empty axes."""
    lines = "\n".join(textwrap.wrap(text, TEXT_WIDTH))
    axes.text(0, 1, lines, color=TEXT, fontsize=9.5, va="top", transform=axes.transAxes)
