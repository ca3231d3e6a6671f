"""How every plot of a report looks.

Nothing here touches the state of pyplot, so that a notebook keeps its own figures.
"""

import textwrap
import warnings
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

DPI = 144
WIDTH = 5.4  # inches: small, so that the letters are readable on a phone
NAME_LENGTH = 22
LINE, LINE_HEIGHT = 86, 0.155  # of notes: letters, and inches
TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)

# Blue and orange stay apart for every kind of colour blindness. A dark page turns them around.
PAPER, TEXT, FAINT = "#ffffff", "#1d2430", "#d8dde5"
BLUE, ORANGE, BAND = "#0072b2", "#d55e00", "#dbe7f0"


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        name: Of its file, without suffix.
        title: Above it.
        alt: What it shows, for those who cannot see it.
        caption: How to read it.
        png: The file.
    """

    name: str
    title: str
    alt: str
    caption: str
    png: bytes


def sheet(height: float) -> Figure:
    """A figure of the usual width, this many inches high."""
    return Figure(figsize=(WIDTH, height), facecolor=PAPER)


def shortened(name: str, length: int = NAME_LENGTH) -> str:
    """A name on one line that fits beside a bar.

    Example:
        >>> shortened("a name that goes on and on")
        'a name that goes on a…'
    """
    line = " ".join(name.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def short(count: float) -> str:
    """A count in four characters or fewer.

    Example:
        >>> [short(n) for n in (7, 999, 1234, 45678, 2_000_000)]
        ['7', '999', '1.2k', '46k', '2M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            digits = 1 if count < 10 * size else 0
            return f"{count / size:.{digits}f}".removesuffix(".0") + letter
    return f"{count:.0f}"


def percent(axis: Axis) -> None:
    """Ticks at every fifth of 0 to 1, in percent."""
    axis.set_ticks(TICKS, [f"{100 * share:.0f} %" for share in TICKS])


def powers(axes: Axes, greatest: float) -> None:
    """A logarithmic scale for counts up to ``greatest``."""
    ticks = 10.0 ** np.arange(1 + np.log10(max(greatest, 1)))
    axes.set_ylim(0.5, 8 * max(greatest, 1))
    axes.set_yscale("log", nonpositive="clip")
    axes.set_yticks(ticks, [short(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def style(axes: Axes) -> None:
    """Paper, grid and letters as everywhere in a report."""
    axes.set_facecolor(PAPER)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=TEXT, fontsize=10)
    axes.yaxis.label.set(color=TEXT, fontsize=10)
    for side in axes.spines.values():
        side.set_visible(False)


def drawn(figure: Figure, *, left: float, bottom: float, top: float, note: str = "") -> bytes:
    """The file.

    Args:
        figure: What to draw.
        left: Share of the figure left of the axes.
        bottom: Share below them, without the note.
        top: Upper end of the axes, as a share of the figure.
        note: How to read it, in small letters along the lower edge.
    """
    FigureCanvasAgg(figure)
    lines = textwrap.wrap(note, LINE)
    height = figure.get_figheight()
    bottom += len(lines) * LINE_HEIGHT / height
    for row, line in enumerate(reversed(lines)):
        place = (row * LINE_HEIGHT + 0.05) / height
        figure.text(0.5, place, line, color=TEXT, alpha=0.8, fontsize=8.5, ha="center")
    figure.subplots_adjust(left=left, bottom=bottom, right=0.96, top=top, hspace=0.22)
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # names in any script
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()
