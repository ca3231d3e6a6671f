import json
import math
import random
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from surelabel.errors import InputError
from surelabel.views import (
    Box,
    blend_labels_of_sewing,
    paste_sewing_overlays,
    sample_sewing_overlay_boxes,
    sample_sewing_overlays,
    sewing_overlay_count_probabilities,
    sewing_overlay_size,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/tailorclip_views.json").read_text())
MAINS = [(50, 40), (64, 64), (37, 91)]  # of the recorded cases; image i has label i only
OVERLAYS = [(30, 60), (80, 20), (45, 45), (101, 67)]
cases = pytest.mark.parametrize("case", GOLDEN["sewing"])
SIDES = st.integers(1, 300)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def noise(size, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("case", GOLDEN["overlays"])
def test_chances_are_those_recorded(case):
    settings = {"max_overlays": case["L"], "overlay_probability": case["p"]}
    assert sewing_overlay_count_probabilities(**settings) == pytest.approx(
        [0, *case["code_P(n=1..L)"]]
    )
    paper = case["paper_strict_less_P(n=0..L)"]
    assert sewing_overlay_count_probabilities(**settings, variant="paper") == pytest.approx(paper)


@cases
def test_the_draws_of_the_code_give_its_very_boxes(case):
    dice = random.Random(case["seed"])
    ends = list(
        accumulate(
            sewing_overlay_count_probabilities(
                max_overlays=case["L"], overlay_probability=case["p"]
            )
        )
    )
    first = dice.random()
    count = next(n for n, end in enumerate(ends) if first < end)
    rows = [dice.randint(0, 3) for _ in range(count)]
    canvas, boxes = MAINS[case["seed"] % 3], []
    for row in rows:
        width, height = sewing_overlay_size(
            canvas, OVERLAYS[row], math.sqrt(case["q"] ** 2 / count)
        )
        left, top = dice.randint(0, canvas[0] - width), dice.randint(0, canvas[1] - height)
        boxes.append([left, top, width, height])
    assert list(canvas) == case["main_wh"]
    assert rows == case["overlay_indices"]
    assert boxes == case["boxes_xywh"]


@cases
def test_the_canvas_holds_the_overlays_pixel_by_pixel(case):
    canvas = noise(case["main_wh"], seed=9)
    overlays = [noise(OVERLAYS[row], seed=row) for row in case["overlay_indices"]]
    expected, covered = np.array(canvas), np.zeros(case["main_wh"][::-1], dtype=bool)
    for overlay, (left, top, width, height) in zip(overlays, case["boxes_xywh"], strict=True):
        place = np.s_[top : top + height, left : left + width]
        expected[place] = np.asarray(overlay.resize((width, height)))  # Pillow's own default
        covered[place] = True
    found = np.asarray(
        paste_sewing_overlays(canvas, overlays, [Box(*box) for box in case["boxes_xywh"]])
    )
    np.testing.assert_array_equal(found, expected)
    assert covered.mean() == pytest.approx(case["union_area_fraction"], abs=1e-9)


@cases
def test_labels_of_the_canvas_are_those_of_all_images_on_it(case):
    own = torch.eye(4)
    found = blend_labels_of_sewing(own, [[case["seed"] % 3, *case["overlay_indices"]]])
    assert found.tolist() == [case["hard_target"]]


def test_our_own_draws_have_the_sizes_of_the_code_and_reach_every_place():
    boxes = [
        sample_sewing_overlay_boxes((50, 40), [(101, 67)], generator=seeded(s))[0]
        for s in range(1500)
    ]
    assert {(b.width, b.height) for b in boxes} == {(32, 21)}
    lefts, tops = np.array([(b.left, b.top) for b in boxes]).T
    assert set(lefts) == set(range(50 - 32 + 1))
    assert set(tops) == set(range(40 - 21 + 1))
    assert np.corrcoef(lefts, tops)[0, 1] == pytest.approx(0, abs=0.08)


@pytest.mark.parametrize("variant", ["code", "paper"])
def test_overlays_are_as_many_as_their_chances_say(variant):
    generator = seeded(0)
    settings = {"max_overlays": 3, "overlay_probability": 0.6, "variant": variant}
    counts = [len(sample_sewing_overlays(9, generator=generator, **settings)) for _ in range(4000)]
    found = np.bincount(counts, minlength=4) / 4000
    assert found == pytest.approx(sewing_overlay_count_probabilities(**settings), abs=0.03)


def test_every_image_of_the_patch_set_is_drawn_alike():
    generator = seeded(0)
    rows = [row for _ in range(3000) for row in sample_sewing_overlays(5, generator=generator)]
    assert np.bincount(rows) / len(rows) == pytest.approx(np.full(5, 0.2), abs=0.03)


def test_the_area_is_shared_by_those_there_in_the_code_and_by_the_most_in_the_paper():
    one = [(40, 40)]
    (code,) = sample_sewing_overlay_boxes(
        (100, 100), one, generator=seeded(0), overlay_scale=0.6, max_overlays=4
    )
    (paper,) = sample_sewing_overlay_boxes(
        (100, 100), one, generator=seeded(0), overlay_scale=0.6, max_overlays=4, variant="paper"
    )
    assert (code.width, paper.width) == (60, 30)


@given(st.tuples(SIDES, SIDES), st.lists(st.tuples(SIDES, SIDES), max_size=4), st.integers(0, 99))
def test_boxes_lie_inside_and_keep_the_budget(canvas, overlays, seed):
    boxes = sample_sewing_overlay_boxes(canvas, overlays, generator=seeded(seed))
    assert len(boxes) == len(overlays)
    for box in boxes:
        assert 0 <= box.left < box.left + box.width <= canvas[0]
        assert 0 <= box.top < box.top + box.height <= canvas[1]
        assert box.width <= max(0.65 * canvas[0], 1)
        assert box.height <= max(0.65 * canvas[1], 1)


def test_on_an_image_of_one_pixel_and_from_a_line_a_pixel_is_left():
    assert sewing_overlay_size((1, 1), (300, 200), 0.65) == (1, 1)
    assert sewing_overlay_size((100, 100), (20_000, 2), 0.65) == (65, 1)
    (box,) = sample_sewing_overlay_boxes((1, 1), [(300, 200)], generator=seeded(0))
    assert paste_sewing_overlays(noise((1, 1), 0), [noise((300, 200), 1)], [box]).size == (1, 1)


def test_sewing_leaves_the_images_as_they_were():
    image, overlay = noise((30, 20), 0), noise((9, 9), 1)
    before = image.tobytes(), overlay.tobytes()
    canvas = paste_sewing_overlays(image, [overlay], [Box(0, 0, 9, 9)])
    assert (image.tobytes(), overlay.tobytes()) == before
    assert canvas.tobytes() != before[0]
    assert paste_sewing_overlays(image, [], []).tobytes() == before[0]


def test_the_same_seed_sews_the_same_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()

    def draw(seed):
        generator = seeded(seed)
        rows = sample_sewing_overlays(50, generator=generator, max_overlays=3)
        return rows, sample_sewing_overlay_boxes(
            (90, 80), [(30, 20)] * len(rows), generator=generator
        )

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert torch.equal(before, torch.get_rng_state())


def recorded_rows():
    labels = GOLDEN["labels"]
    return [[main, *more] for main, more in zip(labels["main"], labels["overlays"], strict=True)]


def test_labels_and_their_gradients_are_those_of_the_code():
    labels = GOLDEN["labels"]
    logits = torch.tensor(labels["logits"], requires_grad=True)
    found = blend_labels_of_sewing(logits, recorded_rows())
    torch.testing.assert_close(found.detach(), torch.tensor(labels["blended"]))
    weak = torch.tensor(labels["weak"]).sigmoid()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(found, weak)
    (0.5 * loss).backward()
    torch.testing.assert_close(logits.grad, torch.tensor(labels["gradient"]), rtol=0, atol=1e-6)


def test_tied_images_share_the_gradient():
    logits = torch.full((3, 1), -13.8155, requires_grad=True)
    blend_labels_of_sewing(logits, [[0, 1, 2]]).sum().backward()
    torch.testing.assert_close(logits.grad, torch.full((3, 1), 1 / 3))


def test_an_image_sewn_on_itself_keeps_its_labels():
    logits = torch.tensor([[1.0, -2.0]], requires_grad=True)
    found = blend_labels_of_sewing(logits, [[0, 0]])
    found.sum().backward()
    assert found.tolist() == [[1, -2]]
    assert logits.grad.tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: sewing_overlay_count_probabilities(max_overlays=0),
            r"max_overlays must be 1 or more and overlay_probability in \[0, 1\]",
        ),
        (
            lambda: sewing_overlay_count_probabilities(overlay_probability=1.5),
            "got max_overlays=1, overlay_probability=1.5",
        ),
        (
            lambda: sewing_overlay_count_probabilities(variant="released"),
            'variant must be "paper" or "code"; got \'released\'',
        ),
        (
            lambda: sample_sewing_overlay_boxes((5, 5), [], generator=seeded(0), variant="Code"),
            'variant must be "paper" or "code"; got \'Code\'',
        ),
        (
            lambda: sample_sewing_overlays(0, generator=seeded(0)),
            "n_candidates must be 1 or more; got 0",
        ),
        (
            lambda: sewing_overlay_size((0, 5), (3, 3), 0.5),
            r"size must be a width and a height.*\(0, 5\)",
        ),
        (
            lambda: sewing_overlay_size((5, 5), (3, 0), 0.5),
            r"size must be a width and a height.*\(3, 0\)",
        ),
        (
            lambda: sewing_overlay_size((5, 5), (3, 3), 1.5),
            r"scale must be a fraction of a side, in \(0, 1\]",
        ),
        (
            lambda: sample_sewing_overlay_boxes((5, 5), [], generator=seeded(0), overlay_scale=0),
            r"overlay_scale in \(0, 1\]",
        ),
        (
            lambda: paste_sewing_overlays(noise((5, 5), 0), [], [Box(0, 0, 1, 1)]),
            "for each of 0 overlays; got 1",
        ),
        (
            lambda: paste_sewing_overlays(noise((5, 5), 0), [noise((5, 5), 0)], [Box(3, 0, 4, 4)]),
            "grid of 5 by 5",
        ),
        (
            lambda: blend_labels_of_sewing(torch.zeros(2, 3), []),
            "one row number or more for each canvas",
        ),
        (
            lambda: blend_labels_of_sewing(torch.zeros(2, 3), [[0], []]),
            "one row number or more for each canvas",
        ),
        (
            lambda: blend_labels_of_sewing(torch.zeros(2, 3), [[0, 2]]),
            "row numbers of logits, 0 to 1",
        ),
        (
            lambda: blend_labels_of_sewing(torch.zeros(2, 3), [[-1]]),
            "row numbers of logits, 0 to 1",
        ),
    ],
)
def test_what_cannot_be_sewn_is_refused(call, complaint):
    with pytest.raises(InputError, match=complaint):
        call()
