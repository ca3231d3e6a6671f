import pytest
import torch

from surelabel.encoders.engines.thread_counts import (
    MAX_CONCURRENT_CALLS,
    concurrent_call_count,
    process_thread_count,
)
from surelabel.features.concurrent_encoding import encode_batches_concurrently


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_a_thread_that_encodes_a_batch_counts_the_threads_of_the_process(set_threads):
    set_threads(4)

    def count(batch):
        return torch.get_num_threads(), process_thread_count(), concurrent_call_count()

    counts = [n for _, n in encode_batches_concurrently(count, range(4), concurrency=2)]
    assert counts == [(2, 4, 4)] * 4


@pytest.mark.parametrize(("n_threads", "expected"), [(1, 1), (3, 3), (16, MAX_CONCURRENT_CALLS)])
def test_at_most_four_threads_call_an_engine(set_threads, n_threads, expected):
    set_threads(n_threads)
    assert (process_thread_count(), concurrent_call_count()) == (n_threads, expected)
