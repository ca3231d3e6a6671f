from functools import cache

import pytest
import torch
import torch.nn.functional as F
from open_clip.modified_resnet import AttentionPool2d

from surelabel.encoders import load_encoder
from surelabel.encoders.towers.position_embeddings import interpolate_position_embeddings
from surelabel.errors import ConfigError, InputError
from surelabel.views import (
    Box,
    attention_pool_subgrids,
    last_feature_map_for_subgrids,
    mean_pool_subgrids,
    random_crop_boxes,
    tile_grid_boxes,
)

BOXES = [Box(0, 0, 4, 3), Box(1, 0, 2, 2), Box(3, 2, 1, 1), Box(0, 1, 4, 1)]


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@cache
def resnet():
    return load_encoder("tiny-rn").with_dense_image_size()


@cache
def images():
    return noise(2, 3, *resnet().preprocess_cfg["size"])


def test_the_mean_of_patches_by_hand():
    patches = F.normalize(noise(2, 12, 5), dim=-1)
    views = mean_pool_subgrids(patches, (3, 4), BOXES)
    assert views.shape == (2, 4, 5)
    for i in range(2):
        for k, box in enumerate(BOXES):
            total = torch.zeros(5)
            for row in range(box.top, box.top + box.height):
                for column in range(box.left, box.left + box.width):
                    total += patches[i, 4 * row + column]
            torch.testing.assert_close(views[i, k], total / total.norm())


def test_a_sub_grid_of_one_cell_is_that_patch():
    patches = F.normalize(noise(2, 12, 5), dim=-1)
    views = mean_pool_subgrids(patches, (3, 4), tile_grid_boxes((4, 3), rows=3, columns=4))
    torch.testing.assert_close(views, patches)


def test_the_whole_grid_is_the_vector_of_the_image():
    tower = resnet()
    last = last_feature_map_for_subgrids(tower.model.visual, images())
    down, across = last.shape[2:]
    views = attention_pool_subgrids(tower.model.visual.attnpool, last, [Box(0, 0, across, down)])
    torch.testing.assert_close(views[:, 0], tower.encode_images(images()).pooled)


def test_a_sub_grid_is_pooled_as_the_tower_of_its_size_would():
    tower = resnet()
    pool, last = (
        tower.model.visual.attnpool,
        last_feature_map_for_subgrids(tower.model.visual, images()),
    )
    side = last.shape[2]
    boxes = random_crop_boxes((side, side), 4, generator=torch.Generator().manual_seed(1))
    boxes.append(Box(2, 1, 3, 3))
    views = attention_pool_subgrids(pool, last, boxes)
    for k, box in enumerate(boxes):
        alone = AttentionPool2d(1, last.shape[1], pool.num_heads, tower.width)
        state = pool.state_dict()
        shape = (box.height, box.width)
        state["positional_embedding"] = interpolate_position_embeddings(
            state["positional_embedding"], (side, side), shape
        )
        alone.positional_embedding = torch.nn.Parameter(state["positional_embedding"])
        alone.load_state_dict(state)
        cut = last[:, :, box.top : box.top + box.height, box.left : box.left + box.width]
        torch.testing.assert_close(views[:, k], F.normalize(alone(cut), dim=-1))


def test_gradients_reach_the_map():
    tower = resnet()
    last = last_feature_map_for_subgrids(tower.model.visual, images()).requires_grad_()
    attention_pool_subgrids(tower.model.visual.attnpool, last, [Box(0, 0, 2, 2)])[
        ..., 0
    ].sum().backward()
    assert last.grad[:, :, :2, :2].abs().sum() > 0
    assert last.grad[:, :, 2:].abs().sum() == 0


def test_a_tower_without_attention_pooling_is_refused():
    with pytest.raises(ConfigError, match=r"got VisionTransformer. Use mean_pool_subgrids"):
        last_feature_map_for_subgrids(load_encoder("tiny-vit").model.visual, images())


def test_a_grid_that_does_not_hold_the_patches_is_refused():
    with pytest.raises(InputError, match=r"grid must contain 12 patches.*got \(3, 3\)"):
        mean_pool_subgrids(noise(1, 12, 5), (3, 3), BOXES)


def test_boxes_are_columns_and_rows_and_must_lie_inside():
    with pytest.raises(InputError, match="grid of 4 by 3"):
        mean_pool_subgrids(noise(1, 12, 5), (3, 4), [Box(0, 0, 3, 4)])


def test_no_boxes_are_refused():
    with pytest.raises(InputError, match="one sub-grid or more; got none"):
        mean_pool_subgrids(noise(1, 12, 5), (3, 4), [])
