import pytest

from surelabel.data.text_labels import template_sentences
from surelabel.errors import InputError


def test_every_label_has_a_sentence_of_every_template():
    texts = template_sentences(["sofa|couch", "{}"], ["a photo of a {}.", "{}"])
    assert texts.texts == ["a photo of a sofa.", "sofa", "a photo of a {}.", "{}"]
    assert texts.names == ["sofa", "{}"]
    assert texts.targets.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert texts.known.all()


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        ("a {}", "must be a list with at least one sentence, such as .*; got 'a {}'"),
        ([], r"must be a list with at least one sentence, .*; got \[\]"),
        (["a {}", "a photo"], "must contain {} exactly once, .*; got 'a photo'"),
        (["{} {}"], "must contain {} exactly once, .*; got '{} {}'"),
    ],
)
def test_a_template_without_a_place_for_the_label_is_refused(templates, message):
    with pytest.raises(InputError, match=message):
        template_sentences(["dog"], templates)


def test_invalid_labels_are_refused():
    with pytest.raises(InputError, match="Labels must be unique"):
        template_sentences(["dog", "Dog"], ["a {}"])
