"""What every engine must do."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from surelabel.encoders.engines import ENGINES
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.encoders.interface import ENCODER_METHODS

TOLERANCES = {"fp32": 1e-5, "bf16": 0.02}  # of the elements of unit vectors
pytestmark = pytest.mark.usefixtures("shared_conversions")
CASES = [(name, dtype) for name, engine in ENGINES.items() for dtype in engine.dtypes]


@pytest.fixture(autouse=True)
def has_bf16(monkeypatch):
    module = "surelabel.encoders.engines.engine_encoder.has_bf16_instructions"
    monkeypatch.setattr(module, lambda device: True)


@pytest.fixture(scope="module")
def encoder(random_encoder):
    return random_encoder


@pytest.fixture(scope="module")
def pixels():
    return torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_vectors_equal_those_of_torch_fp32(encoder, pixels, name, dtype):
    engine = encoder_with_engine(encoder, name, dtype)
    expected = encoder.encode_images(pixels).pooled
    for n in (5, 1, 2):
        actual = engine.encode_images(pixels[:n]).pooled
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual.norm(dim=1), torch.ones(n))
        torch.testing.assert_close(actual, expected[:n], atol=TOLERANCES[dtype], rtol=0)
    with ThreadPoolExecutor(2) as threads:
        parts = list(threads.map(engine.encode_images, [pixels[:2], pixels[2:]] * 2))
    for part, rows in zip(parts, [slice(2), slice(2, 5)] * 2, strict=True):
        torch.testing.assert_close(part.pooled, expected[rows], atol=TOLERANCES[dtype], rtol=0)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["attentive", "multi_layer", "ladder"])
def test_all_tensors_of_a_kind_are_returned(encoder, pixels, name, kind):
    def encode(encoder):
        if kind == "ladder":
            return encoder.encode_ladder_features(pixels, first_block=0, depth=2)
        return getattr(encoder, ENCODER_METHODS[kind])(pixels)

    expected, actual = vars(encode(encoder)), vars(encode(encoder_with_engine(encoder, name)))
    for field, value in expected.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(actual[field], value, atol=1e-4, rtol=1e-4)
        elif field == "layers" and value is not None:
            assert actual[field].keys() == value.keys()
            for index, layer in value.items():
                torch.testing.assert_close(actual[field][index], layer, atol=1e-4, rtol=1e-4)
        else:
            assert actual[field] == value
