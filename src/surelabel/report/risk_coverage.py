"""Whether a recognizer knows when it does not know: error rate of the pictures it is surest of."""

import numpy as np

from surelabel.decisions import RiskCoverage, risk_coverage
from surelabel.evaluation import Evaluation
from surelabel.report.drawing import BLUE, TEXT, Plot, drawn, percent, sheet, style


def risk_coverage_of(evaluation: Evaluation) -> RiskCoverage | None:
    """Error rate of the surest pictures; None where there are no probabilities."""
    logits = evaluation.predictions.logits
    if logits is None or evaluation.predictions.calibration is None:
        return None
    return risk_coverage(logits, evaluation.targets, evaluation.known)


def risk_plot(evaluation: Evaluation) -> Plot | None:
    """Error rate against the share of pictures that are kept; None without probabilities."""
    found = risk_coverage_of(evaluation)
    if found is None:
        return None
    overall = found.risk[-1]
    half = found.risk[np.searchsorted(found.coverage, 0.5)]
    told = (
        f"Of the decisions about the half of the pictures it is surest of {100 * half:.2f} % are "
        f"wrong, of all {100 * overall:.2f} %"
    )
    areas = (
        f"mean over all shares kept {100 * found.area:.2f} %, "
        f"and {100 * found.best:.2f} % in the best order there is"
    )
    return Plot(
        "risk_coverage",
        "Does it know when it does not know?",
        f"Error rate against the share of pictures kept. {told}; {areas}.",
        f"{told}; {areas}. The more the whole line stays below the broken one, the better its "
        "uncertainty tells which pictures somebody should look at.",
        _lines(found),
    )


def _lines(found: RiskCoverage) -> bytes:
    figure = sheet(4.6)
    axes = figure.subplots()
    style(axes)
    risk = 100 * found.risk
    axes.plot([0, 1], [risk[-1]] * 2, color=TEXT, linestyle="--", lw=1, label="in any order")
    axes.plot(found.coverage, risk, color=BLUE, lw=2, label="the surest first")
    axes.set(xlim=(0, 1), ylim=(0, max(1.3 * risk.max(), 1e-9)), ylabel="wrong decisions, %")
    axes.set_xlabel("pictures kept, the surest first")
    axes.legend(loc="upper left", frameon=False, labelcolor=TEXT, fontsize=9, ncols=2)
    percent(axes.xaxis)
    note = (
        "uncertainty of a picture: mean entropy of the probabilities of its known labels; "
        "wrong: a label at 50 % or more that is not there, or below 50 % that is"
    )
    return drawn(figure, left=0.13, bottom=0.13, top=0.97, note=note)
