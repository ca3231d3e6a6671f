"""What the words of a list become, by hand, and what is refused."""

import math

import pytest
import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder, reference_names
from surelabel.errors import ConfigError
from surelabel.features import FeatureCache, add_text_feature_cache
from surelabel.methods import BACKGROUNDS, SCORE_DOMAINS, TextScorer
from surelabel.methods.text_scoring.text_scorer import (
    encode_synonyms_for_text_scorer,
    text_scorer_background_without_labels,
    text_scorer_background_words,
)

ONE = ["a photo of a {}."]
NAMES = ["lion", "guitar", "pizza"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return add_text_feature_cache(
        load_encoder("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts"))
    )


@pytest.fixture(scope="module")
def vectors(encoder):
    drawn = torch.randn(5, encoder.width, generator=torch.Generator().manual_seed(0))
    return F.normalize(drawn, dim=-1)


def test_scores_are_those_of_the_formula_one_vector_and_name_at_a_time(encoder, vectors):
    words = ["sky", "grass"]
    texts = [encoder.encode_labels([n], ONE)[0] for n in NAMES]
    others = [encoder.encode_labels([w], ONE)[0] for w in words]
    for x, row in zip(vectors, TextScorer(encoder, NAMES, background=words)(vectors), strict=True):
        usual = [*(encoder.encode_labels(reference_names(), ONE) @ x).tolist()]
        usual += [float(x @ t) for t in others]
        level = math.log(sum(math.exp(encoder.scale * u) for u in usual) / len(usual))
        expected = [encoder.scale * float(x @ t) - level for t in texts]
        assert row.tolist() == pytest.approx(expected, abs=1e-4)


def test_the_scale_stands_in_the_place_of_the_encoders_own(encoder, vectors):
    twice = TextScorer(encoder, NAMES, domain="centred", scale=2 * encoder.scale)
    torch.testing.assert_close(
        twice(vectors), 2 * TextScorer(encoder, NAMES, domain="centred")(vectors)
    )


def test_spellings_of_one_label_share_the_mean_of_their_vectors(encoder):
    both = encode_synonyms_for_text_scorer(encoder, ["car| taxi ", "bus"], ONE)
    mean = F.normalize(encoder.encode_labels(["car", "taxi"], ONE).mean(0), dim=-1)
    torch.testing.assert_close(both[0], mean)
    torch.testing.assert_close(both[1:], encoder.encode_labels(["bus"], ONE))


def test_sentences_of_ones_own_are_taken(encoder, vectors):
    mine = TextScorer(encoder, NAMES, templates=["a {} in the scene.", "{}"])
    expected = encoder.encode_labels(NAMES, ["a {} in the scene.", "{}"])
    torch.testing.assert_close(mine.texts, expected)


@pytest.mark.parametrize("domain", SCORE_DOMAINS)
def test_a_name_next_to_a_longer_one_that_holds_it_keeps_its_own_vector(domain, encoder, vectors):
    names = ["cat", "cat food", "food"]
    found = TextScorer(encoder, names, domain=domain)
    torch.testing.assert_close(found.texts, encoder.encode_labels(names, ONE))
    assert found(vectors).isfinite().all()
    assert not torch.equal(found(vectors)[:, 0], found(vectors)[:, 1])


def test_one_name_has_a_score_of_its_own_against_the_reference_list(encoder, vectors):
    alone, among = TextScorer(encoder, NAMES[:1]), TextScorer(encoder, NAMES)
    torch.testing.assert_close(alone(vectors), among(vectors)[:, :1])


@pytest.mark.parametrize("domain", SCORE_DOMAINS)
def test_a_thousand_names_have_a_thousand_finite_scores(domain, encoder, vectors):
    found = TextScorer(encoder, [f"thing {i}" for i in range(1000)], domain=domain)(vectors)
    assert found.shape == (5, 1000)
    assert found.isfinite().all()


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[:2]], ids=len)
@pytest.mark.parametrize("domain", ["softmax", "centred", "standardized"])
def test_fewer_than_three_names_cannot_be_held_against_each_other(domain, names, encoder):
    with pytest.raises(ConfigError, match=rf"{domain} .* 3 or more; got {len(names)}"):
        TextScorer(encoder, names, domain=domain)


def test_a_domain_that_does_not_exist_is_answered_with_those_that_do(encoder):
    with pytest.raises(ConfigError, match=r"one of centred, .*standardized; got 'sigmoid'"):
        TextScorer(encoder, NAMES, domain="sigmoid")


def test_a_background_that_does_not_exist_is_answered_with_those_that_do(encoder):
    with pytest.raises(ConfigError, match=r"one of none, usual, or a list of words; got 'sky'"):
        TextScorer(encoder, NAMES, background="sky")


def test_cosines_are_compared_with_no_background_words(encoder, vectors):
    with pytest.raises(ConfigError, match=r"got 2 background words\. .* domain=reference"):
        TextScorer(encoder, NAMES, domain="cosine", background=["sky", "sea"])
    alone = TextScorer(encoder, NAMES[:1], domain="cosine")
    expected = encoder.scale * vectors @ encoder.encode_labels(NAMES[:1], ONE).T
    torch.testing.assert_close(alone(vectors), expected)
    assert not alone.scores_depend_on_other_labels


@pytest.mark.parametrize("words", [["sky", ""], ["  "], ["sky", 3]])
def test_empty_background_words_are_refused(words, encoder):
    with pytest.raises(ConfigError, match="background must be a list of non-empty strings"):
        TextScorer(encoder, NAMES, background=words)


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, "large"])
def test_a_scale_that_is_no_number_above_zero_is_refused(scale, encoder):
    with pytest.raises(ConfigError, match="scale must be a finite number above 0"):
        TextScorer(encoder, NAMES, scale=scale)


@pytest.mark.parametrize("domain", [d for d in SCORE_DOMAINS if d != "cosine"])
def test_a_background_word_counts_once_however_often_it_is_given(domain, encoder, vectors):
    once = TextScorer(encoder, NAMES, domain=domain, background=["sky", "sea"])
    twice = TextScorer(encoder, NAMES, domain=domain, background=["sky", "sea", " sky"])
    torch.testing.assert_close(once(vectors), twice(vectors))


@pytest.mark.parametrize("domain", [d for d in SCORE_DOMAINS if d != "cosine"])
def test_what_is_looked_for_is_no_background(domain, encoder, vectors):
    names = [*NAMES, "Sky", "sea|ocean"]
    plain = TextScorer(encoder, names, domain=domain, background=["grass"])
    both = TextScorer(encoder, names, domain=domain, background=["sky", "grass", "ocean"])
    torch.testing.assert_close(plain(vectors), both(vectors))


def test_without_words_the_usual_background_is_there_and_none_is_empty():
    assert text_scorer_background_words("none") == ()
    assert text_scorer_background_words("usual") == BACKGROUNDS["usual"]
    assert text_scorer_background_without_labels(["sky", "sea", "sky"], ["sea"]) == ["sky"]


def test_the_usual_words_are_each_there_once():
    assert len(set(BACKGROUNDS["usual"])) == len(BACKGROUNDS["usual"]) == 25


def test_other_names_take_over_background_and_reference(encoder, vectors):
    words = ["sky", "sea"]
    first, second = (TextScorer(encoder, n, background=words) for n in (NAMES, ["sea", "bus"]))
    second.load_state_dict(first.state_dict())
    again = TextScorer(encoder, ["sea", "bus"], background=words)
    assert torch.equal(second(vectors), again(vectors))


def test_a_background_word_that_becomes_a_label_changes_the_scores_of_the_others(encoder, vectors):
    few, many = (
        TextScorer(encoder, names, background=["sky", "sea"]) for names in (NAMES, [*NAMES, "sky"])
    )
    assert few.scores_depend_on_other_labels
    assert not torch.allclose(few(vectors), many(vectors)[:, : len(NAMES)], atol=1e-4)
    assert not TextScorer(encoder, NAMES).scores_depend_on_other_labels
