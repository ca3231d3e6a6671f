import numpy as np
import pytest
from scipy.special import expit, logit

from surelabel.calibration import Beta, Cooccurrence
from surelabel.errors import ConfigError, DataError
from surelabel.metrics import average_precision_per_class, log_loss_of_logits


@pytest.fixture
def themes():
    """Scores and targets of 6 labels in two themes of 3 labels; the other theme is rare."""
    return sample_themes(np.random.default_rng(0), 800)


def sample_themes(rng, n, in_theme=0.5, outside=0.05):
    theme = np.repeat(rng.integers(0, 2, n)[:, None] == [0, 1], 3, axis=1)
    y = (rng.random((n, 6)) < np.where(theme, in_theme, outside)).astype(float)
    return 1.5 * y - 1 + rng.normal(size=(n, 6)), y


def log_odds_by_hand(z, y, known, m, anchor, row=None):
    """Return log-odds(q) - log-odds(pi) of each image and label, as loops over floats.

    If ``row`` is an image of the fit, the counts are those of the other images.
    """
    n, c = y.shape
    rates = [(sum(y[i, j] for i in range(n)) + 0.5) / (known[:, j].sum() + 1) for j in range(c)]
    shifts = []
    for j in range(c):
        total = weighted = 0.0
        for k in range(c):
            p = 1 / (1 + np.exp(-z[k]))
            if k == j or p <= anchor:
                continue
            both = with_k = 0
            for i in range(n):
                if i != row and y[i, k] == 1 and known[i, j]:
                    with_k += 1
                    both += y[i, j]
            total += p
            weighted += p * (both + m * rates[j]) / (with_k + m)
        q = (weighted + max(0, 1 - total) * rates[j]) / max(1, total)
        shifts.append(logit(q) - logit(rates[j]))
    return np.array(shifts)


@pytest.mark.parametrize(("pseudo_count", "anchor"), [(10.0, 0.3), (2.0, 0.0), (50.0, 0.6)])
def test_the_shift_is_that_of_loops_over_images_and_labels(themes, pseudo_count, anchor):
    x, y = themes[0][:60], themes[1][:60]
    known = np.random.default_rng(1).random(x.shape) < 0.8
    found = Cooccurrence(pseudo_count=pseudo_count, anchor_probability=anchor).fit(x, y, known)
    new = sample_themes(np.random.default_rng(2), 5)[0]
    z = found.shared_.logits(new)
    expected = [log_odds_by_hand(row, y * known, known, pseudo_count, anchor) for row in z]
    found.strength_ = 0.7
    np.testing.assert_allclose(found.logits(new), z + 0.7 * np.array(expected), atol=0.005)


def test_the_strength_has_the_lowest_loss_with_the_counts_of_the_other_images(themes):
    x, y = themes[0][:80], themes[1][:80]
    known = np.random.default_rng(1).random(x.shape) < 0.8
    found = Cooccurrence(pseudo_count=0.01).fit(x, y, known)
    assert 0 < found.strength_ < 1
    z = found.shared_.logits(x)
    shift = [log_odds_by_hand(z[i], y * known, known, 0.01, 0.3, row=i) for i in range(len(z))]
    grid = np.linspace(0, 1, 401)
    losses = [log_loss_of_logits(z + s * np.array(shift), y, known) for s in grid]
    assert found.strength_ == pytest.approx(grid[np.argmin(losses)], abs=0.005)


def test_labels_that_co_occur_are_ranked_and_calibrated_better_on_other_images(themes):
    x, y = sample_themes(np.random.default_rng(3), 2000)
    shared, found = Beta().fit(*themes).logits(x), Cooccurrence().fit(*themes).logits(x)
    gain = average_precision_per_class(found, y) - average_precision_per_class(shared, y)
    assert gain.mean() > 0.02
    assert log_loss_of_logits(found, y) < log_loss_of_logits(shared, y) - 0.02


def test_labels_that_are_independent_are_left_to_beta():
    x, y = sample_themes(np.random.default_rng(4), 2000, in_theme=0.25, outside=0.25)
    other = sample_themes(np.random.default_rng(5), 2000, in_theme=0.25, outside=0.25)[0]
    difference = Cooccurrence().fit(x, y).logits(other) - Beta().fit(x, y).logits(other)
    assert np.abs(difference).max() < 0.15


def test_an_image_without_an_anchor_gets_the_logits_of_beta(themes):
    found = Cooccurrence().fit(*themes)
    x = np.full((1, 6), -3.0)
    assert (found.shared_.predict_proba(x) < 0.3).all()
    np.testing.assert_allclose(found.logits(x), found.shared_.logits(x), atol=1e-9)


def test_an_anchor_raises_labels_of_its_theme_and_lowers_the_others(themes):
    found = Cooccurrence().fit(*themes)
    x = np.array([[4.0, -1.0, -1.0, -1.0, -1.0, -1.0]])
    change = (found.logits(x) - found.shared_.logits(x))[0]
    assert change[0] == pytest.approx(0)
    assert (change[1:3] > 0.2).all()
    assert (change[3:] < -0.2).all()


def test_soft_targets_above_one_half_are_counted(themes):
    x, y = themes
    soft = np.where(y == 1, 0.8, 0.1)
    hard = Cooccurrence().fit(x, y)
    np.testing.assert_array_equal(Cooccurrence().fit(x, soft).log_ratios_, hard.log_ratios_)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_the_pseudo_count_must_be_positive(value):
    with pytest.raises(ConfigError, match="pseudo_count must be a finite number above 0; got"):
        Cooccurrence(pseudo_count=value)


@pytest.mark.parametrize("value", [1.0, -0.1, np.nan])
def test_an_anchor_has_a_probability(value):
    with pytest.raises(ConfigError, match=r"anchor_probability must be in \[0, 1\); got"):
        Cooccurrence(anchor_probability=value)


@pytest.mark.parametrize(
    "change", [{"strength": 1.5}, {"rates": [0.0] * 6}, {"anchor_probability": 1.0}]
)
def test_a_saved_value_out_of_range_is_refused(themes, change):
    state = Cooccurrence().fit(*themes).state()
    with pytest.raises(DataError, match=r"strength in \[0, 1\].* Calibrate again"):
        Cooccurrence().restore(state | change)


def test_the_shift_changes_with_the_images_of_the_fit_only(themes):
    found = Cooccurrence().fit(*themes)
    x = sample_themes(np.random.default_rng(6), 20)[0]
    one_by_one = np.concatenate([found.logits(x[i : i + 1]) for i in range(len(x))])
    np.testing.assert_allclose(found.logits(x), one_by_one, atol=1e-12)
    assert np.isfinite(expit(one_by_one)).all()
