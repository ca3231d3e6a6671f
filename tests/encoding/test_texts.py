import pytest
import torch

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache
from surelabel.encoding import remembering

PROMPTS = ["a photo of a {}.", "{}"]


class Counting:
    """A real backbone that notes which names it was asked to encode."""

    def __init__(self):
        self._real = load_backbone("tiny-vit")
        self.fingerprint, self.asked = self._real.fingerprint, []

    def texts(self, names, templates):
        self.asked.append(list(names))
        return self._real.texts(names, templates)


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


def test_the_vectors_are_those_of_the_encoder(backbone, tmp_path):
    found = remembering(backbone, FeatureCache(tmp_path)).texts(["lion", "car"], PROMPTS)
    torch.testing.assert_close(found, backbone.texts(["lion", "car"], PROMPTS), atol=1e-3, rtol=0)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))


def test_a_name_is_encoded_once_and_the_same_ever_after(tmp_path):
    backbone, vectors = Counting(), []
    for names in (["lion", "car"], ["car", "crab", "lion"], ["lion"]):
        vectors.append(remembering(backbone, FeatureCache(tmp_path)).texts(names, PROMPTS))
    assert backbone.asked == [["lion", "car"], ["crab"]]
    assert torch.equal(vectors[0], vectors[1][[2, 0]])
    assert torch.equal(vectors[0][:1], vectors[2])


def test_other_prompts_are_other_texts(tmp_path):
    backbone = Counting()
    for prompts in (PROMPTS, PROMPTS[:1], PROMPTS[1:]):
        remembering(backbone, FeatureCache(tmp_path)).texts(["lion"], prompts)
    assert backbone.asked == [["lion"]] * 3


def test_everything_else_is_the_encoder_itself(backbone, tmp_path):
    same = remembering(backbone, FeatureCache(tmp_path))
    assert (same.name, same.width, same.fingerprint) == ("tiny-vit", 128, backbone.fingerprint)
