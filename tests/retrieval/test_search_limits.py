import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from surelabel.errors import InputError, NotFitted
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.retrieval.search_limits import FIRST_ROWS, SearchLimits

PROBABILITIES = st.lists(st.integers(0, 20), max_size=30).map(
    lambda values: np.sort(np.array(values, dtype=float) / 20)[::-1]
)
SHARES = st.integers(0, 20).map(lambda value: value / 20)


def predictions(n, calibration="platt on 24 labelled images", seed=0):
    logits = np.random.default_rng(seed).normal(0, 2, size=(n, 2)).astype(np.float32)
    paths = [f"/nowhere/{row}.jpg" for row in range(n)]
    return Predictions(paths, ["fork", "knife"], logits, logits, calibration, "model")


@given(PROBABILITIES, SHARES, SHARES, st.none() | st.integers(1, 40))
def test_the_longest_list_within_all_limits_is_counted(probabilities, precision, minimum, k):
    expected = 0
    for n in range(1, min(len(probabilities), k or len(probabilities)) + 1):
        first = probabilities[:n].tolist()
        if sum(first) / n >= precision - 1e-12 and min(first) >= minimum:
            expected = n
    assert SearchLimits(k, minimum, precision).count_images(probabilities) == expected


def test_a_mean_that_equals_the_precision_but_for_rounding_reaches_it():
    assert SearchLimits(None, precision=0.9).count_images(np.full(10, 0.9)) == 10


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("precision", [0.3, 0.6, 0.9])
def test_a_search_returns_the_longest_list_of_all_images(tmp_path, n_shards, precision):
    n = FIRST_ROWS + 500
    predicted = predictions(n)
    rows = np.array_split(np.arange(n), n_shards)
    index = None
    for part in rows:
        block = Predictions(
            [predicted.paths[row] for row in part],
            predicted.names,
            predicted.scores[part],
            predicted.logits[part],
            predicted.calibration,
            "model",
        )
        if index is None:
            index = Index.create(tmp_path / "index", block, root="/nowhere")
        else:
            index.add(block)
    p = np.sort(np.prod(expit(predicted.logits * [1, -1]), axis=1))[::-1]
    lengths = [m for m in range(1, n + 1) if p[:m].mean() >= precision]
    hits = index.search("fork & !knife", None, precision=precision)
    assert len(hits) == max(lengths, default=0)
    np.testing.assert_allclose([hit.probability for hit in hits], p[: len(hits)], rtol=1e-5)
    assert len(index.search("fork & !knife", 3, precision=precision)) == min(3, len(hits))
    assert len(index.search("fork & !knife", None)) == n
    above = index.search("fork & !knife", None, min_probability=precision)
    assert len(above) == (p >= precision).sum()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"k": 0}, "k, the number of images, must be a whole number of at least 1; got 0"),
        ({"precision": 1.5}, r"precision must be a number in \[0, 1\]; got 1.5"),
        ({"precision": float("nan")}, r"precision must be a number in \[0, 1\]; got nan"),
        ({"min_probability": -0.1}, r"min_probability must be a number in \[0, 1\]; got -0.1"),
        ({"min_probability": "0.5"}, r"min_probability must be a number in \[0, 1\]; got '0.5'"),
    ],
)
def test_a_limit_out_of_range_is_refused(limits, message):
    with pytest.raises(InputError, match=message):
        SearchLimits(**limits)


@pytest.mark.parametrize("calibration", ["model", "by its loss alone (spa)"])
def test_an_expected_precision_is_refused_without_a_calibration(tmp_path, calibration):
    index = Index.create(tmp_path / "index", predictions(5, calibration))
    with pytest.raises(NotFitted, match=r"the index have another source: .*calibrate"):
        index.search("fork", precision=0.5)
    assert len(index.search("fork", min_probability=0.0)) == 5


def test_an_expected_precision_is_estimated_with_a_calibration_without_labels(tmp_path):
    calibration = "platt on pseudo-labels of 5 images without labels"
    index = Index.create(tmp_path / "index", predictions(5, calibration))
    assert len(index.search("fork", precision=0.01)) == 5
