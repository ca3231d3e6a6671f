"""The table of words keeps its rules; vocabularies come from names and files."""

import unicodedata
from collections import Counter

import pytest

from surelabel.data.scene_words import all_scene_words, read_scene_vocabulary
from surelabel.errors import DataError, InputError, UnknownName

# What people say where the Unicode name says something else.
SPOKEN = {
    "backpack": "school satchel",
    "car": "automobile",
    "coffee": "hot beverage",
    "cooking pan": "cooking",
    "corn": "ear of maize",
    "dinosaur": "t-rex",
    "high heel": "high-heeled shoe",
    "kitchen knife": "hocho",
    "laptop": "personal computer",
    "lightning": "high voltage sign",
    "piano": "musical keyboard",
    "pumpkin": "jack-o-lantern",
    "running shoe": "athletic shoe",
    "sun hat": "womans hat",
    "tennis ball": "tennis racquet and ball",
    "train": "steam locomotive",
}


def test_there_are_enough_words_and_themes():
    assert len(all_scene_words()) >= 250
    assert len({w.theme for w in all_scene_words()}) >= 12


def test_every_theme_has_enough_words_to_fill_a_scene():
    assert min(Counter(w.theme for w in all_scene_words()).values()) >= 7


def test_no_name_and_no_character_comes_twice():
    words = all_scene_words()
    assert len({w.name for w in words}) == len(words)
    assert len({w.character for w in words}) == len(words)


def test_a_word_is_in_the_unicode_name_or_is_how_people_say_it():
    official = {w.name: unicodedata.name(w.character).lower() for w in all_scene_words()}
    assert {name: official[name] for name in SPOKEN} == SPOKEN
    assert [n for n, of in official.items() if n not in of and n not in SPOKEN] == []


def test_the_list_of_spoken_names_has_nothing_to_spare():
    assert set(SPOKEN) <= {w.name for w in all_scene_words()}


def test_names_are_short_and_can_be_spoken():
    for word in all_scene_words():
        assert word.name.replace(" ", "").isalpha()
        assert word.name == word.name.lower()
        assert len(word.name.split()) <= 3


def test_scenes_80_has_48_seen_17_unseen_and_15_unused_words():
    sizes = Counter(w.part for w in read_scene_vocabulary("scenes-80"))
    assert sizes == {"seen": 48, "unseen": 17, "unused": 15}
    assert {w.part for w in all_scene_words()} == {"seen", "unseen", "unused", ""}


def test_scenes_80_keeps_the_order_of_all_words():
    order = [w.name for w in all_scene_words()]
    places = [order.index(w.name) for w in read_scene_vocabulary("scenes-80")]
    assert places == sorted(places)


def test_a_file_is_a_vocabulary_in_its_own_order(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("zebra\n\n lion \nzebra\nhot dog\n")
    assert [w.name for w in read_scene_vocabulary(file)] == ["zebra", "lion", "hot dog"]


def test_a_word_that_cannot_be_drawn_is_named(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("lion\nbicycle pump\n")
    with pytest.raises(UnknownName, match="must be in scenes-all; got 'bicycle pump'"):
        read_scene_vocabulary(file)


def test_one_word_is_too_few_for_a_scene(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("lion\n")
    with pytest.raises(InputError, match=r"at least two words; got 1 in .*mine.txt"):
        read_scene_vocabulary(file)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00lion"], ids=["absent", "no text"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    file = tmp_path / "mine.txt"
    if content:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"mine\.txt .*scenes-80, scenes-all or a text file"):
        read_scene_vocabulary(file)
