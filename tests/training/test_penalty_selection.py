import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from surelabel.links import Sigmoid
from surelabel.losses import LOSSES, binary
from surelabel.losses.properties.loss_link import make_loss_link
from surelabel.training.penalty_selection import PENALTIES, fit_linear_heads, select_penalties

ALL = {"loss": binary, "link": Sigmoid()}


def problem(n=90, d=5, c=3, seed=0):
    """Return vectors, targets and known targets; a third of the targets is unknown."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d)) / d**0.5
    scores = 4 * vectors @ rng.normal(size=(d, c)) - np.arange(c)
    targets = rng.random((n, c)) < expit(scores)
    known = rng.random((n, c)) < 0.67
    return (
        torch.tensor(vectors).float(),
        torch.tensor(targets).float(),
        torch.tensor(known),
    )


def scikit_learn(vectors, targets, known, penalty):
    """Return the weights and the bias of logistic regression on the known rows of a label."""
    rows = known.numpy()
    model = LogisticRegression(C=1 / penalty, tol=1e-6, max_iter=1000)
    model.fit(vectors.numpy()[rows], targets.numpy()[rows])
    return model.coef_[0], model.intercept_[0]


@pytest.mark.parametrize("penalty", [10.0, 0.3, 0.01])
def test_heads_are_those_of_logistic_regression_on_the_known_targets(penalty):
    vectors, targets, known = problem()
    heads = fit_linear_heads(vectors, targets, known, torch.full((3,), penalty), **ALL)
    for label in range(3):
        weights, bias = scikit_learn(vectors, targets[:, label], known[:, label], penalty)
        np.testing.assert_allclose(heads.weights[label], weights, atol=0.02, rtol=0.02)
        np.testing.assert_allclose(heads.biases[label], bias, atol=0.02)


def test_each_label_has_its_own_penalty():
    vectors, targets, known = problem()
    penalties = torch.tensor([10.0, 0.3, 0.01])
    together = fit_linear_heads(vectors, targets, known, penalties, **ALL)
    alone = fit_linear_heads(vectors, targets[:, 1:2], known[:, 1:2], penalties[1:2], **ALL)
    torch.testing.assert_close(together.weights[1:2], alone.weights, atol=1e-3, rtol=0)


def test_unknown_targets_have_no_influence():
    vectors, targets, known = problem()
    other = torch.where(known, targets, 1 - targets)
    penalties = torch.ones(3)
    heads = fit_linear_heads(vectors, targets, known, penalties, **ALL)
    again = fit_linear_heads(vectors, other, known, penalties, **ALL)
    assert torch.equal(heads.weights, again.weights)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_label_of_one_class_has_no_weights_and_its_smoothed_prevalence(value):
    vectors, targets, known = problem()
    targets[:, 1] = value
    heads = fit_linear_heads(vectors, targets, known, torch.ones(3), **ALL)
    n = known[:, 1].sum()
    assert not heads.weights[1].any()
    expected = (n * value + 0.5) / (n + 1)
    torch.testing.assert_close(heads.biases[1].sigmoid(), expected)
    assert heads.weights[0].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_decreases_with_finite_heads(loss):
    vectors, targets, known = problem()
    link = make_loss_link(loss) or Sigmoid()
    heads = fit_linear_heads(
        vectors, targets, known, torch.full((3,), 0.1), loss=LOSSES[loss], link=link
    )
    scores = vectors @ heads.weights.T + heads.biases
    prevalence = (targets * known).sum(0) / known.sum(0)
    start = link.scores(prevalence.logit()).expand_as(scores)
    means = [(LOSSES[loss](s, targets) * known).sum() for s in (scores, start)]
    assert torch.isfinite(scores).all()
    assert means[0] < means[1]


def losses_by_loops(vectors, targets, known, fold, penalty):
    """Return the sum of the held-out log losses of each label, with scikit-learn and loops."""
    sums = []
    for label in range(targets.shape[1]):
        total = 0.0
        for k in range(int(fold.max()) + 1):
            train = fold != k
            weights, bias = scikit_learn(
                vectors[train], targets[train, label], known[train, label], penalty
            )
            for row in np.flatnonzero((fold == k) & known[:, label]):
                score = vectors[row].numpy() @ weights + bias
                y = targets[row, label].item()
                total += np.logaddexp(0, score) - y * score
        sums.append(total)
    return sums


def test_the_chosen_penalties_have_the_lowest_held_out_loss():
    vectors, targets, known = problem(c=2)
    fold = torch.arange(90) % 3
    chosen = select_penalties(vectors, targets, known, fold, **ALL)
    losses = np.array(
        [losses_by_loops(vectors, targets, known, fold, penalty) for penalty in PENALTIES[:12]]
    )
    for label in range(2):
        index = np.isclose(PENALTIES[:12], chosen[label].item()).argmax()
        assert losses[index, label] <= losses[:, label].min() * 1.001


def test_labels_without_positives_get_the_largest_penalty_and_disturb_no_other_label():
    vectors, targets, known = problem()
    fold = torch.arange(90) % 3
    chosen = select_penalties(vectors, targets, known, fold, **ALL)
    changed = targets.clone()
    changed[:, 1] = 0
    other = select_penalties(vectors, changed, known, fold, **ALL)
    assert other[1] == PENALTIES[0]
    assert torch.equal(other[[0, 2]], chosen[[0, 2]])


def test_a_label_that_no_vector_predicts_is_shrunk_and_an_exact_label_is_not():
    rng = np.random.default_rng(0)
    vectors = torch.tensor(rng.normal(size=(200, 4))).float()
    targets = torch.stack([torch.tensor(rng.random(200) < 0.5), vectors[:, 0] > 0], dim=1).float()
    fold = torch.arange(200) % 5
    chosen = select_penalties(vectors, targets, targets >= 0, fold, **ALL)
    assert chosen[0] >= 10
    assert chosen[1] < 0.1
