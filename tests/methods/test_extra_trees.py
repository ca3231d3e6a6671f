import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods import METHODS, extra_trees
from surelabel.methods.decision_trees import tree_limits
from surelabel.records import Features

ExtraTrees = METHODS["extra_trees"]
RANDOM = np.random.default_rng(0)
X, NEW_X = (torch.from_numpy(RANDOM.normal(size=(n, 6)).astype(np.float32)) for n in (120, 80))
Y = torch.from_numpy((RANDOM.random((120, 3)) < expit(2 * X[:, :3].numpy())).astype(np.float32))
KNOWN = torch.ones(120, 3, dtype=torch.bool)
NAMES = ["lion", "guitar", "car"]
FEW = {"n_trees": 20}


def fitted(targets=Y, known=KNOWN, **settings):
    method = ExtraTrees(load_encoder("features:6"), NAMES, **(FEW | settings))
    method.fit_targets(Features(X), targets, known, seed=3)
    return method


def frequencies(method, x=NEW_X):
    """Return the mean leaf frequencies, without the weight of the prevalence."""
    n_trees = method.trees.n_trees
    p = expit(method(Features(x)).double().numpy())
    return ((n_trees + 1) * p - method.prevalence.numpy()) / n_trees


@pytest.mark.parametrize("min_leaf", [1, 2, 7])
def test_frequencies_are_those_of_the_classifier_of_scikit_learn(min_leaf):
    forest = ExtraTreesClassifier(  # of one random split of one feature, so that there are no ties
        20, min_samples_leaf=min_leaf, max_features=1, random_state=3
    ).fit(X.numpy(), Y.numpy())
    expected = np.stack([p[:, 1] for p in forest.predict_proba(NEW_X.numpy())], axis=1)
    method = fitted(min_leaf_images=min_leaf, feature_share=0.2)
    np.testing.assert_allclose(frequencies(method), expected, atol=1e-6)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_frequencies_are_those_of_the_regression_forest_of_scikit_learn(share):
    forest = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=share, random_state=3)
    expected = forest.fit(X.numpy(), Y.numpy()).predict(NEW_X.numpy())
    np.testing.assert_allclose(frequencies(fitted(feature_share=share)), expected, atol=1e-6)


def test_the_prevalence_has_the_weight_of_one_tree():
    forest = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=0.3, random_state=3)
    trees = forest.fit(X.numpy(), Y.numpy()).predict(NEW_X.numpy())
    prevalence = (Y.numpy().sum(axis=0) + 0.5) / 121
    expected = (20 * trees + prevalence) / 21
    found = fitted()(Features(NEW_X)).numpy()
    np.testing.assert_allclose(found, np.log(expected / (1 - expected)), atol=1e-5)


def test_labels_with_unknown_targets_have_forests_of_their_known_images():
    known = torch.from_numpy(RANDOM.random((120, 3)) < 0.6)
    method = fitted(known=known)
    for label in range(3):
        rows = known[:, label].numpy()
        forest = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=0.3, random_state=3)
        forest.fit(X.numpy()[rows], Y.numpy()[rows, label])
        expected = forest.predict(NEW_X.numpy())
        np.testing.assert_allclose(frequencies(method)[:, label], expected, atol=1e-6)


def test_images_without_a_known_target_are_left_out():
    known = KNOWN.clone()
    known[100:] = False
    forest = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=0.3, random_state=3)
    expected = forest.fit(X.numpy()[:100], Y.numpy()[:100]).predict(NEW_X.numpy())
    np.testing.assert_allclose(frequencies(fitted(known=known)), expected, atol=1e-6)


def test_leaves_have_the_mean_of_graded_targets():
    targets = torch.from_numpy(RANDOM.random((120, 3)).astype(np.float32))
    forest = ExtraTreesRegressor(20, min_samples_leaf=2, max_features=0.3, random_state=3)
    expected = forest.fit(X.numpy(), targets.double().numpy()).predict(NEW_X.numpy())
    np.testing.assert_allclose(frequencies(fitted(targets)), expected, atol=1e-6)


def test_trees_beyond_the_limit_are_fewer_with_larger_leaves(monkeypatch):
    monkeypatch.setattr(tree_limits, "MAX_TREE_BYTES", 10_000)
    method = fitted()
    n_bytes = sum(a.numel() * a.element_size() for a in method.trees.state_dict().values())
    assert n_bytes <= 10_000
    assert 1 < method.trees.n_trees[0] < 20


def test_the_expected_time_is_that_of_five_trees_times_the_number_of_all_trees(monkeypatch):
    method, seconds = fitted(n_trees=50), itertools.count()
    before = {name: values.clone() for name, values in method.state_dict().items()}
    clock = SimpleNamespace(perf_counter=lambda: next(seconds))  # the timed part takes 1 second
    monkeypatch.setattr(extra_trees, "time", clock)
    assert method.expected_fit_seconds(Features(X), Y, KNOWN, 0) == 10
    known = KNOWN.clone()
    known[0, 0] = False
    assert method.expected_fit_seconds(Features(X), Y, known, 0) == 30
    assert all(torch.equal(values, before[name]) for name, values in method.state_dict().items())


def test_settings_out_of_range_are_refused():
    for setting, value in {"n_trees": 0, "min_leaf_images": 0, "feature_share": 0.0}.items():
        with pytest.raises(ConfigError, match=f"{setting} must be .*; got 0"):
            fitted(**{setting: value})
