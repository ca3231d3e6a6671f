"""Fixtures: images, a recognizer, and a Ray cluster of two CPUs in the process of the test."""

import os
import shutil
import signal
import textwrap

import pytest

from surelabel.cluster.ray_connection import connect_to_ray
from surelabel.data import collection
from surelabel.recognizer import Recognizer

SECONDS = 240  # limit of each test; a loaded machine starts a process of Ray in 10 seconds
POISON = "poison.jpg"


@pytest.fixture(autouse=True)
def _time_limit():
    def interrupt(*_):
        raise TimeoutError(f"the test took more than {SECONDS} seconds")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope="session")
def hook(tmp_path_factory):
    """Return a folder for PYTHONPATH: each process that opens the poisoned image is killed."""
    folder = tmp_path_factory.mktemp("hook")
    code = f"""
        import os, signal, sys
        def kill(event, arguments):
            if event == "open" and str(arguments[0]).endswith({POISON!r}):
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(kill)
    """
    (folder / "sitecustomize.py").write_text(textwrap.dedent(code))
    return folder


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """Return the paths of 150 images, of which one is poisoned and one is no image."""
    folder = tmp_path_factory.mktemp("images")
    for number, path in enumerate(collection("scenes-80", split="test").paths[:148]):
        shutil.copy(path, folder / f"{number:03}.jpg")
    (folder / "no-image.jpg").write_bytes(b"text")
    (folder / POISON).write_bytes((folder / "000.jpg").read_bytes())
    return sorted(map(str, folder.iterdir()))


@pytest.fixture(scope="session")
def recognizer(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        return Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])


@pytest.fixture(scope="session")
def cluster(hook):
    """Start Ray once, with its files in the folder for temporary files."""
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join([str(hook), os.environ.get("PYTHONPATH", "")])
        patch.setenv("PYTHONPATH", path)
        with connect_to_ray("local", recognizer_bytes=10**8):
            yield
