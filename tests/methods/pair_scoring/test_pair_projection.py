import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods.pair_scoring.pair_projection import PairProjection, encode_label_sentences


def test_equal_widths_start_with_the_given_vectors():
    images, texts = torch.randn(3, 5), torch.randn(2, 5)
    projected = PairProjection(5)(images, texts)
    torch.testing.assert_close(projected, (F.normalize(images, dim=-1), F.normalize(texts, dim=-1)))


@pytest.mark.parametrize(("text_width", "width"), [(7, None), (7, 4), (5, 4)])
def test_other_widths_are_projected_to_one_space_of_unit_vectors(text_width, width):
    torch.manual_seed(0)
    projection = PairProjection(5, text_width, width)
    for vectors in projection(torch.randn(3, 5), torch.randn(2, text_width)):
        assert vectors.shape[1] == (width or 5)
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)))
    weight = projection.texts.weight
    gram = weight @ weight.T if len(weight) <= weight.shape[1] else weight.T @ weight
    torch.testing.assert_close(gram, torch.eye(len(gram)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("settings", [{"width": 0}, {"text_width": 0}, {"width": "wide"}])
def test_widths_that_are_no_positive_integers_are_refused(settings):
    with pytest.raises(ConfigError, match="must be a whole number of at least 1; got"):
        PairProjection(5, **settings)


def test_labels_need_a_text_encoder_of_the_width_of_the_captions():
    encoder = load_encoder("tiny-vit")
    assert encode_label_sentences(encoder, ["lion"], "one", None).shape == (1, encoder.width)
    assert encode_label_sentences(encoder, [], "one", 7).shape == (0, 7)
    with pytest.raises(ConfigError, match="width of the caption vectors, 7; got 128 from tiny-vit"):
        encode_label_sentences(encoder, ["lion"], "one", 7)
