"""The page of a report: one HTML file that needs no other file, no script and no network."""

from collections.abc import Sequence
from pathlib import Path

from surelabel.evaluation import Evaluation, Example
from surelabel.report.alone import about_alone, alone_table
from surelabel.report.binning import binning_table
from surelabel.report.calibrated import calibration_table
from surelabel.report.drawing import Plot
from surelabel.report.gallery import Search, examples, legend, searched
from surelabel.report.labels import label_table
from surelabel.report.markup import Markup, element
from surelabel.report.overview import (
    conventions,
    headlines,
    judged,
    metric_table,
    skipped_pictures,
    undefined_labels,
)
from surelabel.report.pictures import data_uri
from surelabel.report.queries import Retrieval, answered, query_table
from surelabel.report.unseen import Unseen, about_unseen, ranking_table, sides_table

ALLOWED = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
WHERE = (
    "Below each picture: which of its regions speak for its likeliest labels. Colours run from the "
    "weakest to the strongest region of that one map, so they cannot be compared between pictures, "
    "and a label that is not there has a strongest region too. A method that makes maps shows its "
    "own, and before it how well the encoder's view of each region fits the name; of the others it "
    "is just that. Where all labels are in one picture, a region that speaks most for a label that "
    "is not listed is grey. Shown is the part that the encoder looked at."
)
OTHER_BINS = (
    "The number of bins is a choice. Where a metric changes much with it, or without the bins that "
    "hold few decisions, it says more about the bins than about the recognizer."
)


def page(
    evaluation: Evaluation,
    *,
    before: Evaluation | None,
    honesty: Sequence[Plot],
    counted: Sequence[Plot],
    by_label: Sequence[Plot],
    searches: Sequence[Search],
    retrieval: Retrieval | None = None,
    by_length: Sequence[Plot] = (),
    unseen: Unseen | None = None,
    by_side: Sequence[Plot] = (),
) -> str:
    """The whole file.

    Args:
        evaluation: What to show.
        before: The same pictures before fitting or calibration.
        honesty: Plots of probabilities.
        counted: Plots of how many labels there are, and which together.
        by_label: Plots of single labels; the first one stands beside their table.
        searches: Questions to an index with their answers.
        retrieval: How well whole questions are answered.
        by_length: Plots of that.
        unseen: Names that the recognizer has not learnt.
        by_side: Plots of these beside the others.
    """
    sections = [
        _summary(evaluation, before),
        _honesty(evaluation, honesty),
        _unseen(unseen, by_side),
        _counted(evaluation, counted),
        _labels(evaluation, by_label),
        _pictures(evaluation),
        _queries(retrieval, by_length),
        _searches(searches),
    ]
    names = [("summary", "Summary"), ("honesty", "Honesty")]
    names += [("unseen", "Unseen names"), ("counted", "How many")]
    names += [("labels", "Labels"), ("pictures", "Pictures")]
    names += [("queries", "Queries"), ("searches", "Searches")]
    shown = [(anchor, name) for (anchor, name), s in zip(names, sections, strict=True) if s]
    links = [element("a", name, href=f"#{anchor}") for anchor, name in shown]
    title = element("h1", "How good, and how honest?")
    body = element(
        "body",
        element("header", title, judged(evaluation), element("nav", *links, aria_label="Sections")),
        element("main", *sections),
        element("footer", "Made by Surelabel. This file stands alone: it may be moved and sent."),
    )
    return "<!doctype html>\n" + element("html", _head(), body, lang="en") + "\n"


def _head() -> Markup:
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=ALLOWED),
        element("meta", name="generator", content="Surelabel"),
        element("title", "Surelabel report"),
        element("style", Markup(style)),
    )


def _section(anchor: str, title: str, *children: str) -> Markup:
    return element("section", element("h2", title), *children, id=anchor)


def _summary(evaluation: Evaluation, before: Evaluation | None) -> Markup:
    return _section(
        "summary",
        "Summary",
        headlines(evaluation),
        skipped_pictures(evaluation),
        metric_table(evaluation, before),
        conventions(evaluation),
        undefined_labels(evaluation),
    )


def _honesty(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if not plots:
        return Markup("")
    before = evaluation.before
    calibrated = [] if before is None else [calibration_table(evaluation, before)]
    return _section(
        "honesty",
        "How honest its probabilities are",
        _plots(plots),
        *[element("h3", "Before and after calibration")] * len(calibrated),
        *calibrated,
        element("h3", "Calibration error with other bins"),
        element("p", OTHER_BINS, class_="soft"),
        binning_table(evaluation),
    )


def _unseen(unseen: Unseen | None, plots: Sequence[Plot]) -> Markup:
    if unseen is None:
        return Markup("")
    about = element("p", about_unseen(unseen), class_="soft")
    return _section(
        "unseen",
        "Names that nothing was learnt of",
        about,
        ranking_table(unseen.found),
        element("h3", "How honest both are"),
        element("div", *map(_plot, plots), sides_table(unseen.found), class_="beside"),
    )


def _counted(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    if evaluation.alone is None and not plots:
        return Markup("")
    title = "How many labels, and which together" if plots else "Beside the encoder alone"
    return _section(
        "counted",
        title,
        about_alone(evaluation),
        alone_table(evaluation),
        *([_plots(plots)] if plots else []),
    )


def _labels(evaluation: Evaluation, plots: Sequence[Plot]) -> Markup:
    about = element("p", "In the table the label that is sorted worst stands first.", class_="soft")
    beside = element("div", *map(_plot, plots[:1]), label_table(evaluation), class_="beside")
    grid = [_plots(plots[1:])] if plots[1:] else []
    return _section("labels", "Label by label", about, beside, *grid)


def _pictures(evaluation: Evaluation) -> Markup:
    if not evaluation.best and not evaluation.worst:
        return Markup("")
    return _section(
        "pictures",
        "The best and the worst pictures",
        legend(evaluation),
        *_about_places(evaluation),
        *_examples("The worst", evaluation, evaluation.worst),
        *_examples("The best, among those with two labels or more", evaluation, evaluation.best),
    )


def _about_places(evaluation: Evaluation) -> list[Markup]:
    """How to read the small maps; nothing where the encoder gives none."""
    if not any(example.where for example in (*evaluation.worst, *evaluation.best)):
        return []
    colours = element("span", "", class_="scale", role="img", aria_label="from purple to yellow")
    scale = element("span", "Weak ", colours, " strong", class_="together")
    return [element("p", WHERE, " ", scale, class_="soft")]


def _examples(title: str, evaluation: Evaluation, chosen: Sequence[Example]) -> list[Markup]:
    return [element("h3", title), examples(evaluation, chosen)] if chosen else []


def _queries(retrieval: Retrieval | None, plots: Sequence[Plot]) -> Markup:
    if retrieval is None:
        return Markup("")
    beside = element("div", *map(_plot, plots), query_table(retrieval), class_="beside")
    title = "How well several labels at once are found"
    return _section("queries", title, beside, answered(retrieval.answers))


def _searches(searches: Sequence[Search]) -> Markup:
    if not searches:
        return Markup("")
    about = (
        "Under each picture: the probability that all terms of the query hold, taking the labels "
        "as independent, and the probability that each label is there. ! means: not wanted."
    )
    return _section("searches", "Searches", element("p", about, class_="soft"), searched(searches))


def _plots(plots: Sequence[Plot]) -> Markup:
    return element("div", *(_plot(p) for p in plots), class_="plots")


def _plot(plot: Plot) -> Markup:
    return element(
        "figure",
        element("strong", plot.title),
        element("img", src=data_uri(plot.png, "png"), alt=plot.alt),
        element("figcaption", plot.caption),
        class_="card",
    )
