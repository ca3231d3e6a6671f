"""``calibrate --dtype int8``, and the commands that use its recognizer."""

import json
import shutil

import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.encoders import load_encoder


@pytest.fixture(scope="module")
def folder(template, random_encoder, tmp_path_factory, cache_folder):
    """Copy the template, and add the recognizer ``int8`` of a small encoder."""
    home = tmp_path_factory.mktemp("int8")
    shutil.copytree(template, home, dirs_exist_ok=True)
    random_encoder.save(home / "encoder")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURELABEL_CACHE", str(cache_folder))
        patch.setattr("surelabel.recognizer.quantization.MAX_MAP_LOSS", 0.2)  # weights are random
        patch.chdir(home)
        line = "calibrate local-dir:encoder labels.csv --dtype int8 --out int8 --json"
        done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    (home / "done.json").write_text(done.stdout)
    return home


@pytest.fixture
def home(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_both_map_and_the_number_of_images_are_printed_and_stored(home):
    found = json.loads((home / "done.json").read_text())
    record = found["int8"]
    assert record["n_images"] == record["n_test_images"] == 24
    assert record["map_before"] == pytest.approx(
        found["before"]["summary"]["mean_average_precision"]
    )
    assert found["bf16"] is None
    card = (home / "int8" / "README.md").read_text()
    assert "quantized to int8 with 24 images" in card
    assert f"{record['map_before']:.4f} before and {record['map_after']:.4f} after" in card


def test_the_recognizer_tags_with_int8_only(home, run):
    lines = {
        (): run("tag", "images", "--model", "int8", "--json"),
        ("int8",): run("tag", "images", "--model", "int8", "--json", "--dtype", "int8"),
    }
    assert {done.code for done in lines.values()} == {0}, lines
    assert len({done.out for done in lines.values()}) == 1
    for options in (["--dtype", "bf16"], ["--dtype", "fp32"], ["--engine", "onnx"]):
        done = run("tag", "images", "--model", "int8", *options)
        assert done.code != 0
        assert "was quantized to int8 and runs only with the engine openvino" in done.err
    assert run("evaluate", "int8", "labels.csv", "--dtype", "int8").code == 0


def test_other_recognizers_are_refused_with_the_command_to_run(home, run):
    done = run("tag", "images", "--model", "recognizer", "--dtype", "int8")
    assert done.code != 0
    assert "Run `surelabel calibrate MODEL DATASET --dtype int8 --out FOLDER`" in done.err


def test_it_cannot_be_exported_or_quantized_again(home, run):
    done = run("export", "int8", "out.onnx")
    assert done.code != 0
    assert "cannot be exported, because its encoder was quantized to int8" in done.err
    done = run("calibrate", "int8", "labels.csv", "--dtype", "int8", "--out", "again")
    assert done.code != 0
    assert "with openvino int8" in done.err


def test_it_is_calibrated_again_without_a_quantization(home, run):
    done = run("calibrate", "int8", "labels.csv", "--out", "again", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["int8"] is None
    assert "quantized to int8 with 24 images" in (home / "again" / "README.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--dtype int8 requires --out"),
        (["--out", "new", "--recalibrate"], "cannot be combined with --unlabelled, --recalibrate"),
        (["--out", "new", "--unlabelled"], "cannot be combined with --unlabelled, --recalibrate"),
    ],
)
def test_options_that_contradict_are_refused(home, run, options, message):
    done = run("calibrate", "recognizer", "labels.csv", "--dtype", "int8", *options)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert not (home / "new").exists()


def test_nothing_is_written_after_a_large_loss_of_map(home, run, monkeypatch):
    monkeypatch.setattr("surelabel.recognizer.quantization.MAX_MAP_LOSS", -1.0)
    models = []

    def stored_model(encoder, kind, pixels):
        models.append(kind)
        return load_encoder("local-dir:int8/encoder").models[0]

    monkeypatch.setattr("surelabel.recognizer.quantization.quantize_features", stored_model)
    line = "calibrate local-dir:encoder labels.csv --dtype int8 --out lost"
    done = run(*line.split())
    assert (done.code, models) == (1, ["images"])
    assert "Nothing was written" in done.err
    assert not (home / "lost").exists()
