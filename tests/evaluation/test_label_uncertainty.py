import numpy as np
import pytest
from scipy.special import expit

from surelabel.decisions import risk_coverage_of_errors
from surelabel.errors import InputError, NotFitted
from surelabel.evaluation.label_uncertainty import (
    accepted_label_decisions,
    evaluate_label_uncertainty,
    evaluate_uncertainties,
    image_decisions,
    image_uncertainties,
    selective_risk,
    selective_risk_gain,
)
from surelabel.records import Predictions

KIND = "bernoulli_variance"


@pytest.fixture
def data():
    """Return calibrated probabilities, targets, known targets, and their Bernoulli variance."""
    random = np.random.default_rng(0)
    p = expit(random.normal(-0.5, 2, size=(150, 6)))
    targets = (random.random(p.shape) < p).astype(float)
    known = random.random(p.shape) < 0.8
    known[3] = False
    return p, targets * known, known, 4 * p * (1 - p)


def test_accepted_labels_are_those_above_one_half_with_a_known_target(data):
    p, targets, known, u = data
    expected = [
        (u[i, c], 1 - targets[i, c], i)
        for i in range(150)
        for c in range(6)
        if known[i, c] and p[i, c] >= 0.5
    ]
    found = accepted_label_decisions(*data)
    assert found.n_images == 150
    rows = zip(found.uncertainty, found.error, found.image_rows, strict=True)
    np.testing.assert_allclose(list(rows), expected)


def test_an_image_has_the_mean_uncertainty_and_error_of_its_known_labels(data):
    p, targets, known, u = data
    found = image_decisions(*data, kind="residual_error")
    images = [i for i in range(150) if known[i].any()]
    assert found.image_rows.tolist() == images
    assert 3 not in images
    np.testing.assert_allclose(found.uncertainty, [u[i][known[i]].mean() for i in images])
    wrong = [np.mean((p[i] >= 0.5)[known[i]] != targets[i][known[i]]) for i in images]
    np.testing.assert_allclose(found.error, wrong)


def test_the_match_variance_of_an_image_is_the_mean_over_accepted_labels(data):
    p, targets, known, _ = data
    variance = np.exp(np.random.default_rng(1).normal(size=p.shape))
    means = image_uncertainties(p, known, variance, kind="match_variance")
    for i in range(150):
        accepted = known[i] & (p[i] >= 0.5)
        expected = variance[i][accepted].mean() if accepted.any() else np.inf
        assert means[i] == pytest.approx(expected)
    found = image_decisions(p, targets, known, variance, kind="match_variance")
    without = np.isinf(means[found.image_rows])
    assert 0 < without.sum() < len(without)
    assert found.uncertainty[without].min() > found.uncertainty[~without].max()


def test_the_risk_is_that_of_the_curve_and_lies_in_its_interval(data):
    decisions = accepted_label_decisions(*data)
    found = selective_risk(decisions)
    curve = risk_coverage_of_errors(decisions.uncertainty, decisions.error)
    order = np.argsort(decisions.uncertainty)
    n_kept = int(np.ceil(0.8 * len(order)))
    area, risk = found.intervals["area"], found.intervals["risk_at_80"]
    assert area.value == curve.area
    assert risk.value == pytest.approx(decisions.error[order[:n_kept]].mean())
    assert area.low < area.value < area.high
    assert risk.low < risk.value < risk.high < decisions.error.mean() + 0.1


def test_the_intervals_are_those_of_resampled_images(data):
    p, targets, known, u = data
    found = selective_risk(accepted_label_decisions(*data), seed=5).intervals["area"]
    random = np.random.default_rng(7)
    areas = []
    for _ in range(400):
        rows = random.integers(150, size=150)
        sample = accepted_label_decisions(p[rows], targets[rows], known[rows], u[rows])
        areas.append(risk_coverage_of_errors(sample.uncertainty, sample.error).area)
    width = np.subtract(*np.quantile(areas, [0.975, 0.025]))
    assert found.high - found.low == pytest.approx(width, rel=0.25)


def test_the_gain_over_an_uninformative_uncertainty_is_above_zero(data):
    p, targets, known, _ = data
    noise = np.random.default_rng(2).random(p.shape)
    better = accepted_label_decisions(*data)
    worse = accepted_label_decisions(p, targets, known, noise)
    gain = selective_risk_gain(better, worse)
    assert gain["area"].low > 0
    assert gain["area"].value == pytest.approx(
        selective_risk(worse).intervals["area"].value
        - selective_risk(better).intervals["area"].value
    )
    loss = selective_risk_gain(worse, better)
    assert loss["area"].value == -gain["area"].value
    none = selective_risk_gain(better, better)
    assert [(i.low, i.value, i.high) for i in none.values()] == [(0, 0, 0)] * 2


def test_the_bins_hold_a_tenth_of_the_accepted_labels(data):
    found = evaluate_label_uncertainty(*data, kind=KIND)
    decisions = accepted_label_decisions(*data)
    order = np.argsort(decisions.uncertainty, kind="stable")
    size = len(order) // 10
    assert found.bins.decisions_per_bin == size >= 10
    np.testing.assert_allclose(
        found.bins.accuracy[:2],
        [1 - decisions.error[order[:size]].mean(), 1 - decisions.error[order[size:][:size]].mean()],
    )
    few = evaluate_label_uncertainty(*(array[:20] for array in data), kind=KIND)
    assert few.bins is None


def test_without_an_accepted_label_there_is_only_the_risk_of_images(data):
    p, targets, known, u = data
    found = evaluate_label_uncertainty(p / 2.1, targets, known, u, kind="match_variance")
    assert (found.accepted_labels, found.bins) == (None, None)
    curve = found.images.curve
    np.testing.assert_allclose(curve.risk, curve.risk[-1])


def test_an_uncertainty_that_is_not_finite_is_refused(data):
    p, targets, known, u = data
    with pytest.raises(
        InputError, match=r"finite uncertainties .* with [1-9]\d* NaN or infinite value"
    ):
        evaluate_label_uncertainty(p, targets, known, np.where(p > 0.9, np.nan, u), kind=KIND)


def predictions_of(p, calibration="by hand"):
    logits = np.log(p / (1 - p)).astype(np.float32)
    paths = [f"{i}.jpg" for i in range(len(p))]
    return Predictions(paths, list("abcdef"), logits, logits, calibration)


def test_the_doubtful_images_have_the_highest_uncertainty_of_the_first_kind(data):
    p, targets, known, u = data
    kinds = {KIND: u, "match_variance": -p + 2}
    found = evaluate_uncertainties(predictions_of(p), targets, known, kinds)
    assert [kind.kind for kind in found.kinds] == list(kinds)
    means = [u[i][known[i]].mean() if known[i].any() else -1 for i in range(150)]
    expected = [f"{i}.jpg" for i in np.argsort(means)[::-1][:6]]
    assert [example.path for example in found.doubtful_examples] == expected
    assert len(found.doubtful_examples[0].labels) == 6


def test_scores_have_no_errors(data):
    p, targets, known, u = data
    with pytest.raises(NotFitted, match="uncalibrated"):
        evaluate_uncertainties(predictions_of(p, None), targets, known, {KIND: u})
