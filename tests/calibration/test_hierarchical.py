import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from surelabel.calibration import Beta, Hierarchical, Vector
from surelabel.errors import DataError, NotFitted
from surelabel.metrics import log_loss_of_logits


def labels(n, c=40, spread=1.0, seed=0):
    """Scores, targets and true probabilities of labels whose levels differ by ``spread``."""
    rng = np.random.default_rng(seed)
    truth = 2 * rng.normal(size=(n + 2000, c)) + rng.normal(-3, 1, c)
    x = (truth - spread * rng.normal(size=c)) / np.exp(0.3 * spread * rng.normal(size=c))
    y = (rng.random(truth.shape) < expit(truth)).astype(float)
    return x[:n], y[:n], x[n:], expit(truth[n:])


@pytest.mark.parametrize("n", [25, 300])
@pytest.mark.parametrize("seed", [1, 2])
def test_labels_that_differ_are_better_than_with_shared_or_fixed_shrinkage(n, seed):
    x, y, other_x, p = labels(n, seed=seed)
    losses = [
        log_loss_of_logits(entry().fit(x, y).logits(other_x), p)
        for entry in (Hierarchical, Vector, Beta)
    ]
    assert losses[0] < losses[1] < losses[2]


@pytest.mark.parametrize("n", [25, 300])
def test_labels_that_are_alike_lose_less_than_one_percent(n):
    x, y, other_x, p = labels(n, spread=0.0)
    own = log_loss_of_logits(Hierarchical().fit(x, y).logits(other_x), p)
    assert own < 1.01 * log_loss_of_logits(Beta().fit(x, y).logits(other_x), p)


def test_the_prior_finds_how_much_labels_differ():
    spreads = [
        np.sqrt(np.diag(Hierarchical().fit(*labels(500, spread=spread)[:2]).prior_covariance_))
        for spread in (0.0, 1.0)
    ]
    assert (spreads[0] < 0.12).all()
    np.testing.assert_allclose(spreads[1], [0.3, 1.0], rtol=0.35)


def test_parameters_maximize_the_posterior_of_their_label():
    x, y, _, _ = labels(60)
    fitted = Hierarchical().fit(x, y)
    z = fitted.shared_.logits(x)
    prior = multivariate_normal(fitted.prior_mean_, fitted.prior_covariance_)

    def log_posterior(label, line):
        logits = line[0] * z[:, label] + line[1]
        likelihood = (y[:, label] * logits - np.logaddexp(0, logits)).sum()
        return likelihood + prior.logpdf(line)

    for label in (0, 1, 2):
        line = np.array([fitted.label_slopes_[label], fitted.label_shifts_[label]])
        best = log_posterior(label, line)
        for step in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
            assert log_posterior(label, line + step) < best


def test_a_label_with_fewer_positives_stays_closer_to_the_prior_mean():
    rng = np.random.default_rng(3)
    truth = 2 * rng.normal(size=(200, 30)) - 1
    y = (rng.random(truth.shape) < expit(truth)).astype(float)
    x = truth - np.linspace(-2, 2, 30)
    known = np.ones(y.shape, dtype=bool)
    all_known = Hierarchical().fit(x, y, known)
    known[20:, 0] = False
    few = Hierarchical().fit(x, y, known)
    distances = [abs(it.label_shifts_[0] - it.prior_mean_[1]) for it in (few, all_known)]
    assert distances[0] < distances[1]


def test_a_single_label_has_the_shared_parameters():
    x, y, _, _ = labels(100, c=1)
    fitted = Hierarchical().fit(x, y)
    np.testing.assert_allclose(fitted.logits(x), fitted.shared_calibrator().logits(x))


def test_a_label_with_negatives_only_becomes_less_probable():
    x, y, _, _ = labels(100)
    y[:, 5] = 0
    fitted = Hierarchical().fit(x, y)
    shared = fitted.shared_calibrator().predict_proba(x)
    assert fitted.predict_proba(x)[:, 5].mean() < shared[:, 5].mean()


def test_other_labels_keep_their_parameters_and_new_ones_use_the_shared():
    x, y, _, _ = labels(50, c=3)
    fitted = Hierarchical().fit(x, y)
    other = fitted.with_labels([2, None, 0])
    columns = x[:, [2, 1, 0]]
    expected = fitted.logits(x)[:, [2, 1, 0]]
    expected[:, 1] = fitted.shared_calibrator().logits(columns)[:, 1]
    np.testing.assert_allclose(other.logits(columns), expected)
    with pytest.raises(NotFitted, match="fit"):
        Hierarchical().with_labels([0])


def test_a_slope_of_zero_is_refused():
    state = Hierarchical().fit(*labels(50, c=3)[:2]).state()
    with pytest.raises(DataError, match=r"label_slopes must be above 0; got 0\.0"):
        Hierarchical().restore(state | {"label_slopes": [1.0, 0.0, 1.0]})
