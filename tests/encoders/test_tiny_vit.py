import torch

from surelabel.encoders.tiny_vit import tiny_vit


def test_the_grid_is_eight_by_eight_at_its_own_size():
    encoder = tiny_vit()
    assert encoder.with_dense_image_size().preprocess_cfg["size"] == [96, 96]
    pixels = torch.randn(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    assert encoder.encode_patches(pixels).grid == (8, 8)
    assert encoder.encode_self_aware_patches(pixels).patches.shape == (1, 64, 128)
