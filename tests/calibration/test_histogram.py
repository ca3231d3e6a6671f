import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from surelabel.calibration import Histogram
from surelabel.errors import ConfigError, DataError

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "netcal_calibrators.json").read_text(encoding="utf-8")
)


def test_equals_counting_by_hand():
    rng = np.random.default_rng(0)
    p, y = rng.random((50, 3)), rng.random((50, 3)).round(2)
    p[0, :2] = 1.0, 0.999999
    found = Histogram(bins=4, pseudo_count=3).fit(logit(p.clip(0, 1 - 1e-12)), y)
    expected = np.empty_like(p)
    for i, j in np.ndindex(p.shape):
        same = [y[k, m] for k, m in np.ndindex(p.shape) if bin_of(p[k, m]) == bin_of(p[i, j])]
        expected[i, j] = (sum(same) + 3 * p[i, j]) / (len(same) + 3)
    np.testing.assert_allclose(found.predict_proba(logit(p.clip(0, 1 - 1e-12))), expected)


def bin_of(p):
    for edge in (0.25, 0.5, 0.75):
        if p < edge:
            return edge
    return 1.0


def test_without_a_pseudo_count_it_is_netcals():
    x, y = np.array(GOLDEN["logits"])[:, None], np.array(GOLDEN["targets"])[:, None]
    found = Histogram(bins=10, pseudo_count=1e-9).fit(x, y)
    query = np.array(GOLDEN["query"])[:, None]
    np.testing.assert_allclose(found.predict_proba(query)[:, 0], GOLDEN["histogram"], atol=1e-6)


def test_an_empty_bin_leaves_probabilities_as_they_are():
    found = Histogram(bins=10).fit([[-5.0], [-5.0], [5.0]], [[0], [1], [1]])
    between = [[-2.0, -0.3, 0.0, 0.3, 2.0]]
    np.testing.assert_allclose(found.logits(between), between, atol=1e-12)


def test_inside_a_bin_the_old_order_stays():
    found = Histogram(bins=1).fit([[-1.0], [1.0]], [[0], [1]]).logits([[-30.0, -1.0, 2.0, 30.0]])
    assert (np.diff(found) > 0).all()


def test_bins_that_are_all_right_stay_finite():
    found = Histogram().fit([[-50.0], [50.0]], [[0], [1]]).logits([[-50.0, 50.0]])
    np.testing.assert_allclose(found, [[-40, 40]], atol=1)
    assert (
        expit(Histogram().fit([[3.0]] * 99 + [[0.0]], [[0]] * 99 + [[1]]).logits([[3.0]])) > 0.009
    )


def test_saved_counts_must_be_possible():
    with pytest.raises(DataError, match="0 <= present <= counts"):
        Histogram().restore({"present": [2.0], "counts": [1.0], "pseudo_count": 1.0})


@pytest.mark.parametrize("bins", [0, 2.5, -1])
def test_bins_must_be_a_whole_number(bins):
    with pytest.raises(ConfigError, match="bins must be a whole number of at least 1"):
        Histogram(bins=bins)


def test_the_pseudo_count_must_be_above_zero():
    with pytest.raises(ConfigError, match=r"pseudo_count must be a finite number above 0; got 0"):
        Histogram(pseudo_count=0)
