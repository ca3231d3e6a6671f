import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from surelabel.errors import InputError
from surelabel.evaluation.ranking_uncertainty import evaluate_ranking_uncertainty

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)["uncertainty"]
TOP = np.array(GOLDEN["topk_uncertainties"])


def test_equals_the_recorded_correlations():
    found = evaluate_ranking_uncertainty(TOP, GOLDEN["ap"])
    assert [result.k for result in found] == [1, 2, 3, 4, 5]
    for k in (1, 3, 5):
        result = found[k - 1]
        means = TOP[:, :k].mean(axis=1)
        np.testing.assert_allclose(means[:5], GOLDEN["topk_mean_first5_queries"][str(k)])
        assert result.pearson == pytest.approx(GOLDEN["topk_query_level_pearson_vs_ap"][str(k)])
        assert result.bin_pearson == pytest.approx(GOLDEN["topk_equal_count_pearson_vs_ap"][str(k)])
        assert result.spearman == pytest.approx(spearmanr(means, GOLDEN["ap"])[0])


def test_few_queries_have_no_bins():
    (found,) = evaluate_ranking_uncertainty([[1.0], [2.0]], [1.0, 0.5])
    assert math.isnan(found.bin_pearson)
    assert found.spearman == pytest.approx(-1)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="must be finite"):
        evaluate_ranking_uncertainty([[np.inf]], [1.0])
