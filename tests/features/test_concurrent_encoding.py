import threading

import pytest
import torch

from surelabel.encoders import load_encoder
from surelabel.features.concurrent_encoding import (
    MAX_CONCURRENT_BATCHES,
    concurrent_batch_count,
    encode_batches_concurrently,
)


@pytest.mark.parametrize("concurrency", [1, 2, 3])
@pytest.mark.parametrize("n_batches", [0, 1, 2, 3, 4, 7, 12])
def test_each_batch_comes_with_its_result_in_order(concurrency, n_batches):
    batches = [torch.full((2,), float(number)) for number in range(n_batches)]
    encoded = list(encode_batches_concurrently(torch.sin, batches, concurrency=concurrency))
    assert [batch is expected for (batch, _), expected in zip(encoded, batches, strict=True)] == [
        True
    ] * n_batches
    assert all(torch.equal(result, batch.sin()) for batch, result in encoded)


def test_batches_of_a_group_are_encoded_at_once_and_the_last_ones_in_the_calling_thread():
    both_run = threading.Barrier(2)

    def encode(number):
        if number < 4:
            both_run.wait(30)  # raises an error if only one thread encodes
        return threading.current_thread()

    threads = [t for _, t in encode_batches_concurrently(encode, range(5), concurrency=2)]
    assert len({threads[0], threads[1]}) == 2
    assert threads[4] is threading.current_thread()
    assert threads[4] not in threads[:4]


def test_threads_of_pytorch_are_divided_among_the_batches_and_are_the_same_afterwards(set_threads):
    set_threads(4)
    encoded = encode_batches_concurrently(
        lambda _: torch.get_num_threads(), range(3), concurrency=2
    )
    assert [n_threads for _, n_threads in encoded] == [2, 2, 4]
    assert torch.get_num_threads() == 4
    numbers = []
    thread = threading.Thread(target=lambda: numbers.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert numbers == [4]


def test_batches_are_received_no_further_ahead_than_two_groups():
    received = []
    batches = (received.append(number) or number for number in range(20))
    for batch, _ in encode_batches_concurrently(lambda batch: batch, batches, concurrency=3):
        assert len(received) <= batch + 6
    assert received == list(range(20))


def test_an_error_is_raised_in_the_calling_thread_and_no_thread_remains():
    n_threads = threading.active_count()

    def encode(number):
        if number == 3:
            raise MemoryError("no memory")
        return number

    encoded = encode_batches_concurrently(encode, range(9), concurrency=2)
    assert [next(encoded)[1] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(MemoryError, match="no memory"):
        next(encoded)
    assert threading.active_count() == n_threads


def test_after_an_early_stop_no_thread_remains():
    n_threads = threading.active_count()
    encoded = encode_batches_concurrently(lambda batch: batch, range(9), concurrency=2)
    next(encoded)
    encoded.close()
    assert threading.active_count() == n_threads


def test_one_batch_per_thread_is_encoded_at_once_on_a_cpu(set_threads):
    encoder = load_encoder("tiny-vit")
    for n_threads, expected in ((1, 1), (2, 2), (64, MAX_CONCURRENT_BATCHES)):
        set_threads(n_threads)
        assert concurrent_batch_count(encoder) == expected
    encoder.device = torch.device("cuda")
    assert concurrent_batch_count(encoder) == 1
