import open_clip
import pytest
import torch

from surelabel.encoders import ENCODERS, load_encoder
from surelabel.errors import ConfigError
from surelabel.features.encoding_batch_size import encoding_batch_size


class EncoderOfSize:
    """Number of parameters and image size of an encoder, without its weights."""

    def __init__(self, n_image_parameters, side, device="cpu"):
        self.n_image_parameters, self.device = n_image_parameters, torch.device(device)
        self.preprocess_cfg = {"size": [side, side]}


def encoder_of_architecture(name):
    config = open_clip.get_model_config(name)
    with torch.device("meta"):
        visual = open_clip.model._build_vision_tower(config["embed_dim"], config["vision_cfg"])
    n_parameters = sum(parameter.numel() for parameter in visual.parameters())
    return EncoderOfSize(n_parameters, config["vision_cfg"]["image_size"])


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_embedded_encoders_have_batches_of_64_at_every_image_size_of_a_method(name):
    encoder = load_encoder(name)
    assert encoding_batch_size(encoder) == 64
    assert encoding_batch_size(encoder.with_dense_image_size()) == 64
    assert encoder.n_image_parameters == sum(
        values.numel()
        for key, values in encoder.model.state_dict().items()
        if key.startswith("visual.") and "running" not in key and "num_batches" not in key
    )


@pytest.mark.parametrize(
    ("name", "gigaflops"),  # of one image: 2 per multiply-add, as published by open_clip
    [("ViT-B-32", 8.8), ("ViT-B-16", 35.1), ("ViT-L-14", 162.0), ("ViT-L-14-336", 382.0)],
)
def test_a_batch_of_a_large_encoder_takes_less_than_15_seconds_at_40_gigaflops(name, gigaflops):
    size = encoding_batch_size(encoder_of_architecture(name))
    assert 1 <= size < 64
    assert size * gigaflops / 40 < 15


def test_the_batch_size_is_at_least_1_and_falls_with_the_number_of_pixels():
    sizes = [encoding_batch_size(EncoderOfSize(10**8, side)) for side in (64, 128, 256, 10**5)]
    assert sizes == [64, 31, 7, 1]


def test_a_large_encoder_on_another_device_has_batches_of_64():
    assert encoding_batch_size(EncoderOfSize(10**9, 336, "cuda")) == 64


def test_a_placeholder_without_images_has_no_batch_size():
    with pytest.raises(ConfigError, match="got image files"):
        encoding_batch_size(load_encoder("features:8"))
