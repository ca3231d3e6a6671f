import pytest
import torch

from surelabel.encoders.quantized.quantized_encoder import QuantizationRecord, QuantizedEncoder
from surelabel.encoders.quantized.quantized_model import quantize_features


@pytest.fixture(scope="session")
def pixels():
    return torch.randn(20, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="session")
def quantized_model(random_encoder, pixels):
    return quantize_features(random_encoder, "images", pixels)


@pytest.fixture
def quantized(random_encoder, quantized_model):
    return QuantizedEncoder(random_encoder, (quantized_model,), QuantizationRecord(20, 9, 0.5, 0.4))
