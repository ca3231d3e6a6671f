"""Define the common style of all plots of a report.

The functions do not use the global state of pyplot, so figures in a notebook are not affected.
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
WIDTH = 5.4  # inches; small, so that text is readable on a phone
LABEL_LENGTH = 22  # characters of a label on an axis
NOTE_LINE_LENGTH, NOTE_LINE_HEIGHT = 86, 0.155  # characters and inches of a line of a note
PLOTS = "plots"  # folder of the plots in the folder of a report
TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)

# Blue and orange differ under every kind of colour blindness. A dark page inverts light and dark.
PAPER, TEXT, FAINT = "#ffffff", "#1d2430", "#d8dde5"
BLUE, ORANGE, BAND = "#0072b2", "#d55e00", "#dbe7f0"


@dataclass(frozen=True)
class Plot:
    """One plot of a report.

    Attributes:
        name: File name without suffix.
        title: Title above the plot.
        alt: Description of the content, for screen readers.
        caption: Explanation of how to read the plot.
        png: Content of the PNG file.
    """

    name: str
    title: str
    alt: str
    caption: str
    png: bytes

    @property
    def file(self) -> str:
        """Return the path of the PNG file in the folder of a report."""
        return f"{PLOTS}/{self.name}.png"


def new_figure_in_plot_style(height: float) -> Figure:
    """Return an empty figure with the width of all report plots.

    Args:
        height: Height of the figure in inches.
    """
    return Figure(figsize=(WIDTH, height), facecolor=PAPER)


def shorten_label_for_plot_style(name: str, length: int = LABEL_LENGTH) -> str:
    """Return a label on one line, truncated to ``length`` characters.

    Example:
        >>> shorten_label_for_plot_style("a name that goes on and on")
        'a name that goes on a…'
    """
    line = " ".join(name.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def abbreviate_count_for_plot_style(count: float) -> str:
    """Format a count in a short form, with k for thousands and M for millions.

    Example:
        >>> [abbreviate_count_for_plot_style(n) for n in (7, 999, 1234, 45678, 2_000_000)]
        ['7', '999', '1.2k', '46k', '2M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            digits = 1 if count < 10 * size else 0
            return f"{count / size:.{digits}f}".removesuffix(".0") + letter
    return f"{count:.0f}"


def set_plot_style_percent_ticks(axis: Axis) -> None:
    """Set ticks at 0 %, 20 %, …, 100 % on an axis from 0 to 1."""
    axis.set_ticks(TICKS, [f"{100 * share:.0f} %" for share in TICKS])


def set_plot_style_log_count_axis(axes: Axes, greatest: float) -> None:
    """Set a logarithmic y axis for counts.

    Args:
        axes: Axes to change.
        greatest: Largest count on the axis.
    """
    ticks = 10.0 ** np.arange(1 + np.log10(max(greatest, 1)))
    axes.set_ylim(0.5, 8 * max(greatest, 1))
    axes.set_yscale("log", nonpositive="clip")
    axes.set_yticks(ticks, [abbreviate_count_for_plot_style(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def apply_plot_style_to_axes(axes: Axes) -> None:
    """Set background, grid, text colours and font sizes of axes to the report style."""
    axes.set_facecolor(PAPER)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=TEXT, fontsize=10)
    axes.yaxis.label.set(color=TEXT, fontsize=10)
    for spine in axes.spines.values():
        spine.set_visible(False)


def plot_style_figure_to_png(
    figure: Figure, *, left: float, bottom: float, top: float, note: str = ""
) -> bytes:
    """Render a figure as a PNG file.

    Args:
        figure: Figure to render.
        left: Left edge of the axes, as a fraction of the figure width.
        bottom: Lower edge of the axes if there is no note, as a fraction of the figure height.
        top: Upper edge of the axes, as a fraction of the figure height.
        note: Text in a small font at the lower edge of the figure.

    Returns:
        Content of the PNG file.
    """
    FigureCanvasAgg(figure)
    lines = textwrap.wrap(note, NOTE_LINE_LENGTH)
    height = figure.get_figheight()
    bottom += len(lines) * NOTE_LINE_HEIGHT / height
    for row, line in enumerate(reversed(lines)):
        y = (row * NOTE_LINE_HEIGHT + 0.05) / height
        figure.text(0.5, y, line, color=TEXT, alpha=0.8, fontsize=8.5, ha="center")
    figure.subplots_adjust(left=left, bottom=bottom, right=0.96, top=top, hspace=0.22)
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # labels may be in any script
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()
