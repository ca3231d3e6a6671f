"""Fixtures: a folder with images, labels, a recognizer and an index, and a command runner."""

import csv
import os
import shutil
import signal
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.data import collection

NAMES = ["lion", "coffee", "guitar", "rocket"]
IMAGES = 24


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache_folder, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(cache_folder))


@pytest.fixture(scope="session")
def template(tmp_path_factory, cache_folder):
    """Create the folder once; each test gets a copy."""
    home = tmp_path_factory.mktemp("template")
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in NAMES]
    test = test.take(test.targets[:, columns].any(axis=1).nonzero()[0][:IMAGES])
    (home / "images").mkdir()
    (home / "names.txt").write_text("\n".join(NAMES) + "\n")
    with (home / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["path", *NAMES])
        for path, targets in zip(test.paths, test.targets, strict=True):
            shutil.copy(path, home / "images")
            rows.writerow([f"images/{Path(path).name}", *targets[columns].astype(int)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(cache_folder))
        patch.chdir(home)
        for line in (
            "calibrate tiny-vit labels.csv --out recognizer",
            "index index images --model recognizer",
        ):
            done = CliRunner().invoke(main, line.split())
            assert done.exit_code == 0, done.output
    return home


@pytest.fixture
def home(template, tmp_path, monkeypatch):
    """Copy the template folder and make it the current folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Return a function that runs a command; its result has code, out, err and exception."""

    def command(*arguments, stdin=None):
        done = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
        return SimpleNamespace(
            code=done.exit_code, out=done.stdout, err=done.stderr, exception=done.exception
        )

    return command


def lead_process_group(errors, arguments):
    """Run a command as a terminal does: in a process group of its own, which gets its signals."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(errors, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    main(arguments, prog_name="surelabel")


@pytest.fixture
def start():
    """Return a function that starts a command in a forked process, which need not import torch.

    It returns the process, which leads a group of processes, and its stderr as a file.
    """

    def start_command(*arguments):
        read_end, write_end = os.pipe()
        command = (write_end, [str(a) for a in arguments])
        process = get_context("fork").Process(target=lead_process_group, args=command)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
            process.start()
        os.close(write_end)
        return process, os.fdopen(read_end)

    return start_command


@pytest.fixture
def indexed(home, run):
    """Index the images of the copy; the index of the template has the paths of the template."""
    shutil.rmtree(home / "index")
    assert run("index", "index", "images", "--model", "recognizer").code == 0
    return home
