"""The first part of a report: what was judged, and how good and how honest it is."""

from math import isnan

from surelabel.evaluation import Evaluation
from surelabel.metrics import POOLED, Interval
from surelabel.report.markup import Markup, element, joined
from surelabel.report.meanings import (
    MAIN,
    MEANINGS,
    NOTHING,
    UNDEFINED,
    in_order,
    meaning_of,
    shown,
)
from surelabel.tables import settings

SURE = 0.8  # a claim from this probability upward is a confident one
SKIPPED_SHOWN = 50
CONVENTIONS = (
    "A decision is one label in one picture. Decisions of all labels and pictures are taken "
    "together in ECE, ACE, MCE, Brier score and log loss. Chance alone: what a perfectly honest "
    "recognizer with these very probabilities would show, because the pictures are few. "
    f"{NOTHING} means: not measured. An interval is where the number would lie for "
    "95 of 100 other sets of as many such pictures."
)
UNCALIBRATED = (
    "These are scores, not probabilities: nothing calibrated them. The order of pictures and of "
    "labels can be judged, honesty cannot, so reliability is left out. To see it, calibrate on "
    "labelled pictures that are not judged here (surelabel calibrate, or "
    "recognizer.calibrate(held_out)), evaluate again and report again."
)


def judged(evaluation: Evaluation) -> Markup:
    """One paragraph: how many pictures and labels, and where the probabilities come from."""
    predictions, known = evaluation.predictions, evaluation.known
    present = int((evaluation.targets * known >= 0.5).sum())
    unknown = int(known.size - known.sum())
    text = (
        f"{len(predictions):,} {_plural('picture', len(predictions))} with "
        f"{len(predictions.names):,} {_plural('label', len(predictions.names))}: "
        f"{int(known.sum()):,} decisions are judged, {present:,} of them about a label that is "
        f"there ({present / max(len(predictions), 1):.1f} a picture)."
    )
    text += f" In {unknown:,} places the truth is unknown; they have no influence." * (unknown > 0)
    text += f" Calibration: {predictions.calibration}." if predictions.calibration else ""
    model = [" Recognizer: ", element("code", predictions.model), "."] if predictions.model else []
    return element("p", text, *model, class_="soft")


def headlines(evaluation: Evaluation) -> Markup:
    """The few numbers that matter most, each with a sentence."""
    found, floor = evaluation.summary, evaluation.floor
    cards = []
    if "mean_average_precision" in found:
        cards.append(
            _card(shown(found["mean_average_precision"], "%"), "mAP", _about_ranking(evaluation))
        )
    if "brier_skill" in found:
        about = "of the squared error goes away, compared with knowing only how common labels are."
        cards.append(_card(shown(found["brier_skill"], "%"), "Brier skill", about))
    if "ece" in found:
        about = "points of a hundred is how far probabilities are from what happens, on average."
        if "ece" in floor:
            about += f" Chance alone would show {shown(floor['ece'], 'points')}."
        cards.append(_card(shown(found["ece"], "points"), "ECE", about))
    if evaluation.predictions.calibration is not None:
        cards.append(_sure(evaluation))
    return element("div", *cards, class_="cards")


def _about_ranking(evaluation: Evaluation) -> str:
    positives = (evaluation.targets * evaluation.known).sum(axis=0)
    there = positives > 0  # the labels that have an average precision
    if not there.any():
        return "how well pictures are sorted by each label."
    guess = 100 * (positives[there] / evaluation.known.sum(axis=0)[there]).mean()
    return f"how well pictures are sorted by each label; guessing reaches about {guess:.1f} %."


def _sure(evaluation: Evaluation) -> Markup:
    """Of the confident claims, how many were right."""
    probabilities = evaluation.predictions.probabilities
    sure = (probabilities >= SURE) & evaluation.known
    count = int(sure.sum())
    if not count:
        return _card(NOTHING, "When it is sure", f"No probability reaches {100 * SURE:.0f} % here.")
    right, claimed = evaluation.targets[sure].mean(), probabilities[sure].mean()
    about = (
        f"of its {count:,} claims of {100 * SURE:.0f} % or more were right. "
        f"It promised {100 * claimed:.1f} %."
    )
    return _card(f"{100 * right:.1f} %", "When it is sure", about)


def _card(value: str, title: str, about: str) -> Markup:
    number = element("div", value, class_="big")
    return element("div", element("div", title), number, element("p", about), class_="card soft")


def metric_table(evaluation: Evaluation, before: Evaluation | None) -> Markup:
    """Every metric: what it means, its value, that before, what chance alone would show.

    Then the mean over single labels, where chance alone does far more, and its share of that.
    Metrics that few ask for are folded away.
    """
    metrics = in_order(evaluation.summary)
    main = [m for m in metrics if m in list(MEANINGS)[:MAIN] or m not in MEANINGS]
    more = [m for m in metrics if m not in main]
    if not more:
        return _table(main, evaluation, before)
    summary = element("summary", f"{len(more)} more metrics")
    folded = element("details", summary, _table(more, evaluation, before), class_="more")
    return joined(_table(main, evaluation, before), folded)


def _table(metrics: list[str], evaluation: Evaluation, before: Evaluation | None) -> Markup:
    earlier, floor = ["before"] * bool(before), ["chance alone"] * bool(evaluation.floor)
    value = "value, 95 % interval" if evaluation.intervals else "value"
    heads = ["metric", value, *earlier, *floor, "mean of labels", *floor]
    rows = [_row(metric, evaluation, before) for metric in metrics]
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(element("th", h, scope="col") for h in heads))),
            element("tbody", *rows),
        ),
        class_="wide",
        role="region",
        aria_label="Metrics",
        tabindex="0",
    )


def _row(metric: str, evaluation: Evaluation, before: Evaluation | None) -> Markup:
    meaning = meaning_of(metric)
    fixed = settings(POOLED[metric]) if metric in POOLED else {}
    how = [f"in {meaning.unit}"] * bool(meaning.unit) + [f"{k} = {v}" for k, v in fixed.items()]
    better = f" {meaning.better.capitalize()} is better." if meaning.better else ""
    about = element("div", meaning.text + better)
    earlier = [before.summary.get(metric)] if before else []
    floor = [evaluation.floor.get(metric)] if evaluation.floor else []
    single = [evaluation.class_means.get(metric)]
    single += [evaluation.class_floor.get(metric)] if evaluation.floor else []
    value, found = shown(evaluation.summary[metric], meaning.unit), evaluation.intervals.get(metric)
    others = [shown(other, meaning.unit) for other in (*earlier, *floor, *single)]
    spread = [_interval(found, meaning.unit)] if found else []
    return element(
        "tr",
        element(
            "th",
            meaning.title,
            element("span", " " + ", ".join(how)),
            about,
            scope="row",
            class_="metric",
        ),
        element("td", value, *spread),
        *(element("td", other) for other in others),
    )


def _interval(found: Interval, unit: str) -> Markup:
    """Both ends, below the value."""
    ends = f"{shown(found.low, unit).removesuffix(' %')} to {shown(found.high, unit)}"
    return element("div", UNDEFINED if isnan(found.low) else ends, class_="ends")


def undefined_labels(evaluation: Evaluation) -> Markup:
    """How many labels each metric could not be computed for."""
    counted = [
        f"{meaning_of(metric).title} for {count:,}"
        for metric, count in evaluation.undefined.items()
        if count
    ]
    if not counted:
        return Markup("")
    text = (
        f"Some of the {len(evaluation.predictions.names):,} labels cannot be judged one by one, "
        "because no known picture has them or lacks them, or because they never come among the "
        f"first k or above the threshold: {', '.join(counted)}. Means of labels leave them out."
    )
    return element("p", text)


def skipped_pictures(evaluation: Evaluation) -> Markup:
    """The pictures that could not be read, by name, and why."""
    skipped = evaluation.predictions.skipped
    if not skipped:
        return Markup("")
    items = [
        element("li", element("code", s.path), f" — {s.reason}") for s in skipped[:SKIPPED_SHOWN]
    ]
    if len(skipped) > SKIPPED_SHOWN:
        items.append(
            element("li", f"and {len(skipped) - SKIPPED_SHOWN:,} more, see evaluation.json")
        )
    count = f"{len(skipped):,} {_plural('picture', len(skipped))} could not be read"
    summary = element("summary", count + " and are not judged")
    return element("details", summary, element("ul", *items), class_="note")


def conventions(evaluation: Evaluation) -> Markup:
    """How probabilities were judged, or why they were not and what to do."""
    if evaluation.predictions.calibration is None:
        return element("div", UNCALIBRATED, class_="note")
    return element("p", CONVENTIONS, class_="soft")


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
