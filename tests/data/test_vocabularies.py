from hashlib import sha256
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data import (
    VOCABULARIES,
    Vocabulary,
    collection,
    remove_unseen_vocabulary_classes,
    split_vocabulary,
)
from surelabel.data.scene_words import all_scene_words
from surelabel.data.vocabularies import check_vocabulary_columns
from surelabel.errors import ConfigError, InputError
from surelabel.records import LabelledImages

LISTS = {  # counted and digested from the published lists, before they came into the package
    ("coco-48-17", "seen"): (
        48,
        "cf4db8f336c46d76d318f8763cc9ce791daebb439501c6c7532a3b4b40af5d4a",
    ),
    ("coco-48-17", "unseen"): (
        17,
        "4328e8058fcefb3aee8a41468e7da24bf9d449c0b2e966c4e9aa17e31572a10f",
    ),
    ("coco-48-17", "unused"): (
        15,
        "5b127f183c2b3c76bb3734d111fc541f031a535dcf739840b3855a864650d665",
    ),
    ("nus-925-81", "seen"): (
        925,
        "64661e1df4e869f17a65b339a839c7dd2015952f9157abf87009667125339d3e",
    ),
    ("nus-925-81", "unseen"): (
        81,
        "454b648677332111743cef9d74eacca941c9df4c61bd2d2a273c7d466941d04b",
    ),
}
words = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=3, max_size=12, unique=True)


@pytest.mark.parametrize(("vocabulary", "part"), LISTS)
def test_a_published_list_is_whole(vocabulary, part):
    names = getattr(VOCABULARIES[vocabulary], part)
    digest = sha256("\n".join(sorted(names)).encode()).hexdigest()
    assert (len(names), digest) == LISTS[vocabulary, part]
    assert list(names) == sorted(names)


def test_the_file_of_lists_has_no_line_that_is_left_over():
    lines = files("surelabel.data").joinpath("vocabularies.tsv").read_text().splitlines()
    assert len(lines) == 1 + sum(count for count, _ in LISTS.values())


def test_scenes_are_divided_as_their_words_say():
    scenes = VOCABULARIES["scenes-48-17"]
    assert [len(part) for part in (scenes.seen, scenes.unseen, scenes.unused)] == [48, 17, 15]
    assert {word.name for word in all_scene_words() if word.part == "unseen"} == set(scenes.unseen)
    assert {*scenes.names, *scenes.unused} == set(collection("scenes-80", split="test").names)


def test_coco_has_its_80_categories():
    coco = VOCABULARIES["coco-48-17"]
    assert len({*coco.seen, *coco.unseen, *coco.unused}) == 80
    assert {"airplane", "scissors"} < set(coco.unseen)
    assert {"hot dog", "teddy bear"} < set(coco.unused)


def test_nus_wide_has_six_concepts_that_are_no_tags():
    nus = VOCABULARIES["nus-925-81"]
    assert {"computer", "fire", "map", "swimmers", "tattoo", "whales"} < set(nus.unseen)
    assert len(nus.seen) + len(nus.unseen) - 6 == 1000
    assert nus.names == nus.seen + nus.unseen


@given(words, st.integers(-3, 3), st.data())
def test_names_are_divided_by_their_digests_whatever_their_order(names, seed, data):
    unseen = data.draw(st.integers(1, len(names) - 1))
    unused = data.draw(st.integers(0, len(names) - 1 - unseen))
    row = sorted(names, key=lambda n: sha256(f"{seed} {n}".encode()).digest())
    found = split_vocabulary(names, unseen=unseen, unused=unused, seed=seed)
    assert set(found.unseen) == set(row[:unseen])
    assert set(found.unused) == set(row[unseen : unseen + unused])
    assert set(found.seen) == set(row[unseen + unused :])
    for part in (found.seen, found.unseen, found.unused):
        assert [n for n in names if n in part] == list(part)
    other = split_vocabulary(names[::-1], unseen=unseen, unused=unused, seed=seed)
    assert set(other.unseen) == set(found.unseen)


def test_scenes_are_divided_the_same_way_on_every_machine():
    names = collection("scenes-80", split="test").names
    found = split_vocabulary(names, unseen=17, unused=15)
    assert (len(found.seen), len(found.unseen), len(found.unused)) == (48, 17, 15)
    assert found.unseen[:4] == ("lion", "giraffe", "bear", "horse")
    assert split_vocabulary(names, unseen=17, unused=15, seed=1) != found


def test_another_spelling_moves_no_name():
    plain = split_vocabulary(["sofa", "dog", "cup"], unseen=1)
    spelt = split_vocabulary(["Sofa|couch", "dog", "cup"], unseen=1)
    assert [n.partition("|")[0].lower() for n in spelt.unseen] == list(plain.unseen)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"unseen": 3}, "At least one label must be seen; got 3 labels with 3 unseen and 0 unused"),
        ({"unseen": 1, "unused": 2}, "1 unseen and 2 unused"),
        ({"unseen": 0}, "unseen must be an integer >= 1"),
        ({"unseen": 1, "unused": -1}, "unused must be an integer >= 0"),
        ({"unseen": 1.0}, "seed must be an integer; got .*1.0"),
        ({"unseen": 1, "seed": True}, "seed must be an integer; got .*True"),
    ],
)
def test_what_cannot_be_divided_is_refused(wanted, message):
    with pytest.raises(ConfigError, match=message):
        split_vocabulary(["a", "b", "c"], **wanted)


def test_names_that_come_twice_are_refused():
    with pytest.raises(InputError, match="Labels must be unique"):
        split_vocabulary(["a", "b", "A"], unseen=1)
    with pytest.raises(InputError, match="Labels must be unique"):
        Vocabulary(("a",), ("b", "b"))
    with pytest.raises(InputError, match="Labels must be unique"):
        Vocabulary(("a",), ("b",), ("A",))


@pytest.mark.parametrize("unseen", [("cup", "Dog"), ("hound|dog ",)])
def test_a_name_cannot_be_seen_and_unseen_at_once(unseen):
    with pytest.raises(InputError, match=r"either seen or unseen; got 'dog' in both lists"):
        Vocabulary(("cat", "dog"), unseen)


def test_a_vocabulary_needs_names_of_both_kinds():
    with pytest.raises(InputError, match=r"at least one unseen label; got none"):
        Vocabulary(("dog",), ("", " "))
    with pytest.raises(InputError, match=r"at least one seen label; got none"):
        Vocabulary((), ("dog",))


def test_empty_lines_of_a_list_are_no_names():
    assert Vocabulary(("dog", ""), ("", " cup")).names == ("dog", "cup")


def test_images_with_an_unseen_label_are_removed_and_counted():
    train = collection("scenes-80", split="train")
    vocabulary = split_vocabulary(train.names, unseen=17, unused=15)
    seen, removed = remove_unseen_vocabulary_classes(train, vocabulary)
    column = {name: i for i, name in enumerate(train.names)}
    kept = [
        i
        for i in range(len(train))
        if not any(train.targets[i, column[name]] for name in vocabulary.unseen)
    ]
    assert list(seen.paths) == [train.paths[i] for i in kept]
    assert removed == len(train) - len(kept) == 647
    assert tuple(seen.names) == vocabulary.seen
    for place, name in enumerate(seen.names):
        assert (seen.targets[:, place] == train.targets[kept, column[name]]).all()


def test_an_image_stays_where_nobody_knows_of_an_unseen_label():
    images = LabelledImages(["a", "b"], ["dog", "cup"], [[1, np.nan], [np.nan, 1]])
    seen, removed = remove_unseen_vocabulary_classes(images, Vocabulary(("dog",), ("cup",)))
    assert (seen.paths, removed) == (["a"], 1)


def test_a_trace_of_an_unseen_label_is_enough():
    images = LabelledImages(["a", "b"], ["dog", "cup"], [[1, 0], [1, 0.1]])
    assert remove_unseen_vocabulary_classes(images, Vocabulary(("dog",), ("cup",)))[0].paths == [
        "a"
    ]


def test_columns_are_found_by_any_spelling():
    images = LabelledImages(["a", "b"], ["Couch", "mug"], [[1, 0], [1, 1]])
    vocabulary = Vocabulary(("sofa|couch",), ("cup|mug",))
    seen, removed = remove_unseen_vocabulary_classes(images, vocabulary)
    assert (seen.names, seen.targets.tolist(), removed) == (["sofa|couch"], [[1.0]], 1)


def test_an_unseen_name_without_a_column_would_leak_and_is_refused():
    images = LabelledImages(["a"], ["dog", "mug"], [[1, 0]])
    with pytest.raises(InputError, match="got the labels 'dog', 'mug' without 'cup'"):
        remove_unseen_vocabulary_classes(images, Vocabulary(("dog",), ("cup",)))
    check_vocabulary_columns(["dog"], images.names)


def test_a_column_that_spells_a_seen_and_an_unseen_name_is_refused():
    images = LabelledImages(["a", "b"], ["sofa|couch", "cup"], [[1, 0], [0, 1]])
    with pytest.raises(InputError, match=r"got 'sofa\|couch', which matches"):
        remove_unseen_vocabulary_classes(images, Vocabulary(("sofa", "cup"), ("couch",)))


def test_something_must_be_left_to_learn_from():
    images = LabelledImages(["a"], ["dog", "cup"], [[1, 1]])
    with pytest.raises(
        InputError, match=r"each of the 1 images has a label among 'cup'\. Use fewer unseen"
    ):
        remove_unseen_vocabulary_classes(images, Vocabulary(("dog",), ("cup",)))
