import os
import sys

import pytest

from surelabel.features.decoding_workers import decode_in_workers


def run(decode):
    return list(
        decode_in_workers(
            decode, [0], workers=1, max_pending=1, message_of_killed=lambda _, reason: reason
        )
    )


def test_messages_of_c_libraries_are_discarded_and_those_of_python_are_not(capfd):
    def decode(task):
        os.write(2, b"from libtiff")
        print("from Python", file=sys.stderr)
        yield task

    assert run(decode) == [0]
    os.write(2, b"from the main process")
    assert capfd.readouterr().err == "from Python\nfrom the main process"


class TwoArguments(Exception):
    """An exception that can be pickled but not unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def test_an_error_that_cannot_be_sent_is_raised_with_its_text():
    def decode(task):
        raise TwoArguments("a", "b")
        yield

    with pytest.raises(RuntimeError, match=r"TwoArguments\('a and b'\)"):
        run(decode)


def test_the_traceback_of_the_worker_is_part_of_the_error():
    def decode(task):
        raise KeyError("no such part")
        yield

    with pytest.raises(KeyError, match="no such part") as raised:
        run(decode)
    assert "in decode" in str(raised.value.__cause__)
