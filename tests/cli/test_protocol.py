import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from surelabel.data.protocols import PROTOCOLS, SourcedCount

sys.path.insert(0, str(Path(__file__).parents[1] / "data/protocols"))
from protocol_miniatures import MINIATURES


@pytest.fixture
def folder(tmp_path):
    """A miniature of Pascal VOC 2012, with fewer images than the dataset."""
    MINIATURES["voc12"](tmp_path / "VOC2012")
    return tmp_path / "VOC2012"


@pytest.fixture
def without_counts(monkeypatch):
    protocol = PROTOCOLS["voc12"]
    splits = tuple(
        replace(s, official=SourcedCount(), evaluated=SourcedCount()) for s in protocol.splits
    )
    monkeypatch.setitem(PROTOCOLS, "voc12", replace(protocol, splits=splits))


def test_all_evaluation_protocols_are_listed(run):
    done = run("protocol")
    assert done.code == 0
    for name, entry in PROTOCOLS.items():
        assert any(line.split()[0] == name and entry.title in line for line in done.out.split("\n"))
    assert json.loads(run("protocol", "--json").out).keys() == PROTOCOLS.keys()


def test_an_entry_is_described_with_its_sources(run):
    done = run("protocol", "voc12")
    assert "5,717 (Towards Calibrated Multi-label Deep Neural Networks, Table 2)" in done.out
    assert "not verified" in done.out
    assert "ImageSets/Main/train.txt" in done.out
    assert "surelabel bench calibrated" in done.out
    assert "--protocol voc12" in done.out


def test_a_folder_with_other_counts_is_reported_and_writes_nothing(run, folder):
    done = run("protocol", "voc12", folder, "--out", folder.parent / "out")
    assert done.code == 1
    assert "train: 12 of 12 listed images; the lists match no published count." in done.out
    assert "train must list 5,717 (Towards Calibrated" in done.out
    assert "differs from the evaluation protocol voc12 in 2 points" in done.err
    assert not (folder.parent / "out").exists()


def test_a_complete_folder_writes_dataset_files(run, folder, without_counts):
    done = run("protocol", "voc12", folder, "--out", folder.parent / "out", "--json")
    value = json.loads(done.out)
    assert [split["found"] for split in value["splits"]] == [12, 8]
    assert (value["problems"], value["is_subset"]) == ([], False)
    assert value["files"] == [str(folder.parent / "out" / f"{n}.csv") for n in ("train", "val")]
    rows = list(csv.reader(Path(value["files"][1]).read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["path", *PROTOCOLS["voc12"].labels]
    assert len(rows) == 9


def test_a_subset_is_stated(run, folder, without_counts):
    next((folder / "JPEGImages").iterdir()).unlink()
    assert run("protocol", "voc12", folder).code == 1
    done = run("protocol", "voc12", folder, "--subset")
    assert done.code == 0
    assert "This is a subset; its results are not comparable" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["voc13"], "Did you mean 'voc12'?"),
        (["voc12", "--subset"], "--subset and --out require NAME and FOLDER"),
        (["--out", "x"], "--subset and --out require NAME and FOLDER"),
        (["voc12", "nothing"], "nothing must be the folder of Pascal VOC 2012 in its official"),
    ],
)
def test_wrong_arguments_are_one_sentence(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("protocol", *arguments)
    assert done.code != 0
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocol", "voc12"], "--data FOLDER is missing"),
        (["--data", "."], "--protocol NAME is missing"),
        (["--subset"], "--protocol NAME is missing"),
        (
            ["--protocol", "coco-captions", "--data", "."],
            "requires one of the evaluation protocols",
        ),
    ],
)
def test_options_of_comparisons_are_checked_first(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("bench", "calibrated", "--quick", *arguments)
    assert done.code != 0
    assert message in done.err


def test_a_comparison_uses_the_images_of_a_protocol(run, folder, without_counts, monkeypatch):
    seen = []
    monkeypatch.setattr(
        sys.modules["surelabel.cli.bench"],
        "run_comparison",
        lambda _terminal, _comparison, datasets, *_a, **_k: seen.extend(datasets),
    )
    done = run(
        *("bench", "calibrated", "--quick", "--protocol", "voc12", "--data", folder),
        *("--encoder", "tiny-vit"),
    )
    assert done.code == 0, done.err
    (dataset,) = seen
    assert dataset.name == "Pascal VOC 2012, tiny-vit"
    assert [len(s) for s in (dataset.train, dataset.validation, dataset.test)] == [10, 2, 8]
