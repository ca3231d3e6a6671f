import threading
import time

import pytest

from surelabel.errors import InputError
from surelabel.retrieval import parse
from surelabel.web.query_access import SharedQueryEncoder, with_example_in_root


def test_the_example_of_a_query_is_relative_to_the_root_of_the_index():
    query = parse("like:a/b.jpg#7 & lion")
    assert str(with_example_in_root(query, "/photos")) == "like:/photos/a/b.jpg#7 & lion"
    absolute = parse("like:/other/b.jpg")
    assert with_example_in_root(absolute, "/photos") == absolute
    assert with_example_in_root(parse("lion"), "/photos") == parse("lion")


def test_the_encoder_is_loaded_once_and_used_by_one_thread_at_a_time():
    loaded, in_use, overlaps = [], [], []

    class Encoder:
        def score_sentences(self, sentences):
            overlaps.append(len(in_use))
            in_use.append(1)
            time.sleep(0.01)
            in_use.pop()

    def load():
        loaded.append(1)
        return Encoder()

    shared = SharedQueryEncoder(load)
    threads = [threading.Thread(target=shared.score_sentences, args=(["a"],)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(loaded), overlaps) == (1, [0] * 5)


def test_no_file_of_the_server_is_an_example():
    with pytest.raises(InputError, match="must be an indexed image; got /etc/passwd"):
        SharedQueryEncoder(lambda: None).encode_example("/etc/passwd")
