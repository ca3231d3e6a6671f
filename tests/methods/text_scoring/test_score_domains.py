"""Each domain by hand, one image at a time, and what they have in common."""

import math

import pytest
import torch

from surelabel.errors import InputError
from surelabel.methods import SCORE_DOMAINS
from surelabel.methods.text_scoring.score_domains import (
    INDEPENDENT_SCORE_DOMAINS,
    centred_score_domain,
    cosine_score_domain,
    reference_score_domain,
    softmax_score_domain,
    standardized_score_domain,
)

NAMES = [3.0, -1.0, 0.5]
WORDS = [2.0, 0.0]
EVERYDAY = [1.0, -2.0, 0.3, 0.7]
within = pytest.mark.parametrize(
    "domain", [d for name, d in SCORE_DOMAINS.items() if name not in INDEPENDENT_SCORE_DOMAINS]
)
every = pytest.mark.parametrize("domain", SCORE_DOMAINS.values(), ids=SCORE_DOMAINS.keys())


def scored(domain, names=NAMES, words=WORDS, everyday=EVERYDAY):
    rows = (torch.tensor([row], dtype=torch.float64) for row in (names, words, everyday))
    return domain(*rows)[0].tolist()


def test_reference_is_what_a_name_has_above_everyday_things_and_background():
    others = EVERYDAY + WORDS
    level = math.log(sum(map(math.exp, others)) / len(others))
    assert scored(reference_score_domain) == pytest.approx([s - level for s in NAMES])


def test_softmax_is_the_log_odds_of_a_name_against_all_else():
    everything = NAMES + WORDS
    expected = []
    for s in NAMES:
        p = math.exp(s) / sum(map(math.exp, everything))
        expected.append(math.log(p / (1 - p)))
    assert scored(softmax_score_domain) == pytest.approx(expected)


def test_no_log_odds_are_cut_off():
    found = scored(softmax_score_domain, [90.0, -90.0, -95.0], [])
    assert found == pytest.approx([180.0, -180.0, -185.0], abs=0.01)


def test_centred_is_above_the_mean_of_names_and_background():
    everything = NAMES + WORDS
    level = sum(everything) / len(everything)
    assert scored(centred_score_domain) == pytest.approx([s - level for s in NAMES])


def test_standardized_is_in_deviations_of_names_and_background():
    everything = NAMES + WORDS
    level = sum(everything) / len(everything)
    spread = math.sqrt(sum((s - level) ** 2 for s in everything) / (len(everything) - 1))
    assert scored(standardized_score_domain) == pytest.approx([(s - level) / spread for s in NAMES])


def test_cosine_compares_a_name_with_nothing():
    assert scored(cosine_score_domain) == NAMES
    assert scored(cosine_score_domain, NAMES[:1], [], []) == NAMES[:1]


def test_an_image_that_all_names_fit_alike_has_zeros_and_no_division_by_zero():
    assert scored(standardized_score_domain, [2.0] * 3, [2.0]) == [0.0, 0.0, 0.0]


@every
def test_order_of_the_names_in_an_image_is_kept(domain):
    found = scored(domain)
    assert sorted(range(3), key=found.__getitem__) == sorted(range(3), key=NAMES.__getitem__)


@every
def test_a_background_word_is_no_answer_and_its_place_does_not_count(domain):
    assert len(scored(domain)) == 3
    assert scored(domain) == pytest.approx(scored(domain, words=WORDS[::-1]))


@within
def test_within_the_list_a_constant_an_image_changes_nothing(domain):
    lifted = scored(domain, [s + 7 for s in NAMES], [s + 7 for s in WORDS])
    assert lifted == pytest.approx(scored(domain))


@within
def test_within_the_list_everyday_things_do_not_count(domain):
    assert scored(domain, everyday=[]) == scored(domain)


@within
def test_within_the_list_two_names_without_background_are_refused(domain):
    with pytest.raises(InputError, match="need 3 labels or more"):
        scored(domain, NAMES[:2], [])


@every
def test_any_number_of_axes_may_stand_before_the_names(domain):
    names, words, everyday = (torch.tensor(x).expand(2, 4, -1) for x in (NAMES, WORDS, EVERYDAY))
    found = domain(names, words, everyday)
    assert found.shape == (2, 4, 3)
    assert found[1, 2].tolist() == pytest.approx(scored(domain), abs=1e-5)
