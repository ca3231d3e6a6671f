"""Rows, columns, pairs and their weights, by hand."""

import statistics
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.features import FeatureCache, add_text_feature_cache
from surelabel.methods import Standardized
from surelabel.methods.standardized import (
    MAX_PAIRS,
    nearest_labels_for_standardized,
    principal_component_of_standardized,
    standardize_rows_of_labels_and_pairs,
)
from surelabel.records import Features

NAMES = ["lion", "guitar", "pizza", "bus"]
ONE = ["a photo of a {}."]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return add_text_feature_cache(
        load_encoder("tiny-vit"), FeatureCache(tmp_path_factory.mktemp("texts"))
    )


@pytest.fixture(scope="module")
def features(encoder):
    drawn = torch.randn(12, encoder.width, generator=torch.Generator().manual_seed(0))
    return Features(F.normalize(drawn, dim=-1))


def learnt(encoder, features, names=NAMES, **settings):
    it = Standardized(encoder, names, **settings)
    it.fit_unlabelled(features)
    return it


def in_rows(scores, own):
    """Each row less the mean of its own scores, over their deviation."""
    return [
        [(s - statistics.mean(row[:own])) / statistics.stdev(row[:own]) for s in row]
        for row in scores
    ]


def in_columns(rows):
    columns = list(zip(*rows, strict=True))
    scaled = [[(s - statistics.mean(col)) / statistics.stdev(col) for s in col] for col in columns]
    return list(zip(*scaled, strict=True))


def test_without_pairs_it_only_standardizes_rows_and_columns(encoder, features):
    cosines = (features.pooled.double() @ encoder.encode_labels(NAMES, ONE).double().T).tolist()
    expected = in_columns(in_rows(cosines, len(NAMES)))
    found = learnt(encoder, features, pairs_per_label=0)(features)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_with_pairs_it_is_the_paper_step_by_step(encoder, features):
    texts = encoder.encode_labels(NAMES, ONE)
    near = nearest_labels_for_standardized(texts, 2)
    pairs = [f"{NAMES[i]} and a {NAMES[j]}" for i, row in enumerate(near) for j in row]
    both = torch.cat([texts, encoder.encode_labels(pairs, ONE)]).double()
    columns = np.array(
        in_columns(in_rows((features.pooled.double() @ both.T).tolist(), len(NAMES)))
    )
    expected = np.zeros((12, 4))
    for c in range(4):
        own = np.sort(columns[:, 4 + 2 * c : 6 + 2 * c], axis=1)
        stacked = np.column_stack([own, columns[:, c]])
        direction = PCA().fit(stacked).components_[0]
        direction = direction * np.sign(direction.mean()) / np.abs(direction).sum()
        expected[:, c] = 0.5 * stacked @ direction + 0.5 * columns[:, c]
    found = learnt(encoder, features, pairs_per_label=2)(features)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_an_image_that_comes_later_is_scored_by_what_was_learnt(encoder, features):
    it = learnt(encoder, features)
    before = it(features)
    torch.testing.assert_close(it(Features(features.pooled[3:4])), before[3:4])
    assert int(it.n_images) == 12


@pytest.mark.parametrize("domain", ["centred", "standardized"])
def test_domains_that_are_linear_in_the_cosines_give_the_same(domain, encoder, features):
    usual = learnt(encoder, features, pairs_per_label=2)(features)
    other = learnt(encoder, features, pairs_per_label=2, domain=domain)(features)
    torch.testing.assert_close(usual, other, atol=1e-3, rtol=1e-3)


def test_background_words_count_in_the_rows_but_are_no_answer(encoder, features):
    words = ["sky", "sea", "lion"]
    cosines = (
        features.pooled.double() @ encoder.encode_labels([*NAMES, "sky", "sea"], ONE).double().T
    )
    expected = in_columns([row[:4] for row in in_rows(cosines.tolist(), 6)])
    found = learnt(encoder, features, pairs_per_label=0, background=words)(features)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_name_is_paired_with_the_nearest_others_and_never_with_itself():
    texts = F.normalize(torch.randn(9, 5, generator=torch.Generator().manual_seed(2)), dim=-1)
    for i, row in enumerate(nearest_labels_for_standardized(texts, 3)):
        order = sorted(set(range(9)) - {i}, key=lambda j: -float(texts[i] @ texts[j]))
        assert row == order[:3]


@pytest.mark.parametrize(
    ("names", "count", "each"), [(3, 10, 2), (80, 10, 10), (1000, 10, 2), (2500, 10, 0), (5, 0, 0)]
)
def test_however_long_the_list_there_are_no_more_than_two_thousand_pairs(names, count, each):
    found = nearest_labels_for_standardized(torch.eye(names), count)
    assert [len(row) for row in found] == [each] * names
    assert sum(map(len, found)) <= MAX_PAIRS


def test_spellings_share_a_label_and_its_pairs_take_the_first(encoder, features):
    names = ["lion|big cat", "guitar", "pizza"]
    found = learnt(encoder, features, names)(features)
    assert found.shape == (12, 3)
    assert found.isfinite().all()


def test_weights_are_the_first_component_with_a_positive_mean():
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(50, 3, 4, generator=generator) + torch.randn(
        50, 3, 1, generator=generator
    )
    found = principal_component_of_standardized(columns)
    for c in range(3):
        direction = PCA().fit(columns[:, c].numpy()).components_[0]
        direction = direction * np.sign(direction.mean()) / np.abs(direction).sum()
        np.testing.assert_allclose(found[c], direction, atol=1e-5)


def test_where_nothing_varies_all_weights_are_the_same():
    torch.testing.assert_close(
        principal_component_of_standardized(torch.ones(5, 2, 4)), torch.full((2, 4), 0.25)
    )


def test_a_row_of_one_value_has_no_deviation_and_becomes_zero():
    assert torch.equal(
        standardize_rows_of_labels_and_pairs(torch.full((2, 5), 3.0), 4), torch.zeros(2, 5)
    )


def test_one_image_is_too_few_to_learn_from(encoder, features):
    with pytest.raises(InputError, match="two images or more"):
        Standardized(encoder, NAMES).fit_unlabelled(Features(features.pooled[:1]))


def test_identical_images_all_score_zero_and_a_warning_says_so(encoder, features):
    same = Features(features.pooled[:1].expand(12, -1))
    with pytest.warns(
        UserWarning, match="The 12 images have equal scores.*Fit on images that"
    ) as told:
        it = learnt(encoder, same)
    assert [Path(one.filename) for one in told] == [Path(__file__)], "it names whoever asked"
    assert it(same).abs().max() < 1e-4


def test_it_says_that_it_needs_images_first(encoder, features):
    with pytest.raises(NotFitted, match="labels are not needed"):
        Standardized(encoder, NAMES)(features)


def test_bad_settings_are_refused(encoder):
    with pytest.raises(ConfigError, match="pairs_per_label must be 0 or more"):
        Standardized(encoder, NAMES, pairs_per_label=-1)
    with pytest.raises(ConfigError, match=r"needs 3 or more; got 2"):
        Standardized(encoder, NAMES[:2], pairs_per_label=0)
