from dataclasses import replace
from html.parser import HTMLParser

import pytest

from surelabel.report.decision_section import decision_section_plots
from surelabel.report.html_page import HtmlPagePlots, render_html_page
from surelabel.report.image_gallery import QueryHits
from surelabel.report.plots import (
    calibration_section_plots,
    label_count_section_plots,
    per_label_section_plots,
)
from surelabel.report.search_results import (
    QueryRanking,
    RetrievalResults,
    plot_search_results_by_query_length,
)
from surelabel.retrieval import Hit

NASTY = "<script>alert('x')</script> \"&amp;"
VOID = {"img", "meta", "source"}


class Reader(HTMLParser):
    """Elements of a page; checks that they are nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, attribute):
        return [given[attribute] for _, given in self.elements if attribute in given]


def html(found, before=None, searches=(), retrieval=None):
    plots = HtmlPagePlots(
        decisions=decision_section_plots(found),
        calibration=calibration_section_plots(found, before),
        label_counts=label_count_section_plots(found),
        per_label=per_label_section_plots(found),
        retrieval=[plot_search_results_by_query_length(retrieval)] if retrieval else [],
    )
    return render_html_page(found, plots, before=before, searches=searches, retrieval=retrieval)


@pytest.fixture(scope="module")
def nasty(evaluation_of):
    """A page with labels, paths and queries that contain HTML."""
    names = [NASTY, "犬", "a" * 300, "$x$", "plain", "b", "c", "d"]
    found = evaluation_of([f"{NASTY}{i}.jpg" for i in range(40)], names)
    found = replace(found, predictions=replace(found.predictions, calibration=NASTY, model=NASTY))
    answers = [QueryRanking(NASTY, [NASTY], [False], 0, float("nan"))]
    retrieval = RetrievalResults((1,), (0.5,), (3,), (0,), answers)
    searches = [QueryHits(NASTY, [Hit(NASTY, 0.1, {NASTY: 0.2})])]
    return Reader(html(found, found, searches, retrieval))


def test_the_page_needs_nothing_else(nasty):
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in nasty.elements}
    assert all(a.startswith("data:image/") for a in nasty.values("src") + nasty.values("srcset"))
    assert all(a.startswith("#") for a in nasty.values("href"))
    assert "default-src 'none'" in nasty.values("content")[1]
    assert "@import" not in nasty.text
    assert "url(" not in nasty.text


def test_what_strangers_wrote_is_text(nasty):
    assert nasty.text.count("<script>") >= 6
    assert not any(name.startswith("on") for _, given in nasty.elements for name in given)


def test_every_image_has_words(nasty):
    images = [given for tag, given in nasty.elements if tag == "img"]
    assert len(images) >= 3
    assert all(given.get("alt") for given in images)


def test_links_lead_to_places_on_the_page(nasty):
    places = nasty.values("id")
    assert len(set(places)) == len(places)
    assert [a[1:] for a in nasty.values("href")] == places


def test_there_is_reliability_before_and_after(nasty):
    assert "Before" in nasty.text
    assert "After" in nasty.text


def test_without_probabilities_the_page_says_why_and_what_to_do(judged):
    seen = Reader(html(judged(calibrated=False)))
    assert "These scores are not calibrated" in seen.text
    assert "recognizer.calibrate(held_out)" in seen.text
    assert "calibration" not in seen.values("id")
    assert "ECE," not in seen.text
    assert "to the binning" not in seen.text


def test_the_calibration_section_has_the_calibrator_the_bins_and_the_budget(whole):
    seen = Reader(html(whole()))
    for words in (
        "Metrics without and with the calibrator",
        "Sensitivity of the calibration error to the binning",
        "annotated images are enough",
    ):
        assert words in seen.text
    assert "95 % interval" in seen.text
    assert "nan" not in seen.text


def test_scores_are_compared_with_the_baseline_and_not_counted(judged):
    found = judged(calibrated=False)
    assert "label-counts" not in Reader(html(found)).values("id")
    seen = Reader(html(replace(found, zero_shot_baseline=judged(seed=1).predictions)))
    assert "Zero-shot baseline" in seen.text
    assert "so predicted labels cannot be counted" in seen.text
    assert "Labels per image and" not in seen.text


def test_a_thousand_labels_stay_below_three_megabytes(judged):
    found = judged(count=100, labels=1000)
    searches = [
        QueryHits("label 1", [Hit(p, 0.5, {"label 1": 0.5}) for p in found.predictions.paths])
    ]
    assert len(html(found, found, searches * 30).encode()) < 3_000_000
