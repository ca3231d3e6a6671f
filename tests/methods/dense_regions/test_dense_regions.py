from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import surelabel as sl
from surelabel.data import open_image
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.methods import DenseRegions, TextScorer
from surelabel.methods.dense_regions import dense_regions as module
from surelabel.methods.dense_regions.refinement import refine_by_attention
from surelabel.methods.dense_regions.windows import select_windows
from surelabel.records import Features
from surelabel.views import crop_and_resize_box

NAMES = ["lion", "guitar", "pizza", "sofa|couch"]
GRID = (2, 3)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def drawn(n=3, *, views=None, grid=GRID, seed=0):
    generator = torch.Generator().manual_seed(seed)
    p = grid[0] * grid[1]

    def units(*shape):
        return F.normalize(torch.randn(*shape, 128, generator=generator), dim=-1)

    return Features(
        pooled=units(n),
        patches=units(n, p),
        grid=grid,
        attention=torch.randn(n, p, p, generator=generator).softmax(dim=-1),
        views=units(n, views) if views else None,
    )


@pytest.mark.parametrize("domain", ["softmax", "reference"])
def test_equals_the_blend_of_patches_with_image_and_windows_name_by_name(encoder, domain):
    features = drawn(views=2)
    text_scorer = TextScorer(encoder, NAMES, domain=domain, background="usual")
    whole, views = text_scorer(features.pooled), text_scorer(features.views)
    patches = refine_by_attention(text_scorer(features.patches), features.attention, GRID)
    expected = [
        [
            0.2 * max(float(z) for z in patches[i, :, j])
            + 0.8 * max(float(whole[i, j]), *(float(z) for z in views[i, :, j]))
            for j in range(4)
        ]
        for i in range(3)
    ]
    got = DenseRegions(encoder, NAMES, domain=domain, patch_weight=0.2)(features)
    torch.testing.assert_close(got, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_maps_are_the_refined_scores_of_patches_on_their_grid(encoder):
    features, it = drawn(), DenseRegions(encoder, NAMES)
    expected = refine_by_attention(it.text_scorer(features.patches), features.attention, GRID)
    maps = it.heat_maps(features)
    assert maps.shape == (3, 4, 2, 3)
    assert torch.equal(maps[1, 2, 1, 0], expected[1, 3, 2])


def test_windows_lie_where_patches_are_strong_before_they_are_refined(encoder):
    features, it = drawn(), DenseRegions(encoder, NAMES, windows=2, window_size=0.3)
    maps = it.text_scorer(features.patches).transpose(1, 2).unflatten(2, GRID)
    expected = select_windows(maps, count=2, window_size=0.3)
    assert [list(cut.regions) for cut in it.next_views(features)] == expected


def test_nothing_is_looked_at_twice_and_nothing_at_all_with_no_windows(encoder):
    assert DenseRegions(encoder, NAMES).next_views(drawn(views=2)) is None
    assert DenseRegions(encoder, NAMES, windows=0).next_views(drawn()) is None


def test_a_window_filled_up_with_the_image_changes_nothing(encoder):
    features, it = drawn(views=2), DenseRegions(encoder, NAMES)
    filled = torch.cat([features.views, features.pooled[:, None]], dim=1)
    torch.testing.assert_close(it(replace(features, views=filled)), it(features))


def test_many_images_are_scored_as_few_are(encoder, monkeypatch):
    features, it = drawn(5), DenseRegions(encoder, NAMES)
    scores, cuts = it(features), it.next_views(features)
    monkeypatch.setattr(module, "IMAGES_PER_BATCH", 2)
    torch.testing.assert_close(it(features), scores)
    assert it.next_views(features) == cuts


def test_identical_images_have_identical_windows_and_scores(encoder):
    one = drawn(1)
    twin = Features(
        *(torch.cat([x, x]) for x in (one.pooled, one.patches)),
        grid=GRID,
        attention=torch.cat([one.attention] * 2),
    )
    it = DenseRegions(encoder, NAMES)
    first, second = it.next_views(twin)
    assert first == second
    assert torch.equal(*it(twin))


@pytest.mark.parametrize("grid", [(1, 1), (1, 5), (7, 1)])
def test_grids_of_one_patch_or_one_row_are_scored_and_cut(encoder, grid):
    it, features = DenseRegions(encoder, NAMES, windows=3), drawn(2, grid=grid)
    assert it(features).isfinite().all()
    assert all(1 <= len(cut.regions) <= 3 for cut in it.next_views(features))


def test_patches_that_are_all_the_same_leave_no_name_out(encoder):
    features = drawn()
    flat = replace(features, patches=features.patches[:, :1].expand(-1, 6, -1))
    it = DenseRegions(encoder, NAMES)
    alone = it.text_scorer(flat.patches[:, 0])
    torch.testing.assert_close(it.heat_maps(flat).amax(dim=(2, 3)), alone, rtol=1e-4, atol=1e-4)
    assert len(it.next_views(flat)) == 3


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (5, 5)])
def test_an_image_smaller_than_a_patch_is_scored(encoder, size):
    it = DenseRegions(encoder, NAMES, windows=2)
    image = Image.new("RGB", size, "green")
    features = encoder.encode_patches_with_attention(encoder.preprocess(image)[None])
    (cut,) = it.next_views(features)
    parts = [crop_and_resize_box(image, box, size=(96, 96)) for box in cut.boxes(size, "")]
    views = encoder.encode_images(torch.stack([encoder.preprocess(part) for part in parts])).pooled
    assert it(replace(features, views=views[None])).isfinite().all()


def test_fewer_than_three_names_need_scores_of_their_own(encoder):
    with pytest.raises(ConfigError, match="needs 3 or more"):
        DenseRegions(encoder, ["lion"])
    it = DenseRegions(encoder, ["lion"], domain="reference")
    assert it(drawn()).shape == (3, 1)
    assert [len(cut.regions) for cut in it.next_views(drawn())] == [1, 1, 1]


def test_half_precision_gives_nearly_the_same_scores(encoder):
    features = drawn(views=2)
    half = replace(features, patches=features.patches.half().float())
    it = DenseRegions(encoder, NAMES)
    torch.testing.assert_close(it(half), it(features), atol=0.05, rtol=0.05)


def test_pooled_vectors_alone_are_refused(encoder):
    with pytest.raises(InputError, match=r"needs features\.patches, features\.grid and"):
        DenseRegions(encoder, NAMES)(Features(pooled=drawn().pooled))


@pytest.mark.parametrize(
    "settings",
    [
        {"windows": -1},
        {"window_size": 1e-5},
        {"window_size": 1.1},
        {"patch_weight": -0.1},
        {"patch_weight": 1.1},
    ],
)
def test_settings_out_of_range_are_refused(encoder, settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        DenseRegions(encoder, NAMES, **settings)


def test_a_side_that_is_no_multiple_of_a_patch_is_refused_with_the_nearest(encoder):
    with pytest.raises(ConfigError, match=r"multiple of 12 pixels.*nearest multiple is 96"):
        DenseRegions(encoder, NAMES, image_size=100)


def test_the_side_is_what_patches_ask_for_unless_one_is_named(encoder):
    assert DenseRegions(encoder, NAMES).image_size == 96
    assert DenseRegions(load_encoder("tiny-rn"), NAMES).image_size == 128
    assert DenseRegions(encoder, NAMES, image_size=144).image_size == 144


def test_on_scenes_windows_find_objects_that_the_whole_image_hides(encoder):
    test = sl.collection("scenes-80", split="test")
    rows = slice(0, 16)
    images = [open_image(path, min_side=256) for path in test.paths[rows]]
    it = DenseRegions(encoder, test.names)
    large = encoder.with_image_size(it.image_size)
    features = large.encode_patches_with_attention(
        torch.stack([large.preprocess(p) for p in images])
    )
    views = [
        encoder.encode_images(
            torch.stack(
                [
                    encoder.preprocess(crop_and_resize_box(image, box, size=(96, 96)))
                    for box in cut.boxes(image.size, "")
                ]
            )
        ).pooled
        for image, cut in zip(images, it.next_views(features), strict=True)
    ]
    seen = replace(features, views=torch.stack(views))
    targets = torch.from_numpy(test.targets[rows])

    def found(scores):
        """Fraction of the labels among the first as many names of an image as it has."""
        hits = [
            targets[i, scores[i].topk(int(targets[i].sum())).indices].sum()
            for i in range(len(targets))
        ]
        return float(sum(hits) / targets.sum())

    assert found(it(seen)) > found(it.text_scorer(features.pooled)) + 0.1


@pytest.mark.parametrize(
    ("settings", "depends"),
    [
        ({}, True),
        ({"domain": "reference", "background": "none"}, True),
        ({"windows": 0}, True),
        ({"domain": "reference", "windows": 0, "background": "none"}, False),
    ],
)
def test_without_windows_labels_with_the_reference_list_are_independent(settings, depends, encoder):
    assert DenseRegions(encoder, NAMES, **settings).scores_depend_on_other_labels == depends
