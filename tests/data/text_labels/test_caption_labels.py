import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data.text_labels import (
    label_captioned_images,
    label_captions,
    labels_without_captions,
)
from surelabel.data.text_labels.noun_plurals import plural_nouns
from surelabel.errors import DataError, InputError
from surelabel.records import Captions

HEADER = "label\tsynonyms\tkinds\texceptions\n"


@pytest.fixture
def no_words(tmp_path):
    """Path of a word list without words."""
    (tmp_path / "none.tsv").write_text(HEADER)
    return tmp_path / "none.tsv"


def mentions(text, names, word_list=None):
    """Return the labels that a text mentions."""
    texts = label_captions(Captions([text, names[0]]), names, word_list=word_list)
    row = texts.targets[0] if texts.texts[0] == text else np.zeros(len(names))
    return [name for name, target in zip(texts.names, row, strict=True) if target]


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("A Hot-Dog on a plate.", ["hot dog", "dog"], ["hot dog"]),
        ("hot dogs and a dog", ["hot dog", "dog"], ["hot dog", "dog"]),
        ("a teddy bear", ["bear", "teddy bear"], ["teddy bear"]),
        ("a teddy bear", ["bear"], []),
        ("two hot dogs", ["dog"], []),
        ("a baby elephant", ["person", "elephant"], ["elephant"]),
        ("a baby and an elephant", ["person", "elephant"], ["person", "elephant"]),
        ("People watch; children play", ["person"], ["person"]),
        ("the men's KNIVES", ["person", "knife"], ["person", "knife"]),
        ("a catalogue of doggy bags", ["cat", "dog", "bag"], ["bag"]),
        ("a couch", ["sofa"], ["sofa"]),
        ("a sofa", ["couch"], ["couch"]),
        ("a motorcycle near an airplane", ["aeroplane", "motorbike"], ["aeroplane", "motorbike"]),
        (
            "a television, a potted plant",
            ["tvmonitor", "pottedplant"],
            ["tvmonitor", "pottedplant"],
        ),
        ("two dining tables", ["diningtable"], ["diningtable"]),
        ("a woman", ["man", "woman", "person"], ["woman", "person"]),
        ("a hound", ["dog|mutt", "cat"], ["dog"]),
        ("two mutts", ["dog|mutt", "cat"], ["dog"]),
        ("a man with glasses", ["glass", "glasses"], ["glasses"]),
        ("three glasses", ["glass", "cup"], ["glass"]),
        ("a tea-cup", ["tea_cup"], ["tea_cup"]),
        ("ein Straßencafé", ["STRASSENCAFÉ"], ["STRASSENCAFÉ"]),
    ],
)
def test_the_labels_that_a_caption_mentions(text, names, expected):
    assert mentions(text, names) == expected


def test_a_word_list_replaces_that_of_the_package(tmp_path):
    (tmp_path / "words.tsv").write_text(HEADER + "dog\thound\tspaniel\tsea dog\n")
    assert mentions("a spaniel", ["dog", "cat"], tmp_path / "words.tsv") == ["dog"]
    assert mentions("a spaniel", ["Hound", "cat"], tmp_path / "words.tsv") == ["Hound"]
    assert mentions("a dog", ["spaniel", "cat"], tmp_path / "words.tsv") == []
    assert mentions("two sea dogs", ["dog", "cat"], tmp_path / "words.tsv") == []
    assert mentions("a puppy", ["dog", "cat"], tmp_path / "words.tsv") == []


def test_a_spelling_of_the_user_is_no_exception(tmp_path):
    (tmp_path / "words.tsv").write_text(HEADER + "dog\t\t\thot dog\n")
    assert mentions("two hot dogs", ["dog|hot dog", "cat"], tmp_path / "words.tsv") == ["dog"]
    assert mentions("hot dogs", ["dog", "hot dogs"], tmp_path / "words.tsv") == ["hot dogs"]


NOUNS = ["dog", "hot dog", "man", "knife", "bus", "hot", "bus man", "dog bus"]


@given(
    st.lists(st.sampled_from(NOUNS), min_size=1, unique=True),
    st.lists(
        st.lists(
            st.sampled_from(["dog", "Dogs", "hot", "HOT", "man", "men", "knives", "bus", "x"]),
            max_size=8,
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_targets_are_those_of_a_search_over_all_labels_and_spans(tmp_path_factory, names, captions):
    path = tmp_path_factory.getbasetemp() / "no-words.tsv"
    path.write_text(HEADER)
    expected = []
    for words in [*captions, names[0].split()]:
        lower, row = [word.lower() for word in words], np.zeros(len(names))
        for length in (2, 1):
            for start in range(len(lower) - length + 1):
                span = lower[start : start + length]
                for column, name in enumerate(names):
                    *first, last = name.split()
                    if span[:-1] == first and span[-1] in (last, *plural_nouns(last)):
                        row[column] = 1
                        lower[start : start + length] = ["."] * length
        expected.append(row)
    texts = [" ".join(words) for words in [*captions, [names[0]]]]
    labelled = label_captions(Captions(texts), names, word_list=path)
    rows = [row for row in expected if row.any()]
    assert labelled.targets.tolist() == np.array(rows).tolist()
    assert labelled.texts == [t for t, row in zip(texts, expected, strict=True) if row.any()]
    assert labelled.n_dropped == len(texts) - len(rows)
    assert labelled.known.all()


def test_captions_without_a_label_are_dropped_and_counted():
    captions = Captions(["a dog", "the sky", "a cat and a dog", "grass"])
    texts = label_captions(captions, ["dog", "cat", "zebra"])
    assert texts.texts == ["a dog", "a cat and a dog"]
    assert texts.targets.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert (texts.n_dropped, texts.known.all()) == (2, True)
    assert labels_without_captions(texts) == ["zebra"]


def test_captions_that_mention_nothing_are_refused():
    for captions in (Captions(["the sky"]), Captions([])):
        with pytest.raises(InputError, match=r"got \d captions? without any of 'dog', 'cat'"):
            label_captions(captions, ["dog", "cat"])


def test_a_label_without_words_is_refused():
    with pytest.raises(InputError, match=r"must contain letters or digits .* got '🐶'"):
        label_captions(Captions(["a dog"]), ["dog|🐶"])


def test_labels_of_an_image_are_those_of_any_caption_and_the_rest_is_unknown(tmp_path):
    a, b = str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")
    for path in (a, b):
        open(path, "w").close()
    captions = Captions(["a dog", "the sky", "a cat", "two dogs"], [b, a, b, b])
    images = label_captioned_images(captions, ["dog", "cat", "zebra"])
    assert list(images.paths) == [b, a]
    assert images.targets.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert images.known.tolist() == [[True, True, False], [False, False, False]]
    assert labels_without_captions(images) == ["zebra"]


def test_labels_that_no_caption_mentions_can_be_negative(tmp_path):
    path = str(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").touch()
    captions = Captions(["a dog", "the sky"], [path] * 2)
    images = label_captioned_images(captions, ["dog", "cat"], unmentioned=0.0)
    assert images.targets.tolist() == [[1, 0]]
    assert images.known.all()
    with pytest.raises(InputError, match=r"must be in \[0, 1\]"):
        label_captioned_images(captions, ["dog", "cat"], unmentioned=-1.0)


def test_images_need_captions_with_images_that_exist_and_labels(tmp_path):
    with pytest.raises(InputError, match="captions with image paths; got captions without paths"):
        label_captioned_images(Captions(["a dog"]), ["dog"])
    lost = Captions(["a dog", "a dog"], [str(tmp_path / "lost.jpg")] * 2)
    with pytest.raises(
        DataError,
        match=r"must exist; 1 of \d files are missing, such as '.*lost\.jpg'.*images_root",
    ):
        label_captioned_images(lost, ["dog"])
    with pytest.raises(InputError, match="got 2 captions without any of 'zebra'"):
        label_captioned_images(lost, ["zebra"])


def test_many_labels_and_captions_are_compared_in_one_pass(no_words):
    names = [f"thing {i} of {j}" for i in range(30) for j in range(30)]
    texts = label_captions(Captions(names * 3), names, word_list=no_words)
    assert np.array_equal(texts.targets, np.tile(np.eye(900), (3, 1)))
