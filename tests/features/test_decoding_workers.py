import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from multiprocessing import get_context

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.features import decoding_workers
from surelabel.features.decoding_workers import decode_in_workers

MAIN_PROCESS = os.getpid()
UNREACHABLE_OBJECT = """
import gc, os, sys
from importlib.util import find_spec, module_from_spec
sys.modules["surelabel.features"] = module_from_spec(find_spec("surelabel.features"))  # not run
from surelabel.features.decoding_workers import decode_in_workers

class Inherited:
    def __init__(self):
        self.itself = self

    def __del__(self):
        os.write(1, b"deleted")

def decode(task):
    gc.collect()
    yield task

Inherited()
options = {"workers": 1, "max_pending": 2, "message_of_killed": None}
assert list(decode_in_workers(decode, [0, 1], **options)) == [0, 1]
os._exit(0)
"""


def run(decode, tasks, *, workers=2, max_pending=6):
    return decode_in_workers(
        decode,
        tasks,
        workers=workers,
        max_pending=max_pending,
        message_of_killed=lambda task, reason: (task, reason),
    )


def pixels_of(task):
    """Three messages, each larger than the buffer of a pipe."""
    for part in range(3):
        yield task, part, np.full(100_000, task * 10 + part)


def kill_this_process():
    assert os.getpid() != MAIN_PROCESS
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_messages_come_in_the_order_of_the_tasks(workers):
    messages = list(run(pixels_of, range(20), workers=workers))
    assert [m[:2] for m in messages] == [(task, part) for task in range(20) for part in range(3)]
    assert all((array == task * 10 + part).all() for task, part, array in messages)


def test_tasks_are_decoded_by_other_processes_and_no_further_ahead_than_allowed(tmp_path):
    def decode(task):
        (tmp_path / str(task)).touch()
        yield os.getpid()

    messages = run(decode, range(50), max_pending=5)
    pids = {next(messages) for _ in range(10)}
    time.sleep(0.2)
    assert len(list(tmp_path.iterdir())) <= 10 + 5
    pids |= set(messages)
    assert MAIN_PROCESS not in pids
    assert len(list(tmp_path.iterdir())) == 50


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("killers", [{1, 2}, set(range(4))])
def test_tasks_that_kill_their_process_are_named_and_the_others_are_complete(workers, killers):
    def decode(task):
        if task in killers:
            kill_this_process()
        yield task, task**2

    reason = "the decoding process was killed (SIGKILL), possibly because of too little memory"
    expected = [(task, reason if task in killers else task**2) for task in range(4)]
    assert list(run(decode, range(4), workers=workers)) == expected


def test_a_task_whose_process_is_killed_once_is_decoded_again_without_repeated_messages(tmp_path):
    def decode(task):
        for part, message in enumerate(pixels_of(task)):
            if (task, part) == (3, 2) and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                kill_this_process()
            yield message

    messages = list(run(decode, range(8)))
    assert [m[:2] for m in messages] == [(task, part) for task in range(8) for part in range(3)]


@pytest.fixture
def short_limit(monkeypatch):
    monkeypatch.setattr(decoding_workers, "MAX_SECONDS", 0.3)
    monkeypatch.setattr(decoding_workers, "POLL_SECONDS", 0.05)


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_whose_process_does_not_answer_is_named_and_the_others_are_complete(
    tmp_path, workers
):
    os.mkfifo(tmp_path / "pipe")

    def decode(task):
        if task == 2:
            (tmp_path / "pipe").read_bytes()  # waits for a writer
        yield task, task**2

    expected = [(task, task**2) for task in range(5)]
    expected[2] = (2, "decoding took more than 0.3 seconds")
    assert list(run(decode, range(5), workers=workers)) == expected


@pytest.mark.usefixtures("short_limit")
def test_time_in_which_the_main_process_computes_does_not_count_for_the_limit():
    def decode(task):
        time.sleep(0.05)
        yield task, "decoded"

    messages = []
    for message in run(decode, range(4), workers=1, max_pending=2):
        messages.append(message)
        time.sleep(0.35)
    assert messages == [(task, "decoded") for task in range(4)]


def test_of_many_fast_tasks_only_the_one_that_kills_its_process_is_lost():
    def decode(task):
        if task == 40:
            kill_this_process()
        yield task, np.full(3, task)

    messages = list(run(decode, range(100), workers=2, max_pending=60))
    assert [task for task, _ in messages] == list(range(100))
    assert messages[40][1].startswith("the decoding process was killed (SIGKILL)")
    assert all((array == task).all() for task, array in messages if task != 40)


def test_more_tasks_than_fit_into_the_buffer_of_a_connection_can_be_pending():
    messages = run(lambda task: [b"x" * 1000], range(5000), workers=1, max_pending=5000)
    next(messages)
    time.sleep(0.1)
    assert sum(1 for _ in messages) == 4999


def test_a_process_that_ends_itself_is_replaced():
    def decode(task):
        if task == 1:
            os._exit(7)
        yield task, ""

    messages = list(run(decode, range(3)))
    assert messages[1] == (1, "the decoding process ended with exit code 7")
    assert messages[2] == (2, "")


def test_other_errors_of_a_worker_are_raised_in_the_main_process():
    def decode(task):
        if task == 2:
            raise KeyError("no such part")
        yield task

    messages = run(decode, range(9))
    assert [next(messages), next(messages)] == [0, 1]
    with pytest.raises(KeyError, match="no such part"):
        next(messages)


def test_after_an_early_stop_no_process_and_no_thread_remains():
    n_threads = threading.active_count()
    pids = set()

    def decode(task):
        yield os.getpid()
        yield from pixels_of(task)

    messages = run(decode, range(100), workers=3)
    for message in messages:
        if isinstance(message, int):
            pids.add(message)
        if len(pids) == 3:
            break
    messages.close()
    assert threading.active_count() == n_threads
    assert not any(process_exists(pid) for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_main_process(tmp_path, number):
    def decode(task):
        (tmp_path / str(os.getpid())).touch()
        yield bytes(10**6)

    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def count_messages():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
        os.setpgrp()
        with suppress(KeyboardInterrupt):
            for index, _ in enumerate(run(decode, range(10**6), workers=3)):
                sender.send(index)

    process = context.Process(target=count_messages)
    process.start()
    for _ in range(50):
        receiver.recv()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as Ctrl-C in a terminal
    else:
        os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode is not None
    pids = [int(file.name) for file in tmp_path.iterdir()]
    assert len(pids) >= 2
    if number == signal.SIGINT:
        assert process.exitcode == 0
        assert not any(process_exists(pid) for pid in pids)
    for _ in range(100):
        if not any(is_running(pid) for pid in pids):
            return
        time.sleep(0.05)
    pytest.fail(f"still running: {[pid for pid in pids if is_running(pid)]}")


def process_exists(pid):
    """Also a zombie exists: a process that ended and that its parent did not wait for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_errors_of_this_package_keep_their_type():
    def decode(task):
        raise DataError("a: b")
        yield

    with pytest.raises(DataError, match=r"^a: b$"):
        next(run(decode, [0]))


def test_killed_processes_leave_no_open_files():
    def decode(task):
        if task in (1, 2):
            kill_this_process()
        yield task

    messages = run(decode, range(4), workers=1, max_pending=1)
    assert next(messages) == 0
    n_files = len(os.listdir("/proc/self/fd"))
    assert len(list(islice(messages, 2))) == 2
    assert len(os.listdir("/proc/self/fd")) <= n_files + 3  # of the last killed process
    assert list(messages) == [3]


def test_workers_do_not_delete_unreachable_objects_of_the_main_process():
    process = subprocess.run(
        [sys.executable, "-c", UNREACHABLE_OBJECT], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout) == (0, "")
