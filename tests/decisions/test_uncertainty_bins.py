import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from surelabel.decisions import bin_by_uncertainty, pearson_correlation, spearman_correlation
from surelabel.errors import InputError

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("values", ["correct", "ap"])
def test_equals_the_recorded_bins(values):
    golden = GOLDEN["uncertainty"]
    suffix = "accuracy" if values == "correct" else "ap"
    expected = golden[f"equal_count_10_{suffix}"]
    bins = bin_by_uncertainty(golden["u"], golden[values])
    np.testing.assert_allclose(bins.accuracy, expected["bin_mean"], atol=1e-12)
    np.testing.assert_allclose(bins.uncertainty, expected["bin_mean_u"], atol=1e-12)
    assert bins.pearson_with_index == pytest.approx(expected["pearson_vs_bin_index"])
    assert bins.pearson_with_uncertainty == pytest.approx(expected["pearson_vs_bin_mean_u"])
    assert bins.spearman == pytest.approx(expected["spearman"])
    assert (bins.decisions_per_bin, bins.n_left_out) == (5, 0)


@pytest.mark.parametrize(("direction", "queries"), [("i2t", 50), ("t2i", 250)])
def test_the_bars_of_the_paper_have_the_recorded_correlation(direction, queries):
    figure = GOLDEN["figure3"]
    accuracy = np.repeat(figure[direction], queries)  # in percent, as printed
    bins = bin_by_uncertainty(np.arange(len(accuracy)), accuracy)
    assert bins.accuracy.mean() == pytest.approx(figure[f"mean_{direction}"])
    assert bins.pearson_with_index == pytest.approx(figure[f"pearson_idx_{direction}"])


def test_the_most_uncertain_decisions_that_fill_no_bin_are_left_out():
    bins = bin_by_uncertainty([5, 1, 4, 2, 3], [0, 1, 1, 0, 1], bins=2)
    np.testing.assert_allclose(bins.accuracy, [0.5, 1])
    np.testing.assert_allclose(bins.uncertainty, [1.5, 3.5])
    assert (bins.decisions_per_bin, bins.n_left_out) == (2, 1)


def test_correlations_equal_scipy_with_ties():
    random = np.random.default_rng(0)
    x, y = random.integers(5, size=(2, 60))
    assert pearson_correlation(x, y) == pytest.approx(pearsonr(x, y)[0])
    assert spearman_correlation(x, y) == pytest.approx(spearmanr(x, y)[0])


def test_the_correlation_of_a_constant_is_undefined():
    assert math.isnan(pearson_correlation([1, 1, 1], [1, 2, 3]))
    assert math.isnan(spearman_correlation([1, 2, 3], [0, 0, 0]))
    assert math.isnan(bin_by_uncertainty(range(20), [1] * 20).pearson_with_index)


def test_too_few_decisions_and_values_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="number of decisions, 3; got 10"):
        bin_by_uncertainty([1, 2, 3], [1, 0, 1])
    with pytest.raises(InputError, match="must be finite"):
        bin_by_uncertainty([1, np.nan], [1, 0], bins=1)
