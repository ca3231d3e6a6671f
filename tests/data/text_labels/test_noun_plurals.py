from importlib.resources import files

import pytest

from surelabel.data.text_labels.noun_plurals import plural_nouns, plural_phrases

REGULAR = """
dog dogs, horse horses, giraffe giraffes, chef chefs, roof roofs, car cars, tv tvs, ski skis,
bench benches, couch couches, box boxes, fox foxes, glass glasses, dish dishes, toothbrush
toothbrushes, lens lenses, puppy puppies, berry berries, key keys, monkey monkeys, boy boys,
zoo zoos, radio radios, studio studios, blouse blouses, hoodie hoodies, 747 747s, café cafés
"""
IRREGULAR = """
man men, woman women, fireman firemen, snowboarder snowboarders, child children, grandchild
grandchildren, person people, salesperson salespeople, knife knives, penknife penknives, wife wives,
leaf leaves, loaf loaves, bookshelf bookshelves, wolf wolves, calf calves, mouse mice, goose geese,
mongoose mongooses, foot feet, tooth teeth, ox oxen, louse lice, die dice, sheep sheep, deer deer,
reindeer reindeer, fish fish, goldfish goldfish, moose moose, aircraft aircraft, series series,
bus buses, quiz quizzes, potato potatoes, tomato tomatoes, cactus cacti, octopus octopuses,
human humans, german germans, ottoman ottomans, stomach stomachs, plateau plateaux, axis axes
"""


@pytest.mark.parametrize(
    ("noun", "plural"),
    [pair.split() for table in (REGULAR, IRREGULAR) for pair in table.split(",")],
)
def test_the_plural_of_a_noun(noun, plural):
    assert plural in plural_nouns(noun)


@pytest.mark.parametrize(
    ("noun", "wrong"),
    [("man", "mans"), ("fox", "foxen"), ("blouse", "blice"), ("knife", "knifes"), ("box", "boxs")],
)
def test_a_word_that_is_no_plural_is_not_returned(noun, wrong):
    assert wrong not in plural_nouns(noun)


def test_several_spellings_are_returned():
    assert plural_nouns("scarf") == ("scarves", "scarfs")
    assert plural_nouns("mango") == ("mangos", "mangoes")
    assert plural_nouns("jellyfish") == ("jellyfish", "jellyfishes")


@pytest.mark.parametrize(
    ("phrase", "plurals"),
    [
        ("hot dog", ["hot dogs"]),
        ("glass of wine", ["glasses of wine"]),
        ("jack in the box", ["jacks in the box"]),
        ("in box", ["in boxes"]),
        ("of", ["ofs"]),
        ("police officer", ["police officers"]),
    ],
)
def test_the_head_of_a_phrase_changes(phrase, plurals):
    assert [" ".join(words) for words in plural_phrases(tuple(phrase.split()))] == plurals


def test_the_file_of_plurals_has_two_columns_and_no_noun_twice():
    lines = files("surelabel.data").joinpath("plurals.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["singular", "plurals"]
    assert all(len(row) == 2 and all(row) for row in rows)
    assert len({noun for noun, _ in rows}) == len(rows)
