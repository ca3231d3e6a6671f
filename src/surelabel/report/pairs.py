"""Which labels are shown together, and which are together."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from surelabel.evaluation import Evaluation
from surelabel.records import Array
from surelabel.report.claims import CALLED, NOW, TRUTH, Claims, claimed, pairs_a_picture
from surelabel.report.drawing import BLUE, FAINT, PAPER, TEXT, Plot, drawn, sheet, shortened, style
from surelabel.report.meanings import measured

SHOWN = 20
ACROSS = 2
NAME = 14  # letters of a name beside a map
DARK, ITSELF = "#00213a", "#aab2bf"
NEVER_TO_OFTEN = LinearSegmentedColormap.from_list("pairs", [PAPER, "#a6cbe6", BLUE, DARK])
Order = npt.NDArray[np.int64]


def pairs_plot(evaluation: Evaluation) -> Plot | None:
    """Maps of how often two labels are together; None without probabilities, or with one label."""
    found = claimed(evaluation)
    if not found or len(evaluation.predictions.names) < 2:
        return None
    there = found[NOW].together.present
    assert there is not None  # an evaluation has a truth
    order = frequent(there)
    names = [evaluation.predictions.names[c] for c in order]
    maps = {who: _part(claims.together.shown, order) for who, claims in found.items()}
    maps[TRUTH] = _part(there, order)
    left_out = len(there) - len(order)
    return Plot(
        "labels_together",
        f"Which labels are together: the {len(order)} most frequent",
        f"{len(maps)} maps of how often two labels are in one picture. {_listed(maps, names)}",
        _caption(found, there),
        _drawn(maps, names, left_out),
    )


def frequent(together: Array) -> Order:
    """Up to ``SHOWN`` labels in the order of how many pictures have them, the most frequent first.

    Example:
        >>> frequent(np.array([[0.1, 0.0], [0.0, 0.3]]))
        array([1, 0])
    """
    return np.argsort(-np.nan_to_num(np.diag(together)), kind="stable")[:SHOWN]


def _part(together: Array, order: Order) -> Array:
    """The labels that are shown; a label with itself is no pair."""
    part = together[np.ix_(order, order)].copy()
    np.fill_diagonal(part, np.nan)
    return part


def _caption(found: Mapping[str, Claims], there: Array) -> str:
    pairs = [
        f"{CALLED[who]} shows {pairs_a_picture(claims.together.shown):.2f}"
        for who, claims in found.items()
    ]
    far = [
        f"{measured(claims.together.distance, 'points')} for {CALLED[who]}"
        for who, claims in found.items()
    ]
    shares = there[np.triu_indices(len(there), k=1)]
    never = pairs_a_picture(there) / max(1, (~np.isnan(shares)).sum())
    return (
        f"A picture has {pairs_a_picture(there):.2f} pairs of labels; {' and '.join(pairs)}. How "
        f"often two labels are together is off by {' and '.join(far)}, the mean over all pairs of "
        f"labels; to say never would be off by {measured(never, 'points')}."
    )


def _listed(maps: Mapping[str, Array], names: Sequence[str]) -> str:
    """The most frequent pair of each map."""
    told = []
    for who, of in maps.items():
        row, column = divmod(int(np.nan_to_num(of).argmax()), len(of))
        share = 100 * np.nan_to_num(of)[row, column]
        told.append(f"{who}: most often {names[row]} and {names[column]}, in {share:.1f} %")
    return f"{'; '.join(told)}."


def _drawn(maps: Mapping[str, Array], names: Sequence[str], left_out: int) -> bytes:
    height, bottom = (5.6, 0.02) if len(maps) > ACROSS else (3.6, 0.07)
    figure = sheet(height)
    panels, scale = _panels(figure, list(maps))
    most = max(float(np.nan_to_num(of).max()) for of in maps.values()) or 1.0
    shown = [shortened(name, NAME) for name in names]
    for i, (axes, (who, of)) in enumerate(zip(panels, maps.items(), strict=True)):
        image = _map(axes, who, 100 * of, 100 * most)
        axes.set_yticks(range(len(names)), shown if i % ACROSS == 0 else [""] * len(names))
        for text in axes.get_yticklabels():
            text.set_parse_math(False)
    _colours(scale, image)
    note = (
        "columns in the order of the rows, the most frequent label first; grey: no pair, or "
        f"nothing known; {left_out:,} labels left out"
    )
    return drawn(figure, left=0.2, bottom=bottom, top=1 - 0.25 / height, note=note)


def _panels(figure: Figure, who: Sequence[str]) -> tuple[list[Axes], Axes]:
    """A place for each map, two in a row, and one for what the colours mean."""
    if len(who) > ACROSS:
        cells = figure.subplots(2, ACROSS).ravel()
        cells[-1].set_axis_off()
        return list(cells[:-1]), cells[-1].inset_axes((0.1, 0.5, 0.8, 0.05))
    grid = figure.add_gridspec(2, ACROSS, height_ratios=[1, 0.2])
    below = figure.add_subplot(grid[1, :])
    below.set_axis_off()
    panels = [figure.add_subplot(grid[0, i]) for i in range(ACROSS)]
    return panels, below.inset_axes((0.3, 0.6, 0.4, 0.25))


def _map(axes: Axes, title: str, percent: Array, most: float) -> AxesImage:
    style(axes)
    axes.set_facecolor(ITSELF)
    axes.grid(False)
    image = axes.imshow(percent, NEVER_TO_OFTEN, Normalize(0, most), aspect="auto")
    axes.set_xticks([])
    axes.tick_params(labelsize=7, pad=2)
    axes.set_title(title, color=TEXT, fontsize=9.5, loc="left", pad=4)
    for side in axes.spines.values():
        side.set(visible=True, color=FAINT)
    return image


def _colours(axes: Axes, image: AxesImage) -> None:
    """What the colours mean."""
    bar = axes.figure.colorbar(image, cax=axes, orientation="horizontal")
    bar.set_label("pictures with both labels, %", color=TEXT, fontsize=8.5)
    axes.tick_params(colors=TEXT, labelsize=8, length=0)
    for side in axes.spines.values():
        side.set_edgecolor(FAINT)
