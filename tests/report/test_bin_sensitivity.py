import numpy as np
import pytest

from surelabel import metrics
from surelabel.report.bin_sensitivity import (
    bin_sensitivity_table,
    calibration_errors_for_bin_sensitivity,
)

FILLED = "15 bins, only those with 20 decisions or more"


def errors(found):
    p = found.predictions.probabilities
    return calibration_errors_for_bin_sensitivity(p, found.targets, found.known)


def test_each_way_of_binning_gives_what_the_metric_of_that_name_gives(judged):
    found = judged(unknown=0.2)
    given = (found.predictions.probabilities, found.targets, found.known)
    values = errors(found)
    for name in ("ece", "ace", "mce"):
        assert values[name]["15 bins"] == pytest.approx(metrics.METRICS[name](*given))
        assert values[name]["10 bins"] == pytest.approx(metrics.METRICS[name](*given, bins=10))
    assert values["ace"][FILLED] == pytest.approx(metrics.ace(*given, min_count=20))
    assert values["mce"][FILLED] == pytest.approx(metrics.mce(*given, min_count=20))


def test_where_no_bin_is_filled_nothing_is_defined(judged):
    found = judged(count=2, labels=2)
    assert np.isnan([errors(found)[name][FILLED] for name in ("ece", "ace", "mce")]).all()
    table = bin_sensitivity_table(errors(found))
    assert table.count("<td>not defined</td>") == 3
    assert "nan" not in table
