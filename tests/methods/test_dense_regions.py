from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import surelabel as sl
from surelabel.backbones import load_backbone
from surelabel.data import open_picture
from surelabel.errors import ConfigError, InputError
from surelabel.methods import DenseRegions, Wording
from surelabel.methods import dense_regions as module
from surelabel.methods.maps import refined
from surelabel.methods.places import telling_places
from surelabel.records import Features
from surelabel.views import cut_out

NAMES = ["lion", "guitar", "pizza", "sofa|couch"]
GRID = (2, 3)


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


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
def test_equals_the_blend_of_patches_with_picture_and_windows_name_by_name(backbone, domain):
    features = drawn(views=2)
    wording = Wording(backbone, NAMES, domain=domain, background="usual")
    whole, views = wording(features.pooled), wording(features.views)
    patches = refined(wording(features.patches), features.attention, GRID)
    expected = [
        [
            0.2 * max(float(z) for z in patches[i, :, j])
            + 0.8 * max(float(whole[i, j]), *(float(z) for z in views[i, :, j]))
            for j in range(4)
        ]
        for i in range(3)
    ]
    got = DenseRegions(backbone, NAMES, domain=domain, share=0.2)(features)
    torch.testing.assert_close(got, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_maps_are_the_refined_scores_of_patches_on_their_grid(backbone):
    features, it = drawn(), DenseRegions(backbone, NAMES)
    expected = refined(it.wording(features.patches), features.attention, GRID)
    maps = it.maps(features)
    assert maps.shape == (3, 4, 2, 3)
    assert torch.equal(maps[1, 2, 1, 0], expected[1, 3, 2])


def test_windows_lie_where_patches_are_strong_before_they_are_refined(backbone):
    features, it = drawn(), DenseRegions(backbone, NAMES, windows=2, part=0.3)
    maps = it.wording(features.patches).transpose(1, 2).unflatten(2, GRID)
    expected = telling_places(maps, count=2, part=0.3)
    assert [list(cut.parts) for cut in it.cut(features)] == expected


def test_nothing_is_looked_at_twice_and_nothing_at_all_with_no_windows(backbone):
    assert DenseRegions(backbone, NAMES).cut(drawn(views=2)) is None
    assert DenseRegions(backbone, NAMES, windows=0).cut(drawn()) is None


def test_a_window_filled_up_with_the_picture_changes_nothing(backbone):
    features, it = drawn(views=2), DenseRegions(backbone, NAMES)
    filled = torch.cat([features.views, features.pooled[:, None]], dim=1)
    torch.testing.assert_close(it(replace(features, views=filled)), it(features))


def test_many_pictures_are_scored_as_few_are(backbone, monkeypatch):
    features, it = drawn(5), DenseRegions(backbone, NAMES)
    scores, cuts = it(features), it.cut(features)
    monkeypatch.setattr(module, "AT_ONCE", 2)
    torch.testing.assert_close(it(features), scores)
    assert it.cut(features) == cuts


def test_identical_pictures_have_identical_windows_and_scores(backbone):
    one = drawn(1)
    twin = Features(
        *(torch.cat([x, x]) for x in (one.pooled, one.patches)),
        grid=GRID,
        attention=torch.cat([one.attention] * 2),
    )
    it = DenseRegions(backbone, NAMES)
    first, second = it.cut(twin)
    assert first == second
    assert torch.equal(*it(twin))


@pytest.mark.parametrize("grid", [(1, 1), (1, 5), (7, 1)])
def test_grids_of_one_patch_or_one_row_are_scored_and_cut(backbone, grid):
    it, features = DenseRegions(backbone, NAMES, windows=3), drawn(2, grid=grid)
    assert it(features).isfinite().all()
    assert all(1 <= len(cut.parts) <= 3 for cut in it.cut(features))


def test_patches_that_are_all_the_same_leave_no_name_out(backbone):
    features = drawn()
    flat = replace(features, patches=features.patches[:, :1].expand(-1, 6, -1))
    it = DenseRegions(backbone, NAMES)
    alone = it.wording(flat.patches[:, 0])
    torch.testing.assert_close(it.maps(flat).amax(dim=(2, 3)), alone, rtol=1e-4, atol=1e-4)
    assert len(it.cut(flat)) == 3


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (5, 5)])
def test_a_picture_smaller_than_a_patch_is_scored(backbone, size):
    it = DenseRegions(backbone, NAMES, windows=2)
    picture = Image.new("RGB", size, "green")
    features = backbone.attentive(backbone.prepare(picture)[None])
    (cut,) = it.cut(features)
    parts = [cut_out(picture, box, size=(96, 96)) for box in cut.boxes(size, "")]
    views = backbone.images(torch.stack([backbone.prepare(part) for part in parts])).pooled
    assert it(replace(features, views=views[None])).isfinite().all()


def test_fewer_than_three_names_need_scores_of_their_own(backbone):
    with pytest.raises(ConfigError, match="needs 3 or more"):
        DenseRegions(backbone, ["lion"])
    it = DenseRegions(backbone, ["lion"], domain="reference")
    assert it(drawn()).shape == (3, 1)
    assert [len(cut.parts) for cut in it.cut(drawn())] == [1, 1, 1]


def test_half_precision_gives_nearly_the_same_scores(backbone):
    features = drawn(views=2)
    half = replace(features, patches=features.patches.half().float())
    it = DenseRegions(backbone, NAMES)
    torch.testing.assert_close(it(half), it(features), atol=0.05, rtol=0.05)


def test_pooled_vectors_alone_are_refused(backbone):
    with pytest.raises(InputError, match="needs patches, their grid and their attention"):
        DenseRegions(backbone, NAMES)(Features(pooled=drawn().pooled))


@pytest.mark.parametrize(
    "settings", [{"windows": -1}, {"part": 1e-5}, {"part": 1.1}, {"share": -0.1}, {"share": 1.1}]
)
def test_settings_out_of_range_are_refused(backbone, settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        DenseRegions(backbone, NAMES, **settings)


def test_a_side_that_is_no_multiple_of_a_patch_is_refused_with_the_nearest(backbone):
    with pytest.raises(ConfigError, match=r"multiple of 12 pixels.*nearest is 96"):
        DenseRegions(backbone, NAMES, side=100)


def test_the_side_is_what_patches_ask_for_unless_one_is_named(backbone):
    assert DenseRegions(backbone, NAMES).side == 96
    assert DenseRegions(load_backbone("tiny-rn"), NAMES).side == 128
    assert DenseRegions(backbone, NAMES, side=144).side == 144


def test_on_scenes_windows_find_objects_that_the_whole_picture_hides(backbone):
    test = sl.collection("scenes-80", split="test")
    rows = slice(0, 16)
    pictures = [open_picture(path, least_side=256) for path in test.paths[rows]]
    it = DenseRegions(backbone, test.names)
    large = backbone.at(it.side)
    features = large.attentive(torch.stack([large.prepare(p) for p in pictures]))
    views = [
        backbone.images(
            torch.stack(
                [
                    backbone.prepare(cut_out(picture, box, size=(96, 96)))
                    for box in cut.boxes(picture.size, "")
                ]
            )
        ).pooled
        for picture, cut in zip(pictures, it.cut(features), strict=True)
    ]
    seen = replace(features, views=torch.stack(views))
    targets = torch.from_numpy(test.targets[rows])

    def found(scores):
        """Share of the labels among the first as many names of a picture as it has."""
        hits = [
            targets[i, scores[i].topk(int(targets[i].sum())).indices].sum()
            for i in range(len(targets))
        ]
        return float(sum(hits) / targets.sum())

    assert found(it(seen)) > found(it.wording(features.pooled)) + 0.1
