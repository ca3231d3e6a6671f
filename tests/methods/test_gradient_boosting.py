import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from surelabel.encoders import load_encoder
from surelabel.methods import METHODS, gradient_boosting
from surelabel.methods.decision_trees import tree_limits
from surelabel.records import Features

GradientBoosting = METHODS["gradient_boosting"]
RANDOM = np.random.default_rng(0)
X, NEW_X = (torch.from_numpy(RANDOM.normal(size=(n, 5)).astype(np.float32)) for n in (200, 80))
Y = torch.from_numpy((RANDOM.random((200, 2)) < expit(2 * X[:, :2].numpy())).astype(np.float32))
KNOWN = torch.ones(200, 2, dtype=torch.bool)


def fitted(targets=Y, known=KNOWN, x=X, **settings):
    settings = {"n_trees": 15, **settings}
    method = GradientBoosting(load_encoder("features:5"), ["lion", "car"], **settings)
    method.fit_targets(Features(x), targets, known, seed=3)
    return method


def log_odds_of_scikit_learn(x, y, new_x, weights=None, **settings):
    settings = {"learning_rate": 0.05, "max_leaf_nodes": 16, "min_samples_leaf": 20} | settings
    model = HistGradientBoostingClassifier(
        max_iter=15,
        l2_regularization=5.0,
        max_features=0.3,
        early_stopping=False,
        random_state=3,
        **settings,
    )
    return model.fit(x, y, sample_weight=weights).decision_function(new_x)


@pytest.mark.parametrize(
    ("settings", "names_of_scikit_learn"),
    [
        ({}, {}),
        ({"learning_rate": 0.9}, {"learning_rate": 0.9}),
        ({"max_leaves": 4, "min_leaf_images": 3}, {"max_leaf_nodes": 4, "min_samples_leaf": 3}),
    ],
)
def test_log_odds_are_those_of_scikit_learn(settings, names_of_scikit_learn):
    found = fitted(**settings)(Features(NEW_X)).numpy()
    for label in range(2):
        expected = log_odds_of_scikit_learn(
            X.numpy(), Y.numpy()[:, label], NEW_X.numpy(), **names_of_scikit_learn
        )
        np.testing.assert_allclose(found[:, label], expected, atol=1e-6)


def test_missing_values_go_where_scikit_learn_sends_them():
    x, new_x = X.clone(), NEW_X.clone()
    x[:60, 0], new_x[::3, :3] = torch.nan, torch.nan
    found = fitted(x=x)(Features(new_x)).numpy()
    for label in range(2):
        expected = log_odds_of_scikit_learn(x.numpy(), Y.numpy()[:, label], new_x.numpy())
        np.testing.assert_allclose(found[:, label], expected, atol=1e-6)


def test_a_label_is_fitted_on_its_known_images():
    known = torch.from_numpy(RANDOM.random((200, 2)) < 0.6)
    found = fitted(known=known, min_leaf_images=5)(Features(NEW_X)).numpy()
    for label in range(2):
        rows = known[:, label].numpy()
        expected = log_odds_of_scikit_learn(
            X.numpy()[rows], Y.numpy()[rows, label], NEW_X.numpy(), min_samples_leaf=5
        )
        np.testing.assert_allclose(found[:, label], expected, atol=1e-6)


def test_a_graded_target_is_a_positive_and_a_negative_image_with_weights():
    targets = torch.where(X[:, 3:] > 1, 0.25, Y)
    found = fitted(targets)(Features(NEW_X)).numpy()
    for label in range(2):
        rows, classes, weights = [], [], []
        for row, target in enumerate(targets[:, label].tolist()):
            for is_positive, weight in ((1, target), (0, 1 - target)):
                if weight:
                    rows.append(row)
                    classes.append(is_positive)
                    weights.append(weight)
        expected = log_odds_of_scikit_learn(X.numpy()[rows], classes, NEW_X.numpy(), weights)
        np.testing.assert_allclose(found[:, label], expected, atol=1e-6)


def test_trees_beyond_the_limit_are_fewer(monkeypatch):
    monkeypatch.setattr(tree_limits, "MAX_TREE_BYTES", 10_000)
    method = fitted()
    n_bytes = sum(a.numel() * a.element_size() for a in method.trees.state_dict().values())
    assert method.trees.n_trees.tolist() == [8, 8]
    assert n_bytes <= 10_000


def test_the_expected_time_is_that_of_the_most_balanced_label_times_the_labels(monkeypatch):
    method, seconds, labels = fitted(n_trees=1), itertools.count(), []
    targets = torch.stack([Y[:, 0], torch.zeros(200)], dim=1)
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))  # the timed part takes 1 second
    monkeypatch.setattr(gradient_boosting, "time", clock)
    fit_label = method._fit_label
    monkeypatch.setattr(
        method, "_fit_label", lambda x, y, *more: labels.append(y.sum()) or fit_label(x, y, *more)
    )
    assert method.expected_fit_seconds(Features(X), targets, KNOWN, 0) == 2
    assert labels == [Y[:, 0].sum()]
    assert method.trees.n_trees.tolist() == [1, 1]
