import torch

from surelabel.encoders.engines.feature_module import FeatureModule


def test_tensors_and_features_are_converted_in_both_directions(random_encoder):
    pixels = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    module = FeatureModule(random_encoder, (0, 1))
    layout = module.layout(pixels[:2])
    with torch.no_grad():
        features = layout.features(module(pixels))
    expected = random_encoder.encode_ladder_features(pixels, first_block=0, depth=1)
    assert layout.grid == features.grid == expected.grid
    torch.testing.assert_close(features.pooled, expected.pooled)
    assert torch.equal(features.layers[-2], expected.layers[-2])
    assert torch.equal(features.self_aware_sum, expected.self_aware_sum)
    assert features.patches is features.patch_mask is features.attention is None


def test_vectors_that_were_rounded_are_normalized_again(random_encoder):
    layout = FeatureModule(random_encoder, "patches").layout(torch.randn(2, 3, 32, 32))
    features = layout.features((torch.full((2, 4), 0.51), torch.full((2, 16, 4), 0.49)))
    torch.testing.assert_close(features.pooled, torch.full((2, 4), 0.5))
    torch.testing.assert_close(features.patches, torch.full((2, 16, 4), 0.5))
