"""Run commands of surelabel in forked processes, and kill them."""

import contextlib
import os
import signal
import sys
import time
import warnings
from pathlib import Path

from surelabel.cli import main as surelabel

SECONDS_TO_EXIT = 10  # of the worker processes of a killed process


def fork_command(folder, line, *, cache, messages, prepare):
    """Start a command in a forked process, whose process group is its own.

    Args:
        folder: Current folder of the process.
        line: Arguments of ``surelabel``.
        cache: Folder of the cache.
        messages: File to which the output is appended.
        prepare: Function that the process calls first.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        prepare()
        os.chdir(folder)
        os.environ["SURELABEL_CACHE"] = str(cache)
        with (
            open(messages, "a") as file,
            contextlib.redirect_stderr(file),
            contextlib.redirect_stdout(file),
        ):
            surelabel(line, standalone_mode=False)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def kill_after_or_wait(process, seconds, *, wait):
    """Wait for the end of a process, or kill it; return whether the process was killed."""
    if not wait:
        return kill_after(process, seconds)
    _, status = os.waitpid(process, 0)
    assert status == 0, "the run failed"
    return False


def kill_after(process, seconds):
    """Kill a process, unless it ends before; return whether the process was killed."""
    time.sleep(seconds)
    workers = child_processes(process)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or status == 0, "the run failed"
    deadline = time.monotonic() + SECONDS_TO_EXIT
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "a worker process remains"
        time.sleep(0.05)
    return os.WIFSIGNALED(status)


def child_processes(process):
    """Return the numbers of the child processes, on Linux."""
    try:
        return Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []


def is_running(process):
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
