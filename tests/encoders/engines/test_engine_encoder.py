import copy
import pickle
import sys
import warnings

import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.encoders.engines import TORCH_FP32, engine_encoder
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.encoders.transformers.naflex import NaflexPreprocessor
from surelabel.errors import ConfigError, InputError, MissingPart, UnknownName
from surelabel.features.feature_kinds import image_cache_fingerprint
from surelabel.records import Features


@pytest.fixture
def encoder(random_encoder):
    return random_encoder


@pytest.fixture
def with_bf16(monkeypatch):
    monkeypatch.setattr(engine_encoder, "has_bf16_instructions", lambda device: True)


def test_nothing_is_printed_or_warned_about_by_the_conversion(encoder, capfd, shared_conversions):
    shared_conversions.clear()  # the other tests of an engine use the result
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder_with_engine(encoder, "openvino").encode_images(torch.zeros(1, 3, 32, 32))
    assert capfd.readouterr() == ("", "")


def test_torch_fp32_is_the_encoder_itself(encoder):
    assert encoder_with_engine(encoder, "torch") is encoder
    assert encoder_with_engine(encoder_with_engine(encoder, "onnx"), "torch") is encoder


@pytest.mark.usefixtures("with_bf16")
def test_engine_and_number_format_are_a_part_of_the_key_of_the_cache(encoder):
    versions = [
        encoder,
        *(
            encoder_with_engine(encoder, *engine)
            for engine in (("torch", "bf16"), ("onnx",), ("openvino",), ("openvino", "bf16"))
        ),
    ]
    keys = [image_cache_fingerprint(version) for version in versions]
    assert keys[0] == encoder.fingerprint
    assert len(set(keys)) == len(versions)
    assert {version.fingerprint for version in versions} == {encoder.fingerprint}


@pytest.mark.usefixtures("with_bf16")
def test_other_image_sizes_keep_the_engine(encoder):
    larger = encoder_with_engine(encoder, "torch", "bf16").with_image_size(64)
    assert larger.engine.description == "torch bf16"
    assert larger.preprocess_cfg["size"] == [64, 64]
    assert larger.with_dense_image_size() is larger


@pytest.mark.usefixtures("with_bf16", "shared_conversions")
@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_images_of_another_size_are_refused(encoder, engine):
    dtype = "bf16" if engine == "torch" else "fp32"
    with pytest.raises(InputError, match=r"\(n, 3, 32, 32\); got \(1, 3, 16, 32\)"):
        encoder_with_engine(encoder, engine, dtype).encode_images(torch.zeros(1, 3, 16, 32))


def test_texts_are_those_of_the_encoder(encoder):
    engine = encoder_with_engine(encoder, "onnx")
    texts = engine.encode_sentences(["a photo of a dog"])
    assert torch.equal(texts, encoder.encode_sentences(["a photo of a dog"]))


@pytest.mark.usefixtures("shared_conversions")
def test_copies_and_pickles_have_the_same_engine(encoder):
    engine = encoder_with_engine(encoder, "onnx")
    engine.encode_images(torch.zeros(1, 3, 32, 32))  # compiled graphs cannot be pickled
    for other in (copy.copy(engine), pickle.loads(pickle.dumps(engine))):
        assert other.engine == engine.engine
        assert other.fingerprint == encoder.fingerprint


def test_a_processor_without_bf16_computes_in_fp32(encoder, monkeypatch):
    monkeypatch.setattr(engine_encoder, "has_bf16_instructions", lambda device: False)
    with pytest.warns(UserWarning, match="no instructions for bf16; torch computes in fp32"):
        assert encoder_with_engine(encoder, "torch", "bf16").engine == TORCH_FP32
    with pytest.warns(UserWarning, match="bf16") as caught:
        assert encoder_with_engine(encoder, "openvino", "bf16").engine.dtype == "fp32"
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("engine", "error", "message"),
    [
        (("tensorrt",), UnknownName, "torch, onnx, openvino"),
        (("onnx", "bf16"), ConfigError, "onnx supports fp32; got 'bf16'"),
        (("torch", "fp16"), ConfigError, "torch supports fp32 and bf16; got 'fp16'"),
    ],
)
def test_bad_settings_are_refused(encoder, engine, error, message):
    with pytest.raises(error, match=message):
        encoder_with_engine(encoder, *engine)


def test_an_encoder_without_a_network_is_refused():
    with pytest.raises(ConfigError, match="PyTorch network; got features:4"):
        encoder_with_engine(PrecomputedFeatures(4), "onnx")


def test_an_encoder_that_keeps_the_aspect_ratio_is_refused(encoder):
    naflex = copy.copy(encoder)
    naflex.preprocess = NaflexPreprocessor(
        {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bilinear"},
        patch_size=4,
        max_num_patches=30,
    )
    with pytest.raises(ConfigError, match="aspect ratio of each image"):
        encoder_with_engine(naflex, "onnx")


def _first_row_of_bright_images(pixels):
    return pixels[:, 0, 0] if pixels.mean() > 0 else pixels[:, 0, 1]


@pytest.mark.parametrize(
    ("engine", "compute"),
    [
        ("onnx", lambda pixels: torch.linalg.eigvals(pixels[:, 0]).real),  # not an ONNX operator
        ("openvino", _first_row_of_bright_images),
    ],
)
def test_an_operation_that_an_engine_cannot_run_is_an_error(encoder, engine, compute, capfd):
    other = copy.copy(encoder)
    other.encode_images = lambda pixels: Features(pooled=compute(pixels))
    expected = rf"^The engine {engine} cannot compute the features 'images' of .*engine torch\.$"
    with pytest.raises(ConfigError, match=expected) as error:
        encoder_with_engine(other, engine).encode_images(torch.ones(1, 3, 32, 32))
    assert len(str(error.value)) < 700
    assert capfd.readouterr() == ("", "")


def test_a_trained_network_keeps_the_engine(encoder):
    network = encoder.trainable_network()
    tuned = encoder_with_engine(encoder, "onnx").with_network(network)
    assert tuned.engine.description == "onnx fp32"
    assert tuned.name == f"{encoder.name} (fine-tuned)"


def test_a_missing_package_is_named(encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingPart, match=r"openvino.*pip install 'surelabel\[export\]'"):
        encoder_with_engine(encoder, "openvino").encode_images(torch.zeros(1, 3, 32, 32))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_bf16_on_a_gpu_is_mixed_precision_in_channels_last(random_checkpoint):
    encoder = load_encoder(f"local-dir:{random_checkpoint}", device="cuda")
    pixels = torch.randn(4, 3, 32, 32)
    expected = encoder.encode_images(pixels).pooled.cpu()
    converted = encoder_with_engine(encoder, "torch", "bf16")
    features = converted.encode_images(pixels).pooled
    assert features.dtype == torch.float32
    assert torch.cosine_similarity(features.cpu(), expected).min() > 0.999
