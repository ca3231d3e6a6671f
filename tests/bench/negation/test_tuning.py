from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench.negation.encoder_outputs import SplitOutputs, measure_negation_encoder
from surelabel.bench.negation.plan import ARITHMETIC, OPTIMIZED, SENTENCE, TUNED
from surelabel.bench.negation.query_sets import negation_query_pairs
from surelabel.bench.negation.ranking_metrics import mean_average_precision_of_queries
from surelabel.bench.negation.tuning import (
    candidate_settings,
    restore_selected_setting,
    select_embedding_settings,
    selected_setting_state,
)


@pytest.fixture(scope="module")
def encoder(splits, cache, results):
    return measure_negation_encoder(splits, "tiny-vit", cache)


@pytest.fixture(scope="module")
def validation(splits):
    is_positive = splits.validation.targets > 0
    return negation_query_pairs(is_positive, min_relevant=5, min_both=3), is_positive


def test_the_selection_is_the_same_without_any_test_image(results, encoder, validation, plan):
    empty = SplitOutputs(*(np.empty((0, 0)) for _ in range(4)), np.empty(0))
    blind = replace(encoder, test=empty)
    assert select_embedding_settings(blind, *validation, plan) == results.encoders[0].selected


def test_the_selection_follows_the_validation_targets(results, encoder, validation, plan):
    pairs, is_positive = validation
    permuted = is_positive[np.random.default_rng(0).permutation(len(is_positive))]
    other = select_embedding_settings(encoder, pairs, permuted, plan)
    for row in TUNED:
        assert other[row].validation_ap < results.encoders[0].selected[row].validation_ap


def test_the_selected_setting_has_the_highest_ap_of_all_candidates(
    results, encoder, validation, plan
):
    pairs, is_positive = validation
    template = results.encoders[0].selected[SENTENCE].setting.template
    for row in TUNED:
        precisions = []
        for setting in candidate_settings(row, plan, template):
            scores = setting.scores(encoder, encoder.validation, pairs)
            precisions.append(
                mean_average_precision_of_queries(lambda _, s=scores: s, pairs, is_positive)
            )
        selected = results.encoders[0].selected[row]
        assert selected.validation_ap == pytest.approx(max(precisions))
        assert selected.n_candidates == len(precisions)


def test_the_arithmetic_with_weight_0_is_the_wanted_label(encoder, validation, plan):
    pairs, _ = validation
    setting = next(candidate_settings(ARITHMETIC, plan, ""))
    assert setting.weight == 0
    np.testing.assert_allclose(
        setting.embeddings(encoder, pairs), encoder.label_vectors[pairs[:, 0]], atol=1e-6
    )


def test_the_optimization_starts_at_the_label_or_at_the_sentence(encoder, validation, plan):
    pairs = validation[0][:5]
    template = "a photo of a {a} but no {b}."
    starts = {s.start: s for s in candidate_settings(OPTIMIZED, plan, template)}
    label, sentence = (replace(setting, steps=0) for setting in starts.values())
    np.testing.assert_allclose(label.embeddings(encoder, pairs), encoder.label_vectors[pairs[:, 0]])
    names = encoder.names
    texts = [template.format(a=names[a], b=names[b]) for a, b in pairs.tolist()]
    expected = encoder.encoder.encode_sentences(texts).double().numpy()
    np.testing.assert_allclose(sentence.embeddings(encoder, pairs), expected, atol=1e-6)


def test_selected_settings_are_restored_from_json(results):
    for selected in results.encoders[0].selected.values():
        assert restore_selected_setting(selected_setting_state(selected)) == selected
