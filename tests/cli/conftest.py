"""A small home with pictures, labels, a recognizer and an index, and a way to run commands."""

import csv
import shutil
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from surelabel.backbones import embedded
from surelabel.cli import main
from surelabel.data import collection

NAMES = ["lion", "coffee", "guitar", "rocket"]
PICTURES = 24
READ_ONCE = cache(embedded.from_weights)  # every command loads its encoder; here they share it


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache_folder, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(cache_folder))
    monkeypatch.setattr(embedded, "from_weights", READ_ONCE)


@pytest.fixture(scope="session")
def template(tmp_path_factory, cache_folder):
    """Made once and copied for each test."""
    home = tmp_path_factory.mktemp("template")
    test = collection("scenes-80", split="test")
    columns = [list(test.names).index(name) for name in NAMES]
    test = test.take(test.targets[:, columns].any(axis=1).nonzero()[0][:PICTURES])
    (home / "pictures").mkdir()
    (home / "names.txt").write_text("\n".join(NAMES) + "\n")
    with (home / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["path", *NAMES])
        for path, targets in zip(test.paths, test.targets, strict=True):
            shutil.copy(path, home / "pictures")
            rows.writerow([f"pictures/{Path(path).name}", *targets[columns].astype(int)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(cache_folder))
        patch.chdir(home)
        for line in (
            "calibrate tiny-vit labels.csv --out recognizer",
            "index index pictures --model recognizer",
        ):
            done = CliRunner().invoke(main, line.split())
            assert done.exit_code == 0, done.output
    return home


@pytest.fixture
def home(template, tmp_path, monkeypatch):
    """A copy of the template, and the current folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Run a command in this process: ``run("tag", "pictures")`` → code, out, err, exception."""

    def command(*arguments, stdin=None):
        done = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
        return SimpleNamespace(
            code=done.exit_code, out=done.stdout, err=done.stderr, exception=done.exception
        )

    return command


@pytest.fixture
def indexed(home, run):
    """The home, with an index of its own pictures: that of the template knows the template's."""
    shutil.rmtree(home / "index")
    assert run("index", "index", "pictures", "--model", "recognizer").code == 0
    return home
