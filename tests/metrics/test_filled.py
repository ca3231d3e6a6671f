import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import ConfigError
from surelabel.metrics import (
    ace,
    ace_of_filled,
    ace_of_filled_per_class,
    mce,
    mce_of_filled,
    mce_of_filled_per_class,
    reliability,
    reliability_per_class,
)

GOLDEN = Path(__file__).parents[1] / "golden"
NETCAL = json.loads((GOLDEN / "binned_errors.json").read_text())["netcal"]
GIVEN = json.loads((GOLDEN / "calibration_error.json").read_text())
P, Y = np.array(GIVEN["p"]), np.array(GIVEN["y"])
bins = pytest.mark.parametrize("bins", [10, 15, 20])


@bins
@pytest.mark.parametrize("least", [20, 40])
def test_mce_equals_netcal_and_ace_but_for_what_it_divides_by(bins, least):
    recorded = NETCAL[str(bins)][f"at_least_{least}"]
    assert mce_of_filled(P, Y, bins=bins, least=least) == pytest.approx(recorded["mce"], rel=1e-12)
    counts = reliability(P, Y, bins=bins).counts
    share = (counts >= least).sum() / (counts > 0).sum()
    found = ace_of_filled(P, Y, bins=bins, least=least)
    assert found * share == pytest.approx(recorded["ace"], rel=1e-12)


@bins
def test_each_class_equals_netcal_in_the_same_way(bins):
    recorded = NETCAL[str(bins)]["at_least_5_per_class"]
    widest = mce_of_filled_per_class(P, Y, bins=bins, least=5)
    np.testing.assert_allclose(widest, recorded["mce"], rtol=1e-12)
    counts = reliability_per_class(P, Y, bins=bins).counts
    share = (counts >= 5).sum(axis=1) / (counts > 0).sum(axis=1)
    found = ace_of_filled_per_class(P, Y, bins=bins, least=5) * share
    np.testing.assert_allclose(found, recorded["ace"], rtol=1e-12)


def test_with_one_decision_as_the_least_it_is_the_plain_error():
    assert ace_of_filled(P, Y, least=1) == ace(P, Y)
    assert mce_of_filled(P, Y, least=1) == mce(P, Y)


def test_a_lonely_decision_has_no_say():
    p, y = [[0.1] * 20 + [0.9]], [[0] * 21]
    assert mce(p, y) == pytest.approx(0.9)
    assert mce_of_filled(p, y) == pytest.approx(0.1)
    assert ace_of_filled(p, y) == pytest.approx(0.1)


def test_without_a_filled_bin_there_is_nothing_to_say():
    assert np.isnan(ace_of_filled([[0.1] * 19], [[0] * 19]))
    assert np.isnan(mce_of_filled_per_class([[0.1]], [[0]])).all()


@pytest.mark.parametrize("metric", [ace_of_filled, mce_of_filled, mce_of_filled_per_class])
def test_filled_means_at_least_one(metric):
    with pytest.raises(ConfigError, match=r"least must be a whole number .* Got 0"):
        metric(P, Y, least=0)
