import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench.resampling import BINS, BenchResampling, bench_resampling_difference_intervals
from surelabel.metrics import METRICS, log_loss_of_logits, paired_bootstrap_interval


@pytest.fixture(params=["all known", "some unknown", "graded"])
def data(request):
    """Two rows' logits, targets and what is known of them."""
    random = np.random.default_rng(3)
    logits = random.normal(-1, 2, size=(2, 150, 4))
    targets = (random.random((150, 4)) < expit(logits[0])).astype(float)
    if request.param == "graded":
        targets = np.round(random.random((150, 4)), 1)
    known = np.ones(targets.shape, bool)
    if request.param == "some unknown":
        known = random.random(targets.shape) < 0.7
        known[:, 3] = False
        targets[~known] = np.nan
    return logits, targets, known


def test_images_counted_once_give_the_metrics_themselves(data):
    (logits, _), targets, known = data
    found = BenchResampling(targets, known, resamples=2).metrics(logits)
    for name, values in found.items():
        assert values[0] == pytest.approx(METRICS[name](expit(logits), targets, known), abs=1e-12)


def test_resamples_are_the_metrics_of_images_that_are_repeated(data):
    (logits, _), targets, known = data
    found = BenchResampling(targets, known, resamples=3, seed=5).metrics(logits)
    n = len(targets)
    weights = np.random.default_rng(5).multinomial(n, np.full(n, 1 / n), size=3)
    for draw, often in enumerate(weights, start=1):
        rows = np.repeat(np.arange(n), often)
        for name, values in found.items():
            expected = METRICS[name](expit(logits)[rows], targets[rows], known[rows])
            assert values[draw] == pytest.approx(expected, abs=1e-12)


def test_probabilities_on_the_edges_of_bins_fall_where_the_metrics_put_them():
    edges = np.arange(1, BINS) / BINS
    p = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])[:, None]
    logits = np.log(p / (1 - p))
    targets = (np.arange(len(p)) % 3 == 0).astype(float)[:, None]
    found = BenchResampling(targets, resamples=2).metrics(logits)
    for name in ("ece", "ace"):
        assert found[name][0] == pytest.approx(METRICS[name](expit(logits), targets), abs=1e-12)


def test_the_log_loss_stays_finite_and_exact_at_the_limit_of_logits():
    logits, targets = np.array([[40.0, -40.0]]), np.array([[0.0, 0.0]])
    found = BenchResampling(targets, resamples=2).metrics(logits)["log_loss"][0]
    assert found == pytest.approx(log_loss_of_logits(logits, targets), abs=1e-12)


@pytest.mark.parametrize("name", ["brier_skill", "log_loss", "ece", "ace"])
def test_intervals_are_those_of_the_paired_bootstrap_but_for_the_draws(data, name):
    (first, second), targets, known = data
    drawn = BenchResampling(targets, known, resamples=2000)
    found = bench_resampling_difference_intervals(drawn.metrics(first), drawn.metrics(second))[name]
    p, q = expit(first), expit(second)
    expected = paired_bootstrap_interval(METRICS[name], p, q, targets, known, resamples=400)
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.12 * width)
    assert found.high == pytest.approx(expected.high, abs=0.12 * width)


def test_a_row_does_not_differ_from_itself(data):
    (logits, _), targets, known = data
    drawn = BenchResampling(targets, known, resamples=50).metrics(logits)
    for found in bench_resampling_difference_intervals(drawn, drawn).values():
        assert (found.value, found.low, found.high) == (0, 0, 0)


def test_what_no_label_varies_in_is_undefined_not_zero():
    drawn = BenchResampling(np.zeros((20, 2)), resamples=10).metrics(np.full((20, 2), -1.0))
    assert np.isnan(drawn["brier_skill"]).all()
    found = bench_resampling_difference_intervals(drawn, drawn)["brier_skill"]
    assert np.isnan(found.low)
    assert found.undefined == 10
