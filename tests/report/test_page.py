from dataclasses import replace
from html.parser import HTMLParser

import pytest

from surelabel.report.figures import counting_plots, honesty_plots, label_plots
from surelabel.report.gallery import Search
from surelabel.report.page import page
from surelabel.report.queries import Answer, Retrieval, query_plot
from surelabel.retrieval import Hit

NASTY = "<script>alert('x')</script> \"&amp;"
ALONE = {"img", "meta", "source"}


class Reader(HTMLParser):
    """The elements of a page; complains where they are not nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, attribute):
        return [given[attribute] for _, given in self.elements if attribute in given]


def html(found, before=None, searches=(), retrieval=None):
    honesty, by_label = honesty_plots(found, before), label_plots(found)
    by_length = [query_plot(retrieval)] if retrieval else []
    return page(
        found,
        before=before,
        honesty=honesty,
        counted=counting_plots(found),
        by_label=by_label,
        searches=searches,
        retrieval=retrieval,
        by_length=by_length,
    )


@pytest.fixture(scope="module")
def nasty(evaluation_of):
    """A page about names, paths and queries that try to break out of it."""
    names = [NASTY, "犬", "a" * 300, "$x$", "plain", "b", "c", "d"]
    found = evaluation_of([f"{NASTY}{i}.jpg" for i in range(40)], names)
    found = replace(found, predictions=replace(found.predictions, calibration=NASTY, model=NASTY))
    answers = [Answer(NASTY, [NASTY], [False], 0, float("nan"))]
    retrieval = Retrieval((1,), (0.5,), (3,), (0,), answers)
    searches = [Search(NASTY, [Hit(NASTY, 0.1, {NASTY: 0.2})])]
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


def test_every_picture_has_words(nasty):
    pictures = [given for tag, given in nasty.elements if tag == "img"]
    assert len(pictures) >= 3
    assert all(given.get("alt") for given in pictures)


def test_links_lead_to_places_on_the_page(nasty):
    places = nasty.values("id")
    assert len(set(places)) == len(places)
    assert [a[1:] for a in nasty.values("href")] == places


def test_there_is_reliability_before_and_after(nasty):
    assert "Before" in nasty.text
    assert "After" in nasty.text


def test_without_probabilities_the_page_says_why_and_what_to_do(judged):
    seen = Reader(html(judged(calibrated=False)))
    assert "nothing calibrated them" in seen.text
    assert "recognizer.calibrate(held_out)" in seen.text
    assert "honesty" not in seen.values("id")
    assert "ECE," not in seen.text
    assert "other bins" not in seen.text


def test_what_calibration_did_and_other_bins_stand_under_honesty(whole):
    seen = Reader(html(whole()))
    for words in (
        "Before and after calibration",
        "with other bins",
        "labelled pictures are enough",
    ):
        assert words in seen.text
    assert "95 % interval" in seen.text
    assert "nan" not in seen.text


def test_scores_are_put_beside_the_encoder_alone_and_nothing_is_counted(judged):
    found = judged(calibrated=False)
    assert "counted" not in Reader(html(found)).values("id")
    seen = Reader(html(replace(found, alone=judged(seed=1).predictions)))
    assert "Beside the encoder alone" in seen.text
    assert "labels cannot be counted" in seen.text
    assert "How many labels" not in seen.text


def test_a_thousand_labels_stay_below_three_megabytes(judged):
    found = judged(count=100, labels=1000)
    searches = [Search("label 1", [Hit(p, 0.5, {"label 1": 0.5}) for p in found.predictions.paths])]
    assert len(html(found, found, searches * 30).encode()) < 3_000_000
