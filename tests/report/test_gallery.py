import re
from dataclasses import replace
from html import escape

import pytest

from surelabel.evaluation import Tag
from surelabel.report.gallery import Search, examples, kind_of, legend, searched
from surelabel.report.meanings import chance
from surelabel.retrieval import Hit


@pytest.mark.parametrize(
    ("value", "present", "calibrated", "kind"),
    [
        (0.9, True, True, "right"),
        (0.5, False, True, "wrong"),
        (0.49, True, True, "missed"),
        (0.1, False, True, "low"),
        (0.9, None, True, "unknown"),
        (-3.0, True, False, "right"),
        (17.0, False, False, "low"),
        (17.0, None, False, "unknown"),
    ],
)
def test_a_label_gets_the_sign_it_deserves(value, present, calibrated, kind):
    assert kind_of(Tag("x", value, present), calibrated) == kind


def test_every_sign_on_a_picture_is_in_the_legend(judged):
    for calibrated in (True, False):
        found = judged(unknown=0.3, calibrated=calibrated)
        shown = examples(found, [*found.worst, *found.best])
        signs = {sign for sign in "✓✗○·?" if f">{sign}</i>" in shown}
        assert len(signs) >= 3
        assert all(f">{sign}</i>" in legend(found) for sign in signs)


def test_a_missed_label_is_shown_with_its_probability(judged):
    found = judged(labels=9)
    worst = replace(found.worst[0], missed=("label 3",), tags=())
    probability = found.predictions.probabilities[0, 3]
    assert f"<span>label 3</span><b>{escape(chance(probability))}</b>" in examples(found, [worst])


def test_a_picture_has_a_map_for_each_of_its_first_labels(judged):
    found = judged()
    text = examples(found, found.worst[:1])
    for name in list(found.worst[0].where)[:3]:
        assert f'alt="Which region speaks for which label: {name} in {found.worst[0].path}"' in text
    assert text.count("<img") == 5  # the picture, three maps, and all labels in one


def test_under_a_map_stands_the_sign_of_its_label(judged):
    found = judged()
    worst = replace(found.worst[0], tags=(Tag("dog", 0.9, present=False),))
    maps = {"dog": next(iter(worst.where.values()))}
    worst = replace(worst, regions=replace(worst.regions, maps=maps))
    text = examples(found, [worst])
    assert re.search(r"<figcaption><i [^>]*>✗</i> dog</figcaption>", text)


def test_a_picture_that_is_gone_leaves_its_path(judged, elsewhere):
    found = elsewhere(judged(), [f"/gone/{i}.jpg" for i in range(60)])
    text = examples(found, found.worst)
    assert "<img" not in text
    assert text.count("cannot be read: /gone/") == len(found.worst)


def hits(paths):
    return [Hit(path, 0.5, {"fork": 0.93, "knife": 0.04}) for path in paths]


def test_a_search_shows_its_query_and_the_probability_of_each_term(pictures):
    text = searched([Search("fork & !knife", hits(pictures(3)))])
    assert "fork &amp; !knife" in text
    assert text.count("<img") == 3
    assert "<span>fork</span><b>93.0 %</b>" in text
    assert "<span>knife</span><b>4.0 %</b>" in text


def test_a_search_that_found_nothing_says_so():
    assert "Nothing was found" in searched([Search("unicorn", [])])


def test_of_many_hits_only_the_first_are_shown(pictures):
    assert "2 more were found" in searched([Search("fork", hits(pictures(12)))])


def test_many_searches_share_the_room():
    text = searched([Search("fork", hits(["gone.png"] * 20))] * 60)
    assert text.count("cannot be read") == 120


def test_a_search_whose_truth_is_known_says_so_of_each_picture_and_beside_prevalence():
    hits = [Hit("a.jpg", 0.9, {"dog": 0.9}), Hit("b.jpg", 0.8, {"dog": 0.8})]
    page = searched([Search("dog", hits, [True, False], 0.081)])
    assert "True of 1 of these 2: precision at 2 is 50.0 %. It is true of 8.1 % of all" in page
    assert (page.count("all of it holds"), page.count("not all of it holds")) == (2, 1)
    assert "precision at" not in searched([Search("dog", hits)])
