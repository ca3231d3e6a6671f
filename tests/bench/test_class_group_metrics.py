import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench.class_group_metrics import (
    class_group_metrics,
    class_group_resampling,
    class_group_text_metrics,
    covariance_errors,
)
from surelabel.metrics import POOLED, embedding_divergence, neighbourhood_preservation, piece
from surelabel.records import LabelledImages

GROUPS = {"base": np.array([0, 1, 2]), "new": np.array([3, 4]), "tail": np.array([1])}


@pytest.fixture
def few_images():
    targets = (np.random.default_rng(0).random((60, 5)) < 0.3).astype(float)
    return LabelledImages([str(i) for i in range(60)], list("abcde"), targets)


@pytest.fixture
def logits():
    return np.random.default_rng(1).normal(size=(60, 5)) - 1


def test_metrics_of_a_group_are_those_of_its_columns_and_means_are_named(few_images, logits):
    proximity = np.random.default_rng(2).random(60)
    values = class_group_metrics(logits, few_images, GROUPS, proximity)
    p, y = expit(logits), few_images.targets
    for group, columns in GROUPS.items():
        for name in ("ece", "log_loss", "mean_average_precision"):
            expected = POOLED[name](p[:, columns], y[:, columns])
            assert values[f"{group}_{name}"] == pytest.approx(expected)
        assert values[f"{group}_piece"] == pytest.approx(
            piece(p[:, columns], y[:, columns], proximity)
        )
    base, new = values["base_ece"], values["new_ece"]
    assert values["arithmetic_ece"] == pytest.approx((base + new) / 2)
    assert values["harmonic_ece"] == pytest.approx(2 / (1 / base + 1 / new))
    assert 0 < values["new_ece_noise_floor"] < 1


def test_the_first_resample_is_the_test_images_themselves(few_images, logits):
    values = class_group_resampling(logits, few_images, GROUPS, resamples=5)
    metrics = class_group_metrics(logits, few_images, GROUPS, np.arange(60.0))
    for group in ("base", "new"):
        for name in ("brier_skill", "log_loss", "ece", "mean_average_precision"):
            resampled = values[f"{group}_{name}"]
            assert resampled.shape == (6,)
            assert resampled[0] == pytest.approx(metrics[f"{group}_{name}"])
            assert len(set(resampled)) > 1


def test_text_metrics_are_means_over_the_labels_of_a_group():
    tuned, frozen = np.random.default_rng(3).normal(size=(2, 5, 4))
    values = class_group_text_metrics(tuned, frozen, GROUPS, neighbours=2)
    divergence = embedding_divergence(tuned, neighbours=2)
    preservation = neighbourhood_preservation(tuned, frozen, neighbours=2)
    assert values["new_embedding_divergence_at_2"] == pytest.approx(divergence[3:].mean())
    assert values["base_neighbourhood_preservation_at_2"] == pytest.approx(preservation[:3].mean())


def test_without_positives_the_covariance_error_is_that_of_numpy(logits):
    negative = LabelledImages([str(i) for i in range(60)], list("abcde"), np.zeros((60, 5)))
    texts = np.random.default_rng(4).normal(size=(5, 3))
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    expected = np.corrcoef(expit(logits), rowvar=False) - units @ units.T
    np.fill_diagonal(expected, 0)
    errors = covariance_errors(logits, texts, negative)
    np.testing.assert_allclose(errors, expected, atol=1e-4)
