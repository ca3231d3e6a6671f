import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.encoders.image_only.exported_model import exported_model
from surelabel.features import FeatureCache, add_text_feature_cache

PROMPTS = ["a photo of a {}.", "{}"]


class Counting:
    """A real encoder that notes which names it was asked to encode."""

    def __init__(self):
        self._real = load_encoder("tiny-vit")
        self.fingerprint, self.asked = self._real.fingerprint, []

    def encode_labels(self, names, templates):
        self.asked.append(list(names))
        return self._real.encode_labels(names, templates)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def test_the_vectors_are_those_of_the_encoder(encoder, tmp_path):
    found = add_text_feature_cache(encoder, FeatureCache(tmp_path)).encode_labels(
        ["lion", "car"], PROMPTS
    )
    torch.testing.assert_close(
        found, encoder.encode_labels(["lion", "car"], PROMPTS), atol=1e-3, rtol=0
    )
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))


def test_a_name_is_encoded_once_and_the_same_ever_after(tmp_path):
    encoder, vectors = Counting(), []
    for names in (["lion", "car"], ["car", "crab", "lion"], ["lion"]):
        vectors.append(
            add_text_feature_cache(encoder, FeatureCache(tmp_path)).encode_labels(names, PROMPTS)
        )
    assert encoder.asked == [["lion", "car"], ["crab"]]
    assert torch.equal(vectors[0], vectors[1][[2, 0]])
    assert torch.equal(vectors[0][:1], vectors[2])


def test_other_prompts_are_other_texts(tmp_path):
    encoder = Counting()
    for prompts in (PROMPTS, PROMPTS[:1], PROMPTS[1:]):
        add_text_feature_cache(encoder, FeatureCache(tmp_path)).encode_labels(["lion"], prompts)
    assert encoder.asked == [["lion"]] * 3


def test_everything_else_is_the_encoder_itself(encoder, tmp_path):
    same = add_text_feature_cache(encoder, FeatureCache(tmp_path))
    assert (same.name, same.width, same.fingerprint) == ("tiny-vit", 128, encoder.fingerprint)


def test_an_exported_recognizer_has_no_texts_to_cache(exported_file, tmp_path):
    encoder = exported_model(exported_file(), "cpu")
    assert add_text_feature_cache(encoder, FeatureCache(tmp_path)) is encoder
