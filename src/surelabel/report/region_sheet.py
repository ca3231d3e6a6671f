"""One picture and what its regions say, as a PNG file."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image, ImageOps

from surelabel.data.pictures import open_picture
from surelabel.evaluation import Regions
from surelabel.report.drawing import PAPER, TEXT, drawn, shortened
from surelabel.report.pictures import heat_map
from surelabel.report.regions import COLOURS, OWNERS, PRESENCE, owner_map, rows_of

SIDE = 256  # pixels of the longer side, to which small pictures are enlarged
WIDTH, HEIGHT = 1.75, 1.95  # inches a picture
LETTERS = 20  # of a line beside a row, and of a name above a map
FEWEST = 3  # pictures that a row has room for: the picture, its labels, how much regions count
NOTE = (
    "Colours run from the weakest (purple) to the strongest region (yellow) of each map alone: "
    "a label that is not there has a strongest region too."
)
Cell = tuple[str, Image.Image]


def region_sheet(path: str, regions: Regions) -> bytes:
    """A picture, the label of each region, how much regions count, and heat maps label by label.

    Args:
        path: The picture.
        regions: Of it; the first labels are shown, six at most.

    Returns:
        A PNG file.

    Raises:
        DataError: the picture cannot be read.
    """
    picture = ImageOps.contain(open_picture(path, least_side=SIDE), (SIDE, SIDE))
    cover, names = regions.cover, list(regions.maps)[: len(COLOURS)]
    first: list[Cell] = [("the picture", picture), ("all labels", owner_map(picture, regions))]
    if regions.presence is not None:
        first.append((PRESENCE.lower(), heat_map(picture, regions.presence, cover=cover)))
    others = [
        (title, [(name, heat_map(picture, maps[name], cover=cover)) for name in names])
        for title, maps in rows_of(regions)
    ]
    return _drawn(names, [("", first), *others])


def _drawn(names: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell]]]) -> bytes:
    across = 1 + max(FEWEST, len(names))
    figure = Figure(figsize=(across * WIDTH, len(rows) * HEIGHT), facecolor=PAPER)
    grid = figure.subplots(len(rows), across, squeeze=False, gridspec_kw={"wspace": 0.06})
    for axes in grid.flat:
        axes.set_axis_off()
        axes.set_anchor("N")
    for (title, cells), (beside, *places) in zip(rows, grid, strict=True):
        _written(beside, title)
        for (caption, image), axes in zip(cells, places, strict=False):
            axes.imshow(image)
            above = axes.set_title(shortened(caption, LETTERS), color=TEXT, fontsize=9)
            above.set_parse_math(False)
    colours = [
        Patch(color=c, label=shortened(n, LETTERS)) for n, c in zip(names, COLOURS, strict=False)
    ]
    _written(grid[0, 0], f"{OWNERS}:")
    below = {"loc": "upper left", "bbox_to_anchor": (0, 0.68), "borderaxespad": 0}
    key = grid[0, 0].legend(handles=colours, frameon=False, fontsize=8.5, labelcolor=TEXT, **below)
    for text in key.get_texts():
        text.set_parse_math(False)
    return drawn(figure, left=0.02, bottom=0.01, top=1 - 0.3 / figure.get_figheight(), note=NOTE)


def _written(axes: Axes, text: str) -> None:
    """Some words beside a row, from its upper end down."""
    lines = "\n".join(textwrap.wrap(text, LETTERS))
    axes.text(0, 1, lines, color=TEXT, fontsize=9.5, va="top", transform=axes.transAxes)
