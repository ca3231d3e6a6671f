from functools import cache

import pytest
import torch
import torch.nn.functional as F
from open_clip.modified_resnet import AttentionPool2d

from surelabel.backbones import load_backbone
from surelabel.backbones.positions import stretched
from surelabel.errors import ConfigError, InputError
from surelabel.views import Box, attended, last_map, mean_of_patches, random_crops, tiles

BOXES = [Box(0, 0, 4, 3), Box(1, 0, 2, 2), Box(3, 2, 1, 1), Box(0, 1, 4, 1)]


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@cache
def resnet():
    return load_backbone("tiny-rn").dense()


@cache
def pictures():
    return noise(2, 3, *resnet().preprocess["size"])


def test_the_mean_of_patches_by_hand():
    patches = F.normalize(noise(2, 12, 5), dim=-1)
    views = mean_of_patches(patches, (3, 4), BOXES)
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
    views = mean_of_patches(patches, (3, 4), tiles((4, 3), down=3, across=4))
    torch.testing.assert_close(views, patches)


def test_the_whole_grid_is_the_vector_of_the_picture():
    tower = resnet()
    last = last_map(tower.model.visual, pictures())
    down, across = last.shape[2:]
    views = attended(tower.model.visual.attnpool, last, [Box(0, 0, across, down)])
    torch.testing.assert_close(views[:, 0], tower.images(pictures()).pooled)


def test_a_sub_grid_is_pooled_as_the_tower_of_its_size_would():
    tower = resnet()
    pool, last = tower.model.visual.attnpool, last_map(tower.model.visual, pictures())
    side = last.shape[2]
    boxes = random_crops((side, side), 4, generator=torch.Generator().manual_seed(1))
    boxes.append(Box(2, 1, 3, 3))
    views = attended(pool, last, boxes)
    for k, box in enumerate(boxes):
        alone = AttentionPool2d(1, last.shape[1], pool.num_heads, tower.width)
        state = pool.state_dict()
        shape = (box.height, box.width)
        state["positional_embedding"] = stretched(
            state["positional_embedding"], (side, side), shape
        )
        alone.positional_embedding = torch.nn.Parameter(state["positional_embedding"])
        alone.load_state_dict(state)
        cut = last[:, :, box.top : box.top + box.height, box.left : box.left + box.width]
        torch.testing.assert_close(views[:, k], F.normalize(alone(cut), dim=-1))


def test_gradients_reach_the_map():
    tower = resnet()
    last = last_map(tower.model.visual, pictures()).requires_grad_()
    attended(tower.model.visual.attnpool, last, [Box(0, 0, 2, 2)])[..., 0].sum().backward()
    assert last.grad[:, :, :2, :2].abs().sum() > 0
    assert last.grad[:, :, 2:].abs().sum() == 0


def test_a_tower_without_attention_pooling_is_refused():
    with pytest.raises(ConfigError, match=r"Got VisionTransformer; take the mean of its patches"):
        last_map(load_backbone("tiny-vit").model.visual, pictures())


def test_a_grid_that_does_not_hold_the_patches_is_refused():
    with pytest.raises(InputError, match=r"grid must hold all 12 patches.*Got \(3, 3\)"):
        mean_of_patches(noise(1, 12, 5), (3, 3), BOXES)


def test_boxes_are_columns_and_rows_and_must_lie_inside():
    with pytest.raises(InputError, match="inside the 4 by 3"):
        mean_of_patches(noise(1, 12, 5), (3, 4), [Box(0, 0, 3, 4)])


def test_no_boxes_are_refused():
    with pytest.raises(InputError, match="no boxes to look at"):
        mean_of_patches(noise(1, 12, 5), (3, 4), [])
