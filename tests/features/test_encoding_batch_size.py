import warnings

import numpy as np
import open_clip
import pytest
import torch

from surelabel.encoders import ENCODERS, load_encoder
from surelabel.encoders.image_only.exported_model import exported_model
from surelabel.errors import ConfigError, InputError
from surelabel.features.encoding_batch_size import encode_within_memory, encoding_batch_size


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


def test_a_large_encoder_on_a_device_that_is_not_measured_has_batches_of_64():
    assert encoding_batch_size(EncoderOfSize(10**9, 336, "mps")) == 64


def test_images_of_different_sizes_are_encoded_one_by_one(exported_file):
    for inputs, expected in (("raw", 1), ("pixels", 64), ("views", 64)):
        encoder = exported_model(exported_file(inputs=inputs), "cpu")
        assert encoding_batch_size(encoder) == expected


def test_a_placeholder_without_images_has_no_batch_size():
    with pytest.raises(ConfigError, match="got image files"):
        encoding_batch_size(load_encoder("features:8"))


class ExhaustedEncoder:
    """Encoder of vectors, whose device has memory for ``limit`` images."""

    def __init__(self, limit):
        self.limit, self.sizes = limit, []

    def __call__(self, pixels):
        if len(pixels) > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.sizes.append(len(pixels))
        return (pixels.sum((1, 2, 3)) + 1).numpy().astype(np.float16)


@pytest.fixture
def encode_twice(request):
    """Function that encodes 11 images twice; its encoder differs in each test."""
    pixels = torch.arange(11.0)[:, None, None, None].expand(11, 3, 1, 1)

    def encode(encoder):
        name = request.node.name
        return [
            encode_within_memory(encoder, pixels, fingerprint=name, kind="images") for _ in range(2)
        ]

    return encode


def test_exhausted_memory_halves_the_batches_of_the_encoder(encode_twice):
    encoder = ExhaustedEncoder(3)
    with pytest.warns(UserWarning, match="with at most [25] images per forward pass") as warned:
        features = encode_twice(encoder)
    assert len(warned) == 2
    assert encoder.sizes == [2, 2, 2, 2, 2, 1] * 2
    for vectors in features:
        assert vectors.tolist() == [3 * i + 1 for i in range(11)]


def test_batches_that_fit_are_not_divided(encode_twice):
    encoder = ExhaustedEncoder(11)
    encode_twice(encoder)
    assert encoder.sizes == [11, 11]


def test_an_image_that_exhausts_the_memory_is_an_error(encode_twice):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match="Encoding needs memory for at least one image"):
            encode_twice(ExhaustedEncoder(0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_batch_size_on_a_gpu_is_a_power_of_two_that_fits():
    encoder = load_encoder("tiny-vit", device="cuda")
    size = encoding_batch_size(encoder)
    assert size in [2**i for i in range(9)]
    encoder.encode_images(torch.zeros(size, 3, *encoder.preprocess_cfg["size"]))
