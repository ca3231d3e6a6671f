import threading
from threading import Event

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.retrieval import Index
from surelabel.web import expected_counts
from surelabel.web.expected_counts import ExpectedCounts, sum_label_probabilities


@pytest.fixture
def index(tmp_path, write_index, monkeypatch):
    """Return an index of two shards and a removed image, whose labels are read in small blocks."""
    monkeypatch.setattr(expected_counts, "BLOCK_ROWS", 7)
    index = write_index(tmp_path / "index", [f"/x/{row}.jpg" for row in range(30)], "/x")
    index.remove(["/x/3.jpg", "/x/29.jpg"])
    return Index.open(tmp_path / "index")


def test_the_sums_are_those_of_the_probabilities_of_all_images(index):
    shards, names = index.searcher.shards, index.names
    sums = sum_label_probabilities(shards, len(names), Event())
    expected = [index.probabilities(f'"{name}"').sum() for name in names]
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    np.testing.assert_allclose(ExpectedCounts(shards, len(names)).wait(30), expected, rtol=1e-6)


def test_a_request_does_not_wait_longer_than_its_time(index):
    counts = ExpectedCounts(index.searcher.shards, len(index.names))
    counts.stop()
    assert counts.wait(30) is None


def test_a_failed_computation_is_an_error_once_and_is_started_again(index, monkeypatch):
    printed, compute = [], sum_label_probabilities

    def fail(*_):
        monkeypatch.setattr(expected_counts, "sum_label_probabilities", compute)
        raise MemoryError("too large")

    monkeypatch.setattr(threading, "excepthook", lambda args: printed.append(args.exc_type))
    monkeypatch.setattr(expected_counts, "sum_label_probabilities", fail)
    counts = ExpectedCounts(index.searcher.shards, len(index.names))
    with pytest.raises(DataError, match=r"were not computed \(MemoryError\).* Try again\."):
        counts.wait(30)
    assert counts.wait(30).shape == (len(index.names),)
    assert printed == [MemoryError]


def test_damaged_data_are_an_error_of_each_request(index, monkeypatch):
    calls = []

    def fail(*_):
        calls.append(1)
        raise DataError("damaged")

    monkeypatch.setattr(expected_counts, "sum_label_probabilities", fail)
    counts = ExpectedCounts(index.searcher.shards, len(index.names))
    for _ in range(2):
        with pytest.raises(DataError, match="damaged"):
            counts.wait(30)
    assert len(calls) == 1


def test_the_sparse_form_has_the_same_sums(index):
    names = index.names
    before = sum_label_probabilities(index.searcher.shards, len(names), Event())
    index.compact(drop_below=0.4)
    after = sum_label_probabilities(index.searcher.shards, len(names), Event())
    np.testing.assert_allclose(after, before, rtol=1e-4)
