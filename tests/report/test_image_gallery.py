import re
from dataclasses import replace
from html import escape

import pytest

from surelabel.evaluation import ExampleLabel
from surelabel.report.image_gallery import (
    QueryHits,
    image_gallery_decision_outcome,
    render_image_gallery_legend,
    render_image_gallery_of_examples,
    render_image_gallery_of_search_hits,
)
from surelabel.report.metric_descriptions import format_described_probability
from surelabel.retrieval import Hit


@pytest.mark.parametrize(
    ("value", "present", "calibrated", "kind"),
    [
        (0.9, True, True, "true-positive"),
        (0.5, False, True, "false-positive"),
        (0.49, True, True, "false-negative"),
        (0.1, False, True, "true-negative"),
        (0.9, None, True, "unknown"),
        (-3.0, True, False, "true-positive"),
        (17.0, False, False, "true-negative"),
        (17.0, None, False, "unknown"),
    ],
)
def test_the_outcome_of_a_decision(value, present, calibrated, kind):
    assert image_gallery_decision_outcome(ExampleLabel("x", value, present), calibrated) == kind


def cards(found, examples):
    predictions = found.predictions
    calibrated = predictions.calibration is not None
    scores = predictions.probabilities if calibrated else predictions.scores
    by_path = dict(zip(predictions.paths, scores, strict=True))
    return render_image_gallery_of_examples(
        examples, predictions.names, by_path, is_calibrated=calibrated
    )


def test_every_sign_on_a_image_is_in_the_legend(judged):
    for calibrated in (True, False):
        found = judged(unknown=0.3, calibrated=calibrated)
        shown = cards(found, [*found.worst_examples, *found.best_examples])
        signs = {sign for sign in "✓✗○·?" if f">{sign}</i>" in shown}
        assert len(signs) >= 3
        assert all(
            f">{sign}</i>" in render_image_gallery_legend(is_calibrated=calibrated)
            for sign in signs
        )


def test_a_missed_label_is_shown_with_its_probability(judged):
    found = judged(labels=9)
    worst = replace(found.worst_examples[0], missed_labels=("label 3",), labels=())
    probability = found.predictions.probabilities[0, 3]
    assert (
        f"<span>label 3</span><b>{escape(format_described_probability(probability))}</b>"
        in cards(found, [worst])
    )


def test_a_image_has_a_map_for_each_of_its_first_labels(judged):
    found = judged()
    text = cards(found, found.worst_examples[:1])
    for name in list(found.worst_examples[0].heat_maps)[:3]:
        assert f'alt="Heat map of each label: {name}"' in text
    assert text.count("<img") == 5  # the image, three maps, and all labels in one


def test_the_words_of_an_image_are_its_labels_and_its_annotated_labels(judged):
    found = judged()
    labels = (ExampleLabel("lion", 0.97, True), ExampleLabel("bear", 0.62, False))
    shown = replace(found.worst_examples[0], labels=labels, missed_labels=("label 3",))
    assert 'alt="lion 97.0 %, bear 62 %; annotated: lion, label 3"' in cards(found, [shown])


def test_under_a_map_stands_the_sign_of_its_label(judged):
    found = judged()
    worst = replace(found.worst_examples[0], labels=(ExampleLabel("dog", 0.9, is_positive=False),))
    maps = {"dog": next(iter(worst.heat_maps.values()))}
    worst = replace(worst, regions=replace(worst.regions, maps=maps))
    text = cards(found, [worst])
    assert re.search(r"<figcaption><i [^>]*>✗</i> dog</figcaption>", text)


def test_a_image_that_is_gone_leaves_its_path(judged, elsewhere):
    found = elsewhere(judged(), [f"/gone/{i}.jpg" for i in range(60)])
    text = cards(found, found.worst_examples)
    assert "<img" not in text
    assert text.count("cannot be read: /gone/") == len(found.worst_examples)


def hits(paths):
    return [Hit(path, 0.5, {"fork": 0.93, "knife": 0.04}) for path in paths]


def test_a_search_shows_its_query_and_the_probability_of_each_term(images):
    text = render_image_gallery_of_search_hits([QueryHits("fork & !knife", hits(images(3)))])
    assert "fork &amp; !knife" in text
    assert text.count("<img") == 3
    assert 'alt="fork 93.0 %, knife 4.0 %"' in text
    assert "<span>fork</span><b>93.0 %</b>" in text
    assert "<span>knife</span><b>4.0 %</b>" in text


def test_a_search_that_found_nothing_says_so():
    assert "No images were found" in render_image_gallery_of_search_hits([QueryHits("unicorn", [])])


def test_of_many_hits_only_the_first_are_shown(images):
    assert "2 more hits" in render_image_gallery_of_search_hits(
        [QueryHits("fork", hits(images(12)))]
    )


def test_many_searches_show_fewer_images_each():
    text = render_image_gallery_of_search_hits([QueryHits("fork", hits(["gone.png"] * 20))] * 60)
    assert text.count("cannot be read") == 120


def test_a_search_whose_truth_is_known_says_so_of_each_image_and_beside_prevalence():
    hits = [Hit("a.jpg", 0.9, {"dog": 0.9}), Hit("b.jpg", 0.8, {"dog": 0.8})]
    page = render_image_gallery_of_search_hits([QueryHits("dog", hits, [True, False], 0.081)])
    assert (
        "1 of these 2 images match the query, so the precision at 2 is 50.0 %. Of all images, 8.1 %"
        in page
    )
    assert (page.count("matches the query"), page.count("does not match the query")) == (1, 1)
    assert "precision at" not in render_image_gallery_of_search_hits([QueryHits("dog", hits)])
