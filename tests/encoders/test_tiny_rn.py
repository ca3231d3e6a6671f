import torch

from surelabel.encoders.tiny_rn import tiny_rn


def test_the_grid_is_eight_by_eight_at_256_pixels():
    large = tiny_rn().with_dense_image_size()
    pixels = torch.randn(1, 3, 256, 256, generator=torch.Generator().manual_seed(0))
    assert large.encode_patches(pixels).grid == (8, 8)
    assert large.encode_self_aware_patches(pixels).patches.shape == (1, 64, 128)
