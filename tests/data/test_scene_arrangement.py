"""Sampling of scenes: objects, themes and frequencies."""

from collections import Counter

import numpy as np
import pytest

from surelabel.data.scene_arrangement import MAX_OBJECTS, SceneSampler
from surelabel.data.scene_words import read_scene_vocabulary

WORDS = read_scene_vocabulary("scenes-80")


@pytest.fixture(scope="module")
def scenes():
    sample = SceneSampler(WORDS, seed=3)
    return [sample(i) for i in range(192)]


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in one.__dataclass_fields__
    )


def test_the_same_seed_and_index_give_the_same_scene(scenes):
    again = SceneSampler(WORDS, seed=3)
    assert all(same(again(i), scenes[i]) for i in (191, 7, 0, 64))


def test_another_seed_gives_other_scenes(scenes):
    other = SceneSampler(WORDS, seed=4)
    assert not any(same(other(i), scenes[i]) for i in range(20))


def test_a_scene_has_one_large_object_and_up_to_six_small_ones(scenes):
    counts = Counter(len(s.words) for s in scenes)
    assert set(counts) == set(range(1, MAX_OBJECTS + 1))
    assert all(0.42 <= s.sides[0] <= 0.60 for s in scenes)
    assert all((s.sides[1:] <= 0.28).all() for s in scenes)


def test_the_main_object_is_of_the_theme(scenes):
    assert all(WORDS[s.words[0]].theme == s.theme for s in scenes)


def test_things_of_one_theme_meet_far_more_often_than_by_chance():
    sample = SceneSampler(WORDS, seed=5)
    drawn = [sample(i) for i in range(1500)]
    pairs = [(s.theme, WORDS[w].theme) for s in drawn for w in s.words[1:]]
    together = np.mean([main == small for main, small in pairs])
    mains, smalls = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(mains[t] * smalls[t] for t in mains) / len(pairs) ** 2
    assert chance < 0.15
    assert together > 0.65


def test_every_word_is_the_main_object_equally_often():
    sample = SceneSampler(WORDS, seed=6)
    count = np.bincount([sample(i).words[0] for i in range(4000)], minlength=len(WORDS))
    spread = ((count - 50) ** 2 / 50).sum()  # chi-square with 79 degrees of freedom
    assert spread < 124  # its 0.999 quantile


def test_with_a_long_tail_few_words_are_frequent_and_many_are_rare():
    sample = SceneSampler(WORDS, seed=6, long_tail=True)
    count = np.bincount([sample(i).words[0] for i in range(4000)], minlength=len(WORDS))
    count.sort()
    assert count[-8:].sum() > count.sum() * 0.35
    assert count[:40].sum() < count.sum() * 0.25
