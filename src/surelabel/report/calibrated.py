"""What the calibrator did: the same decisions before it and after it."""

from surelabel.evaluation import Before, Evaluation
from surelabel.metrics import Reliability, reliability
from surelabel.report.drawing import Plot
from surelabel.report.markup import Markup, element
from surelabel.report.meanings import in_order, meaning_of, measured, shown
from surelabel.report.reliability import BINS, conventions, diagram, reliability_of


def calibration_plot(evaluation: Evaluation, before: Before) -> Plot:
    """The diagram before and after the calibrator in one."""
    pair = [
        ("after calibration", reliability_of(evaluation)),
        ("before calibration", reliability_before(evaluation, before)),
    ]
    gaps = [
        f"{when}: ECE {measured(summary['ece'], 'points')}, "
        f"log loss {measured(summary['log_loss'], 'nats')}"
        for when, summary in (("Before", before.summary), ("after", evaluation.summary))
    ]
    return Plot(
        "calibration",
        "What calibration did",
        f"Two reliability diagrams of the same decisions. {'; '.join(gaps)}.",
        "Squares on a broken line: what the recognizer would claim without its calibrator. "
        "Dots on a whole line: what it claims with it.",
        diagram(pair, conventions(evaluation)),
    )


def calibration_table(evaluation: Evaluation, before: Before) -> Markup:
    """The metrics of honesty before and after."""
    heads = ["metric", "before calibration", "after calibration"]
    rows = [_row(metric, evaluation, before) for metric in in_order(before.summary)]
    head = element("thead", element("tr", *(element("th", h, scope="col") for h in heads)))
    return element(
        "div",
        element("table", head, element("tbody", *rows)),
        class_="wide",
        role="region",
        aria_label="Before and after calibration",
        tabindex="0",
    )


def _row(metric: str, evaluation: Evaluation, before: Before) -> Markup:
    meaning = meaning_of(metric)
    values = (before.summary[metric], evaluation.summary.get(metric))
    return element(
        "tr",
        element("th", meaning.title, element("span", f" in {meaning.unit}"), scope="row"),
        *(element("td", shown(value, meaning.unit)) for value in values),
    )


def reliability_before(evaluation: Evaluation, before: Before) -> Reliability:
    """The decisions of before in the same bins."""
    return reliability(before.probabilities, evaluation.targets, evaluation.known, bins=BINS)
