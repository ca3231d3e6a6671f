import asyncio
import os
import signal
import time

import pytest

from surelabel.errors import DataError, UnknownName
from surelabel.web.image_worker import ImageWorker, ImageWorkerPool

MODULE = """
import os
import time

from surelabel.errors import UnknownName


def answer(value):
    return {"value": value, "process": os.getpid()}, b"content"


def crash():
    os.abort()


def fail():
    raise UnknownName("no such thing")


def sleep(duration):
    time.sleep(duration)
    return None, b""


TASKS = {"answer": answer, "crash": crash, "fail": fail, "sleep": sleep}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of tasks, which worker processes can import."""
    (tmp_path / "tasks_of_this_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "tasks_of_this_test"


def test_a_process_that_fails_is_replaced(module):
    worker = ImageWorker(module, seconds=20)
    try:
        value, content = worker.run("answer", {"value": 1})
        assert (value["value"], content) == (1, b"content")
        first = value["process"]
        with pytest.raises(UnknownName, match="no such thing"):
            worker.run("fail", {})
        assert worker.run("answer", {"value": 2})[0]["process"] == first
        with pytest.raises(DataError, match="its worker process crashed"):
            worker.run("crash", {})
        second = worker.run("answer", {"value": 3})[0]["process"]
        assert second != first
        start = time.monotonic()
        with pytest.raises(DataError, match=r"it took more than 0\.2 seconds"):
            worker.run("sleep", {"duration": 60}, seconds=0.2)
        assert time.monotonic() - start < 5
        third = worker.run("answer", {"value": 4})[0]["process"]
        assert third != second
        os.kill(third, signal.SIGKILL)
        time.sleep(0.1)
        assert worker.run("answer", {"value": 5})[0]["value"] == 5
        assert worker.n_replaced == 3
    finally:
        worker.close()


def test_coroutines_wait_for_an_idle_process_and_closing_ends_a_task(module):
    pool = ImageWorkerPool(module, n_workers=1, seconds=20)

    async def run():
        results = await asyncio.gather(*(pool.run("answer", value=i) for i in range(5)))
        return [value["value"] for value, _ in results]

    assert asyncio.run(run()) == [0, 1, 2, 3, 4]
    future = pool.submit("sleep", duration=20)
    time.sleep(0.1)
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 5
    assert future.exception() is not None or future.cancelled()


def test_a_stopped_worker_starts_no_process(module):
    worker = ImageWorker(module, seconds=20, failure="The work failed")
    worker.stop()
    with pytest.raises(DataError, match=r"The work failed: the server was stopped\."):
        worker.run("answer", {"value": 1})
    assert worker.n_replaced == 0
    worker = ImageWorker(module, seconds=20, failure="The work failed")
    with pytest.raises(DataError, match="The work failed: its worker process crashed"):
        worker.run("crash", {})
    worker.stop()
