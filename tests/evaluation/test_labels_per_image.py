import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.evaluation import count_labels_per_image


def drawn(n=30, c=5, seed=0):
    rng = np.random.default_rng(seed)
    known = rng.random((n, c)) < 0.7
    return rng.random((n, c)), (rng.random((n, c)) < 0.4).astype(float), known


def test_equals_counting_label_by_label():
    p, y, known = drawn()
    limits = [0.1, 0.5, 0.9, 0.0, 1.0]
    counts = count_labels_per_image(p, y, known, threshold=limits)
    for i in range(len(p)):
        asked = [j for j in range(5) if known[i, j]]
        assert counts.expected[i] == pytest.approx(sum(p[i, j] for j in asked))
        assert counts.predicted[i] == sum(p[i, j] >= limits[j] for j in asked)
        assert counts.positive[i] == sum(y[i, j] for j in asked)


def test_what_is_not_a_number_is_not_counted():
    p, y, known = drawn()
    by_nan = count_labels_per_image(p, np.where(known, y, np.nan))
    by_flag = count_labels_per_image(p, y, known)
    assert by_nan.means == by_flag.means


def test_means_and_excess_are_those_of_all_images():
    p, y, _ = drawn()
    counts = count_labels_per_image(p, y, threshold=0.3)
    assert counts.means == pytest.approx(
        {"expected": p.sum() / 30, "predicted": (p >= 0.3).sum() / 30, "positive": y.sum() / 30}
    )
    assert counts.excess == pytest.approx((p >= 0.3).sum() / y.sum() - 1)


def test_histograms_count_every_image_once():
    p, y, _ = drawn()
    counts = count_labels_per_image(p, y)
    shown, present = counts.histograms["predicted"], counts.histograms["positive"]
    assert shown.sum() == present.sum() == 30
    assert len(shown) == len(present)
    assert [int((counts.predicted == k).sum()) for k in range(len(shown))] == shown.tolist()


def test_without_a_truth_there_is_nothing_to_compare_with():
    counts = count_labels_per_image(drawn()[0])
    assert counts.positive is None
    assert np.isnan(counts.excess)
    assert set(counts.means) == set(counts.histograms) | {"expected"} == {"expected", "predicted"}


def test_images_without_any_label_have_no_excess():
    assert np.isnan(count_labels_per_image([[0.9, 0.1]], [[0, 0]]).excess)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="must have at least one image"):
        count_labels_per_image(np.zeros((0, 3)))
    with pytest.raises(InputError, match=r"must be in \[0, 1\]"):
        count_labels_per_image([[2.0]])
    with pytest.raises(InputError, match=r"targets \(n c\)"):
        count_labels_per_image([[0.5, 0.5]], [[1.0]])
    with pytest.raises(ConfigError, match=r"one number for each of 2 labels; got shape \(3,\)"):
        count_labels_per_image([[0.5, 0.5]], threshold=[0.1, 0.2, 0.3])
    with pytest.raises(ConfigError, match=r"a probability in \[0, 1\]; got 1.5"):
        count_labels_per_image([[0.5, 0.5]], threshold=1.5)
    with pytest.raises(ConfigError, match=r"a probability in \[0, 1\]; got nan"):
        count_labels_per_image([[0.5, 0.5]], threshold=float("nan"))
