import json
import sys

import pytest

from surelabel.encoders.engines.conversion import exported_program
from surelabel.errors import DataError
from surelabel.export import RecognizerGraph
from surelabel.recognizer import Recognizer, operating_point


@pytest.fixture
def model(sigmoid_checkpoint):
    return f"local-dir:{sigmoid_checkpoint}"


@pytest.fixture
def few(home):
    """Make a folder with 3 images."""
    (home / "few").mkdir()
    for image in sorted((home / "images").iterdir())[:3]:
        image.rename(home / "few" / image.name)


@pytest.mark.usefixtures("few")
def test_a_report_states_the_files_the_check_and_how_to_run_them(run, model, monkeypatch):
    monkeypatch.setattr("surelabel.export.pt2_file.open_runtimes", EagerRuntime)
    EagerRuntime.graph = RecognizerGraph(Recognizer.zero_shot(model, ["lion", "guitar"]))
    line = ["export", model, "out.pt2", "--labels", "lion, guitar", "--images", "few"]
    done = run(*line, "--threshold", "0.25")
    assert done.code == 0, done.err
    assert done.out.startswith("Wrote out.pt2 (")
    assert "Input: pixels, float32 (n, 3, 32, 32). Output: logits, float32 (n, 2)." in done.out
    assert "Checked on 3 images, one by one and in batches of 3. Largest difference of" in done.out
    assert "License of the encoder: unknown; read the model card" in done.out
    assert "torch.export.load('out.pt2').module()" in done.out
    again = run(*line)
    assert (again.code, again.out) == (1, "")
    assert "out.pt2 exists. Give another path, or add --overwrite to replace the file." in again.err


@pytest.fixture
def _one_program(monkeypatch):
    """Record only the program of the first export; the next exports are of the same recognizer."""
    programs = []

    def record_once(*arguments, **axes):
        if not programs:
            programs.append(exported_program(*arguments, **axes))
        return programs[0]

    monkeypatch.setattr("surelabel.export.exporting.exported_program", record_once)


@pytest.mark.usefixtures("few", "_one_program")
def test_uncalibrated_scores_are_named_scores(run, random_checkpoint, monkeypatch):
    monkeypatch.setattr("surelabel.export.pt2_file.open_runtimes", EagerRuntime)
    model = f"local-dir:{random_checkpoint}"
    line = ["export", model, "out.pt2", "--labels", "lion, guitar", "--images", "few"]
    EagerRuntime.graph = RecognizerGraph(Recognizer.zero_shot(model, ["lion", "guitar"]))
    done = run(*line, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["metadata"]["output"], result["metadata"]["thresholds"]) == ("scores", None)
    assert result["check"]["items"] == 3
    assert result["files"] == ["out.pt2"]
    text = run(*line, "--overwrite").out
    assert "The recognizer is not calibrated, so the output is scores, which only rank" in text
    assert "To export logits, calibrate first (`surelabel calibrate`)." in text
    refused = run(*line, "--overwrite", "--threshold", "0.5")
    assert (refused.code, refused.out) == (1, "")
    assert "Thresholds require probabilities; the recognizer is not calibrated" in refused.err


class EagerRuntime:
    """A runtime that computes the outputs with PyTorch in this process."""

    def __init__(self, file):
        assert file.exists()

    def __enter__(self):
        return {"torch": self.run}

    def __exit__(self, *_):
        pass

    @classmethod
    def run(cls, arrays):
        import torch

        return cls.graph(torch.from_numpy(arrays[0])).numpy()


def test_an_operating_point_sets_the_thresholds(home, run, monkeypatch):
    given = {}

    def export_nothing(recognizer, path, **options):
        given.update(options, names=recognizer.names, path=path)
        raise DataError("Nothing was written.")

    monkeypatch.setattr("surelabel.export.export_recognizer", export_nothing)
    line = ["export", "recognizer", "out.pt2", "--images", "images", "--precision", "0.7"]
    done = run(*line, "--preprocessing-in-graph", "--overwrite")
    assert (done.code, done.out) == (1, "")
    assert "The expected precision is" in done.err
    assert given["names"] == ["lion", "coffee", "guitar", "rocket"]
    expected = operating_point(Recognizer.load("recognizer"), "precision", at_least=0.7)
    assert given["thresholds"].tolist() == expected.values.tolist()
    assert (given["preprocessing_in_graph"], given["overwrite"]) == (True, True)
    assert len(given["images"]) == 24


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (["out.tflite"], 1, "must be one of .onnx, .xml, .pt2; got out.tflite"),
        (["out"], 1, "must be one of .onnx, .xml, .pt2; got out."),
        (["images"], 1, "must be one of .onnx, .xml, .pt2; got images"),
        (["a.pt2", "--precision", "0.9", "--recall", "0.9"], 2, "Give only one operating point"),
        (["a.onnx", "--text-tower", "a.onnx"], 2, "must be another file than the recognizer"),
        (["a.pt2", "--text-tower", "b.pt2"], 1, "must have the suffix .onnx; got b.pt2"),
        (["a.pt2", "--images", "missing"], 1, "missing does not exist"),
        (["a.pt2", "--template", "one"], 1, "Remove --template"),
    ],
)
def test_wrong_options_are_refused(home, run, line, code, message):
    done = run("export", "recognizer", *line)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_a_method_that_is_not_fitted_is_refused(home, run, model):
    line = ["export", model, "out.pt2", "--labels", "lion, guitar, dog"]
    done = run(*line, "--method", "standardized")
    assert (done.code, done.out) == (1, "")
    assert "standardized must be fitted before it is exported. Run `surelabel fit" in done.err
    done = run(*line, "--method", "linear")
    assert "linear requires training on labels" in done.err


def test_a_missing_package_is_named(home, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    done = run("export", "recognizer", "out.onnx")
    assert (done.code, done.out) == (1, "")
    assert "An export to .onnx needs the package openvino, which is not installed." in done.err
    assert "pip install 'surelabel[export]'" in done.err
    assert not (home / "out.onnx").exists()
