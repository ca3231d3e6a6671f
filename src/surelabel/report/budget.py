"""How many labelled pictures are enough to calibrate: a plot, and the answer in a sentence."""

import numpy as np

from surelabel.evaluation import Budget
from surelabel.report.drawing import BAND, BLUE, ORANGE, TEXT, Plot, drawn, sheet, style
from surelabel.report.meanings import measured, shown

CLEARLY = 2  # times the noise floor, above which an error is more than chance


def answer(budget: Budget) -> str:
    """One or two plain sentences.

    Example:
        >>> ece, loss = np.array([[0.05], [0.021], [0.02]]), np.array([[0.3], [0.2], [0.2]])
        >>> answer(Budget((25, 50, 100), ece, loss, 0.01, 200))
        'About 50 labelled pictures are enough: with 100 the ECE is 2.00 points instead of 2.10.'
    """
    errors = budget.mean_ece
    last = budget.sizes[-1]
    if np.isnan(errors[-1]):
        return "These labelled pictures hold too few labels that are there to say how many suffice."
    if budget.enough is None:
        pairs = list(zip(errors, budget.sizes, strict=True))[-2:-1]
        before = "".join(f" ({shown(e, 'points')} with {size:,})" for e, size in pairs)
        return (
            f"{last:,} labelled pictures may be too few: with them the ECE is "
            f"{shown(errors[-1], 'points')} points{before}, and more may still help."
        )
    then = errors[budget.sizes.index(budget.enough)]
    text = (
        f"About {budget.enough:,} labelled pictures are enough: with {last:,} the ECE is "
        f"{shown(errors[-1], 'points')} points instead of {shown(then, 'points')}."
    )
    if errors[-1] > CLEARLY * budget.floor:
        text += (
            f" Chance alone would show {shown(budget.floor, 'points')}: what is left is not for "
            "lack of labels, and another calibrator or head may do better."
        )
    return text


def budget_plot(budget: Budget) -> Plot:
    """Calibration error against the number of labelled pictures, with what chance would show."""
    told = [
        f"{size:,} pictures: ECE {measured(error, 'points')}, log loss {measured(loss, 'nats')}"
        for size, error, loss in zip(
            budget.sizes, budget.mean_ece, budget.mean_log_loss, strict=True
        )
    ]
    draws = budget.ece.shape[1]
    missed = int(np.isnan(budget.ece).sum())
    left_out = f" {missed:,} draws held no label that is there and are left out." * (missed > 0)
    return Plot(
        "budget",
        "How many labels are enough?",
        f"ECE and log loss against the labelled pictures. {'; '.join(told)}. "
        f"Chance alone: {measured(budget.floor, 'points')}.",
        f"{answer(budget)} The calibrator was fitted anew on so many of these very pictures, "
        f"{draws:,} times, and measured on {budget.measured:,} others; the dots are single "
        f"draws.{left_out}",
        _lines(budget),
    )


def _lines(budget: Budget) -> bytes:
    figure = sheet(5.4)
    above, below = figure.subplots(2, sharex=True, height_ratios=[3, 2])
    for axes, values, mean, colour in (
        (above, 100 * budget.ece, 100 * budget.mean_ece, BLUE),
        (below, budget.log_loss, budget.mean_log_loss, ORANGE),
    ):
        style(axes)
        for size, draws in zip(budget.sizes, values, strict=True):
            axes.plot([size] * len(draws), draws, ".", color=colour, alpha=0.35, markersize=4)
        axes.plot(budget.sizes, mean, "o-", color=colour, markersize=5, label="mean")
    if not np.isnan(budget.floor):
        floor = 100 * budget.floor
        above.axhspan(0, floor, color=BAND, linewidth=0, label="honest, by chance")
    above.set_ylim(0, 1.35 * max(np.nanmax(100 * budget.ece, initial=0), 1e-3))
    above.set_ylabel("ECE, points of a hundred")
    above.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9, ncols=2)
    below.set(xlabel="labelled pictures", ylabel="log loss, nats", xscale="log")
    below.set_xticks(budget.sizes, [f"{size:,}" for size in budget.sizes])
    below.minorticks_off()
    note = (
        f"ECE in 15 equal-width bins and log loss on {budget.measured:,} pictures that the "
        f"calibrator was not fitted on; {budget.ece.shape[1]:,} draws"
    )
    return drawn(figure, left=0.15, bottom=0.11, top=0.97, note=note)
