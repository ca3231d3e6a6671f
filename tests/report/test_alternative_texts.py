from surelabel.evaluation import Example, ExampleLabel
from surelabel.report.alternative_texts import (
    alternative_text_of_example,
    alternative_text_of_hit,
    alternative_text_of_labels,
)
from surelabel.retrieval import Hit


def example(*labels, missed=()):
    return Example("a.jpg", tuple(ExampleLabel(*label) for label in labels), missed, loss=0.1)


def test_an_example_is_described_by_its_labels_and_its_annotated_labels():
    shown = example(
        ("lion", 0.97, True), ("bear", 0.62, False), ("cow", 0.2, None), ("pig", 0.1, True)
    )
    text = alternative_text_of_example(shown, is_calibrated=True)
    assert text == "lion 97.0 %, bear 62 %, cow 20 %; annotated: lion, pig"


def test_missed_labels_are_annotated_labels_and_many_are_counted():
    shown = example(("lion", 0.97, False), missed=tuple("abcdefgh"))
    text = alternative_text_of_example(shown, is_calibrated=True)
    assert text == "lion 97.0 %; annotated: a, b, c, d, e, f and 2 more"


def test_an_image_without_positives_and_one_without_annotations_differ():
    negative, unknown = example(("lion", 0.1, False)), example(("lion", 0.1, None))
    assert alternative_text_of_example(negative, is_calibrated=True).endswith("annotated: no label")
    assert alternative_text_of_example(unknown, is_calibrated=True) == "lion 10 %"


def test_scores_are_no_percentages():
    text = alternative_text_of_example(example(("lion", 0.21, True)), is_calibrated=False)
    assert text == "lion 0.210; annotated: lion"


def test_a_hit_is_described_by_all_labels_of_the_query():
    hit = Hit("a.jpg", 0.5, {"fork": 0.93, "knife": 0.04, "cow": 0.5, "pig": 0.5})
    assert alternative_text_of_hit(hit) == "fork 93.0 %, knife 4.0 %, cow 50 %, pig 50 %"


def test_only_the_first_labels_are_named():
    assert alternative_text_of_labels((name, "1 %") for name in "abcd") == "a 1 %, b 1 %, c 1 %"
    assert alternative_text_of_labels([]) == ""
