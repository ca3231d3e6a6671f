import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.methods import TaI, TaIPlus, copy_method_fit
from surelabel.records import Features
from surelabel.training.learning_rates import learning_rate_parameter_groups

NAMES = ["lion", "guitar"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


def units(seed, *shape):
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(vectors, dim=-1)


def images(n=2):
    return Features(units(0, n, 128), patches=units(1, n, 6, 128), grid=(2, 3))


def moved(encoder):
    it = TaIPlus(encoder, NAMES).eval()
    with torch.no_grad():
        it.class_vectors.vectors += 0.1 * units(2, 2, 128)
    return it


@torch.no_grad()
def test_the_score_is_that_of_tai_with_a_class_vector_beside_the_global_text(encoder):
    it, tai = moved(encoder), TaI(encoder, NAMES).eval()
    copied = it.state_dict()
    tai.load_state_dict({name: copied[name] for name in tai.state_dict()})
    vectors = F.normalize(it.class_vectors.vectors, dim=-1)
    whole = it.text_scorer(images().pooled, it.global_context())
    vector = it.text_scorer(images().pooled, vectors)
    expected = tai(images()) + (vector - whole) / 4
    torch.testing.assert_close(it(images()), expected, atol=1e-4, rtol=1e-4)
    assert (vector - whole).abs().max() > 0.1


@torch.no_grad()
def test_a_new_label_is_scored_without_a_vector_as_by_tai(encoder):
    it = moved(encoder)
    new, tai = (method(encoder, ["bus", "guitar"]).eval() for method in (TaIPlus, TaI))
    copy_method_fit(it, new, encoder)
    assert new.fit_names == NAMES
    torch.testing.assert_close(new(images())[:, 1], it(images())[:, 1])
    torch.testing.assert_close(new(images())[:, 0], tai(images())[:, 0], atol=1e-4, rtol=1e-4)


def test_each_of_the_three_scores_and_their_mean_is_a_head(encoder):
    it = moved(encoder)
    features = encoder.encode_sentence_tokens(["a lion.", "a guitar on a hill"])
    targets = torch.eye(2)
    heads = it.training_scores(features, targets, targets >= 0)
    assert heads.shape == (4, 2, 2)
    torch.testing.assert_close(heads[3], (heads[0] + 2 * heads[1] + heads[2]) / 4)


def test_class_vectors_have_ten_times_the_learning_rate(encoder):
    it = TaIPlus(encoder, NAMES)
    source = torch.nn.Module()  # without parameters
    groups = learning_rate_parameter_groups(it, source, learning_rate=0.1, weight_decay=0.0)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert rates[id(it.class_vectors.vectors)] == pytest.approx(1.0)
    assert rates[id(it.global_context.vectors)] == pytest.approx(0.1)
