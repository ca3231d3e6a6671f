import json
from dataclasses import replace

import numpy as np
import pytest

import surelabel.bench.calibrated
import surelabel.bench.prompts
import surelabel.bench.supervised


@pytest.fixture
def vectors(tmp_path, monkeypatch):
    """The current folder, with an archive of vectors in three parts."""
    monkeypatch.chdir(tmp_path)
    comparison = surelabel.bench.calibrated.CALIBRATED
    fast = replace(comparison.quick, epochs=1, min_steps=0)
    monkeypatch.setattr(surelabel.bench.calibrated, "CALIBRATED", replace(comparison, quick=fast))
    random = np.random.default_rng(0)
    features = random.normal(size=(150, 8)).astype(np.float32)
    targets = (features[:, :3] + random.normal(size=(150, 3)) > 0.5).astype(float)
    part = np.repeat(["train", "validation", "test"], 50)
    np.savez("birds.npz", features=features, targets=targets, names=list("abc"), part=part)
    return tmp_path


def test_bench_prints_tables_and_writes_them_with_a_figure(vectors, run):
    done = run("bench", "calibrated", "--quick", "--features", "birds.npz", "--out", "found")
    assert done.code == 0, done.err
    assert done.out.startswith("## birds\n")
    assert done.out.strip() == (vectors / "found" / "calibrated.md").read_text().strip()
    assert (vectors / "found" / "curves.png").stat().st_size > 10_000
    assert "Written: found/calibrated.md, calibrated.json and curves.png" in done.err
    line = ["bench", "calibrated", "--quick", "--features", "birds.npz", "--out", "found"]
    cells = sorted((vectors / "found" / "cache").iterdir())
    again = run(*line, "--json", "--quiet")
    assert sorted((vectors / "found" / "cache").iterdir()) == cells
    value = json.loads(again.out)
    assert value == json.loads((vectors / "found" / "calibrated.json").read_text())
    assert [found["dataset"] for found in value["results"]] == ["birds"]


def test_a_file_without_parts_is_one_sentence(vectors, run):
    np.savez("no.npz", features=np.ones((3, 2)), targets=np.eye(3, 2), names=["a", "b"])
    done = run("bench", "calibrated", "--features", "no.npz")
    assert done.code == 1
    assert done.err.startswith(
        "Error: no.npz must contain rows of the splits train, validation and test; "
    )
    assert "got no rows of train, validation, test. Name the split" in done.err


def test_an_encoder_that_is_none_is_one_sentence(vectors, run):
    done = run("bench", "calibrated", "--encoder", "tiny-cat", "--quick")
    assert done.code == 1
    assert "tiny-cat" in done.err
    assert done.err.startswith("Error: ")


def test_the_place_of_the_results_is_checked_first(vectors, run):
    (vectors / "file").write_text("")
    done = run("bench", "calibrated", "--features", "birds.npz", "--out", "file/found")
    assert done.code == 1
    assert "cannot be written" in done.err


def test_bench_prompts_prints_the_epochs_and_the_tables(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    comparison = surelabel.bench.prompts.PROMPTS
    fast = replace(
        comparison.quick,
        tuners={"clip_adapter": 1},
        studied_tuner="clip_adapter",
        losses=("binary",),
        variants=("none", "CCR"),
        shots=1,
        validation=40,
        test=30,
        curve_shots=(1,),
        domains=(),
        weights=(0.1,),
        batch_sizes=(32,),
        open_vocabulary_tuners=(),
        minutes=0.0,
        resamples=5,
    )
    monkeypatch.setattr(surelabel.bench.prompts, "PROMPTS", replace(comparison, quick=fast))
    done = run("bench", "prompts", "--quick", "--out", "found")
    assert done.code == 0, done.err
    assert "2 fits per encoder in 2 rows" in done.err
    assert "clip_adapter (1 seeds, 1 epochs)" in done.err
    assert done.out.startswith("## scenes-80, tiny-vit\n")
    assert done.out.strip() == (tmp_path / "found" / "prompts.md").read_text().strip()
    for name in comparison.files:
        assert (tmp_path / "found" / name).exists()


def test_bench_supervised_prints_the_number_of_recognizers_and_the_tables(
    tmp_path, monkeypatch, run
):
    monkeypatch.chdir(tmp_path)
    module = surelabel.bench.supervised
    comparison, load = module.SUPERVISED, module.load_supervised_scene_splits

    def load_few(encoder, *, quick):
        splits = load(encoder, quick=quick)
        few = {name: getattr(splits, name).take(range(8)) for name in ("train", "test")}
        return replace(splits, **few)

    fast = replace(
        comparison.quick, methods=("zero_shot", "linear"), image_counts=(8,), folds=2, resamples=5
    )
    monkeypatch.setattr(module, "SUPERVISED", replace(comparison, quick=fast))
    monkeypatch.setattr(module, "load_supervised_scene_splits", load_few)
    done = run("bench", "supervised", "--quick", "--out", "found")
    assert done.code == 0, done.err
    assert "For each encoder, 4 recognizers are fitted. To resume" in done.err
    assert done.out.startswith("## scenes-80, tiny-vit\n")
    assert done.out.strip() == (tmp_path / "found" / "supervised.md").read_text().strip()
    assert "Written: found/supervised.md, supervised.json and supervised.png" in done.err
