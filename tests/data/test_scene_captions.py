"""Captions name what is seen, mostly the main object alone; relevance is a share by hand."""

import numpy as np
import pytest

from surelabel.data.scene_arrangement import MIN_VISIBLE_SHARE, SceneSampler
from surelabel.data.scene_captions import (
    CAPTION_KINDS,
    caption_relevance,
    caption_scene,
    sparse_caption_relevance,
)
from surelabel.data.scene_words import read_scene_vocabulary

WORDS = read_scene_vocabulary("scenes-80")


@pytest.fixture(scope="module")
def drawn():
    """Scenes with made-up visible shares, in which the main object is always seen."""
    sample, rng = SceneSampler(WORDS, seed=2), np.random.default_rng(0)
    scenes = [sample(i) for i in range(300)]
    shares = rng.random((len(scenes), 7)).astype(np.float32)
    shares[:, 0] = 1
    return list(zip(scenes, shares, strict=True))


def visible(scene, seen):
    return set(scene.words[seen[: len(scene.words)] >= MIN_VISIBLE_SHARE].tolist())


def test_there_are_five_sentences_of_four_kinds(drawn):
    for scene, seen in drawn:
        assert tuple(c.kind for c in caption_scene(scene, seen, WORDS)) == CAPTION_KINDS
    assert CAPTION_KINDS == ("iconic", "pair", "full", "paraphrase", "paraphrase")


def test_an_iconic_caption_names_the_main_object_only(drawn):
    for scene, seen in drawn:
        iconic = caption_scene(scene, seen, WORDS)[0]
        assert iconic.mentions == (scene.words[0],)


def test_a_pair_names_the_main_object_and_one_other_where_there_is_one(drawn):
    for scene, seen in drawn:
        pair = caption_scene(scene, seen, WORDS)[1]
        assert pair.mentions[0] == scene.words[0]
        assert len(pair.mentions) == min(2, len(visible(scene, seen)))


def test_a_full_caption_names_every_visible_object_once(drawn):
    for scene, seen in drawn:
        full = caption_scene(scene, seen, WORDS)[2]
        assert sorted(full.mentions) == sorted(visible(scene, seen))


def test_no_caption_names_a_hidden_object(drawn):
    for scene, seen in drawn:
        for caption in caption_scene(scene, seen, WORDS):
            assert set(caption.mentions) <= visible(scene, seen)


def test_paraphrases_name_what_the_pair_and_the_full_caption_name(drawn):
    for scene, seen in drawn:
        _, pair, full, pair_again, full_again = caption_scene(scene, seen, WORDS)
        assert pair_again.mentions == pair.mentions
        assert set(full_again.mentions) == set(full.mentions)
        assert pair_again.text != pair.text
        assert full_again.text != full.text


def test_what_is_mentioned_stands_in_the_text(drawn):
    for scene, seen in drawn:
        for caption in caption_scene(scene, seen, WORDS):
            assert all(WORDS[i].name in caption.text for i in caption.mentions)


def test_the_same_scene_gets_the_same_captions(drawn):
    scene, seen = drawn[5]
    assert caption_scene(scene, seen, WORDS) == caption_scene(scene, seen, WORDS)


def test_a_caption_by_hand(drawn):
    scene, _ = next((s, v) for s, v in drawn if len(s.words) == 1)
    name = WORDS[scene.words[0]].name
    texts = [c.text for c in caption_scene(scene, np.ones(7, dtype=np.float32), WORDS)]
    assert texts[1:] == [
        f"a {name} alone.",
        f"a photo of a {name}.",
        f"a large {name}.",
        f"a scene with a {name}.",
    ]


def test_relevance_is_the_share_of_mentioned_objects_that_an_image_shows():
    targets = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    mentions = [[0], [0, 1], [1, 2, 3]]
    expected = [[1, 1, 1 / 3], [0, 1 / 2, 1], [0, 0, 0]]
    assert np.allclose(caption_relevance(mentions, targets), expected)


def test_sparse_relevance_lists_the_same_grades_without_zeros():
    relevance = sparse_caption_relevance(
        [[0], [0, 1], [1, 2, 3], [], [3, 3]], [[0, 1], [1, 2, 3], []], n_columns=4
    )
    triples = zip(relevance.image_rows, relevance.caption_rows, relevance.grades, strict=True)
    assert list(triples) == [
        (0, 0, 1),
        (0, 1, 1),
        (0, 2, 1 / 3),
        (1, 1, 0.5),
        (1, 2, 1),
        (1, 4, 1),
    ]


def test_an_image_is_fully_relevant_to_its_own_captions(drawn):
    scene, seen = next((s, v) for s, v in drawn if len(visible(s, v)) > 3)
    targets = np.zeros((1, len(WORDS)), dtype=bool)
    targets[0, list(visible(scene, seen))] = True
    own = [c.mentions for c in caption_scene(scene, seen, WORDS)]
    assert (caption_relevance(own, targets) == 1).all()
