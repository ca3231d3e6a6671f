import numpy as np
import pytest

from surelabel import metrics
from surelabel.report.binning import binned, binning_table

FILLED = "15 bins, those of 20 decisions or more"


def test_each_way_of_binning_gives_what_the_metric_of_that_name_gives(judged):
    found = judged(unknown=0.2)
    given = (found.predictions.probabilities, found.targets, found.known)
    values = binned(found)
    for name in ("ece", "ace", "mce"):
        assert values[name]["15 bins"] == pytest.approx(metrics.METRICS[name](*given))
        assert values[name]["10 bins"] == pytest.approx(metrics.METRICS[name](*given, bins=10))
    assert values["ace"][FILLED] == pytest.approx(metrics.ace_of_filled(*given, least=20))
    assert values["mce"][FILLED] == pytest.approx(metrics.mce_of_filled(*given, least=20))


def test_where_no_bin_is_filled_nothing_is_defined(judged):
    found = judged(count=2, labels=2)
    assert np.isnan([binned(found)[name][FILLED] for name in ("ece", "ace", "mce")]).all()
    table = binning_table(found)
    assert table.count("<td>not defined</td>") == 3
    assert "nan" not in table
