"""Rendering of scenes: what is painted, and what is true of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.scene_arrangement import MIN_VISIBLE_SHARE, Scene, SceneSampler
from surelabel.data.scene_words import read_scene_vocabulary
from surelabel.data.scenes import render_scenes, visible_scene_labels

WORDS = read_scene_vocabulary("scenes-80")
NAMES = [w.name for w in WORDS]
SIDE = 64


@pytest.fixture(scope="module")
def sprites():
    return draw_sprites(WORDS)


@pytest.fixture(scope="module")
def scenes():
    sample = SceneSampler(WORDS, seed=3)
    return [sample(i) for i in range(192)]


@pytest.fixture(scope="module")
def images(scenes, sprites):
    return render_scenes(scenes, sprites, SIDE)


def by_hand(*things):
    """A scene of upright things: (name, x, y, side, depth)."""
    names, x, y, sides, depths = zip(*things, strict=True)
    k = len(things)
    return Scene(
        words=np.array([NAMES.index(name) for name in names]),
        centres=np.array([x, y], dtype=np.float32).T,
        sides=np.array(sides, dtype=np.float32),
        angles=np.zeros(k, dtype=np.float32),
        mirrored=np.zeros(k, dtype=bool),
        tints=np.ones((k, 3), dtype=np.float32),
        depths=np.array(depths, dtype=np.float32),
        theme="by hand",
        background=1,
    )


def without(scene, k):
    """The same scene with its object ``k`` moved far out of the image."""
    centres = scene.centres.copy()
    centres[k] = 9
    return replace(scene, centres=centres)


def test_images_do_not_depend_on_their_batch(scenes, sprites, images):
    for start, stop in [(0, 1), (1, 4), (100, 117)]:
        alone = render_scenes(scenes[start:stop], sprites, SIDE)
        assert torch.allclose(alone.pixels, images.pixels[start:stop], atol=1e-5)
        assert torch.allclose(alone.visible_shares, images.visible_shares[start:stop], atol=1e-5)


def test_composing_twice_gives_the_same_bits(scenes, sprites):
    one, other = (render_scenes(scenes[:32], sprites, SIDE) for _ in range(2))
    assert torch.equal(one.pixels, other.pixels)
    assert torch.equal(one.visible_shares, other.visible_shares)


def test_pixels_and_shares_lie_between_0_and_1(images):
    assert 0 <= images.pixels.min() <= images.pixels.max() <= 1
    assert 0 <= images.visible_shares.min() <= images.visible_shares.max() <= 1


def test_nothing_is_seen_beyond_the_last_object(scenes, images):
    for scene, seen, boxes in zip(scenes, images.visible_shares, images.boxes, strict=True):
        assert (seen[len(scene.words) :] == 0).all()
        assert boxes[len(scene.words) :].isnan().all()


def test_boxes_lie_inside_the_image_and_every_label_has_one(images):
    there = ~images.boxes.isnan().any(dim=-1)
    boxes = images.boxes[there]
    assert boxes.min() >= 0
    assert boxes.max() <= 1
    assert (boxes[:, 0] < boxes[:, 2]).all()
    assert (boxes[:, 1] < boxes[:, 3]).all()
    assert there[images.visible_shares >= MIN_VISIBLE_SHARE].all()


def test_taking_an_object_away_changes_the_image_inside_its_box_only(scenes, sprites):
    chosen = [(s, k) for s in scenes[:24] for k in range(len(s.words))]
    whole = render_scenes([s for s, _ in chosen], sprites, SIDE)
    lacking = render_scenes([without(s, k) for s, k in chosen], sprites, SIDE)
    changed = (whole.pixels - lacking.pixels).abs().amax(dim=1) > 0.26  # a box starts at alpha 0.25
    rows, ys, xs = changed.nonzero(as_tuple=True)
    assert len(rows) > 10_000
    left, top, right, bottom = whole.boxes[rows, [chosen[r][1] for r in rows]].T * SIDE
    assert (xs >= left).all()
    assert (xs + 1 <= right).all()
    assert (ys >= top).all()
    assert (ys + 1 <= bottom).all()


def test_the_box_of_an_upright_ball_is_where_it_was_put(sprites):
    made = render_scenes([by_hand(("soccer ball", 0.4, 0.6, 0.5, 0.5))], sprites, 128)
    assert made.boxes[0, 0].tolist() == pytest.approx([0.15, 0.35, 0.65, 0.85], abs=0.02)
    assert made.visible_shares[0, 0] == pytest.approx(1, abs=0.02)


def test_a_box_ends_at_the_edge_of_the_image_and_half_a_ball_is_half_seen(sprites):
    made = render_scenes([by_hand(("soccer ball", 0.0, 0.5, 0.5, 0.5))], sprites, 128)
    assert made.boxes[0, 0].tolist() == pytest.approx([0, 0.25, 0.25, 0.75], abs=0.02)
    assert made.visible_shares[0, 0] == pytest.approx(0.5, abs=0.02)


def test_a_mirrored_object_is_the_mirror_image(sprites):
    scene = by_hand(("key", 0.5, 0.5, 0.5, 0.5))
    mirrored = replace(scene, mirrored=np.array([True]))
    empty = without(scene, 0)
    one, other, ground = render_scenes([scene, mirrored, empty], sprites, SIDE).pixels
    shape = (one - ground).abs().amax(0) > 0.3
    flipped = (other - ground).abs().amax(0) > 0.3
    assert shape.sum() > 100
    assert (shape.flip(1) != flipped).sum() < 0.2 * (shape != flipped).sum()


def test_a_small_object_behind_the_main_one_is_no_label(sprites):
    main, small = ("soccer ball", 0.5, 0.5, 0.6, 0.5), ("key", 0.5, 0.5, 0.2, 0.9)
    made = render_scenes([by_hand(main, small)], sprites, 128)
    assert made.visible_shares[0, 1] < 0.05
    assert present(made, by_hand(main, small)) == {"soccer ball"}


def test_the_same_object_in_front_is_a_label(sprites):
    scene = by_hand(("soccer ball", 0.5, 0.5, 0.6, 0.5), ("key", 0.5, 0.5, 0.2, 0.1))
    made = render_scenes([scene], sprites, 128)
    assert made.visible_shares[0, 1] > 0.95
    assert present(made, scene) == {"soccer ball", "key"}


def test_an_object_that_peeps_out_is_a_label_when_three_tenths_of_it_are_seen(sprites):
    scenes = [
        by_hand(("television", 0.5, 0.5, 0.6, 0.5), ("soccer ball", x, 0.55, 0.2, 0.9))
        for x in np.linspace(0.5, 0.88, 12)
    ]
    made = render_scenes(scenes, sprites, 128)
    shares = made.visible_shares[:, 1].tolist()
    assert shares == sorted(shares)
    assert shares[0] < MIN_VISIBLE_SHARE < shares[-1]
    there = visible_scene_labels(scenes, made.visible_shares, len(WORDS))[
        :, NAMES.index("soccer ball")
    ]
    assert there.tolist() == [share >= MIN_VISIBLE_SHARE for share in shares]


def present(made, scene):
    row = visible_scene_labels([scene], made.visible_shares, len(WORDS))[0]
    return {NAMES[i] for i in np.flatnonzero(row)}


def test_a_word_shown_twice_is_a_label_when_one_of_the_two_is_seen():
    scene = by_hand(("lion", 0.5, 0.5, 0.5, 0.5), ("key", 0, 0, 0.2, 1), ("key", 1, 1, 0.2, 1))
    assert visible_scene_labels([scene], torch.tensor([[1.0, 0.1, 0.3]]), 80).sum() == 2
    assert visible_scene_labels([scene], torch.tensor([[1.0, 0.1, 0.29]]), 80).sum() == 1


@pytest.mark.parametrize("name", ["scenes-80", "scenes-all"])
def test_an_image_has_about_three_labels(name):
    words = read_scene_vocabulary(name)
    sample = SceneSampler(words, seed=8)
    drawn = [sample(i) for i in range(384)]
    targets = visible_scene_labels(
        drawn, render_scenes(drawn, draw_sprites(words), 32).visible_shares, len(words)
    )
    assert 2.5 < targets.sum(axis=1).mean() < 3.5
    assert targets.any(axis=1).all()
