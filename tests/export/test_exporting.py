import sys
from pathlib import Path

import numpy as np
import pytest

from surelabel.config import Choice, Run
from surelabel.errors import ConfigError, DataError, InputError, MissingPart, NotFitted
from surelabel.export import EXPORT_FORMATS, export_recognizer, exporting
from surelabel.export.interface import GraphProgram
from surelabel.recognizer import Recognizer
from surelabel.records.export_metadata import METADATA_KEY, read_export_metadata

NAMES = ("lion", 'say "hi" <&> \\ \'', "ünï 🎸 \u202e", "sofa")


@pytest.mark.parametrize("suffix", EXPORT_FORMATS)
def test_all_runtimes_compute_the_logits_of_pytorch(exports, suffix):
    check = exports[suffix].check
    assert (check.n_items, check.max_batch) == (3, 3)
    expected = {".onnx": {"onnxruntime", "openvino"}, ".xml": {"openvino"}, ".pt2": {"torch"}}
    assert check.max_differences.keys() == expected[suffix]
    limit = exporting.RESIZING_LIMIT if suffix == ".onnx" else 1e-4
    assert check.limit == limit
    assert max(check.max_differences.values()) <= limit
    assert exports[suffix].max_prediction_difference < 1e-3


@pytest.mark.parametrize("suffix", EXPORT_FORMATS)
def test_the_metadata_of_a_file_are_those_of_the_report(exports, suffix, small_recognizer):
    report = exports[suffix]
    text = EXPORT_FORMATS[suffix].read_metadata(Path(report.paths[0]), METADATA_KEY)
    metadata = read_export_metadata(text, "file")
    assert metadata.as_json() == report.metadata.as_json()
    assert metadata.names == NAMES
    assert metadata.names_with_aliases == (*NAMES[:3], "sofa|couch")
    assert metadata.thresholds == (0.25, 0.5, 0.125, 1.0)
    assert (metadata.output, metadata.calibrated_on) == ("logits", "model")
    assert metadata.fingerprint == small_recognizer.fingerprint
    assert metadata.license["text"] == str(small_recognizer.encoder.license)
    assert metadata.preprocessing["size"] == [32, 32]
    assert EXPORT_FORMATS[suffix].read_metadata(Path(report.paths[0]), "other") is None


def test_the_input_is_preprocessed_images_or_images(exports):
    assert exports[".xml"].metadata.input_shape == (3, 32, 32)
    assert exports[".xml"].metadata.preprocessing_difference is None
    metadata = exports[".onnx"].metadata
    assert (metadata.input_name, metadata.input_shape) == ("images", (-1, -1, 3))
    assert metadata.preprocessing_difference["images"] == 3
    assert metadata.preprocessing_difference["levels"] <= 8
    assert metadata.preprocessing_difference["probability"] < 0.01


def test_an_openvino_model_has_two_files(exports):
    xml, weights = map(Path, exports[".xml"].paths)
    assert (xml.name, weights.name) == ("tagger.xml", "tagger.bin")
    assert exports[".xml"].n_bytes == xml.stat().st_size + weights.stat().st_size
    assert not [file.name for file in xml.parent.iterdir() if file.name.startswith(".")]


def test_an_existing_file_is_replaced_only_on_request(
    small_recognizer, check_paths, tmp_path, monkeypatch, record_once
):
    monkeypatch.setattr(exporting, "exported_program", record_once)
    for name in ("a.pt2", "b.bin"):
        (tmp_path / name).write_text("old")
    with pytest.raises(DataError, match=r"a\.pt2 exists\. Give another path, or add --overwrite"):
        export_recognizer(small_recognizer, tmp_path / "a.pt2")
    with pytest.raises(DataError, match=r"b\.bin exists"):
        export_recognizer(small_recognizer, tmp_path / "b.xml")
    monkeypatch.setattr(EXPORT_FORMATS[".pt2"], "write", write_text)
    monkeypatch.setattr(EXPORT_FORMATS[".pt2"], "open_runtimes", WrongRuntime)
    with pytest.raises(DataError, match=r"in wrong must differ by at most .* got .* for .*48\.png"):
        export_recognizer(
            small_recognizer, tmp_path / "a.pt2", overwrite=True, images=check_paths[:1]
        )
    assert (tmp_path / "a.pt2").read_text() == "old"
    monkeypatch.setattr(exporting, "check_runtimes", lambda *_, **__: None)
    export_recognizer(small_recognizer, tmp_path / "a.pt2", overwrite=True, images=check_paths[:1])
    assert (tmp_path / "a.pt2").read_text() == "new"


def write_text(graph, file, metadata):
    assert isinstance(graph, GraphProgram)
    file.write_text("new")


class WrongRuntime:
    """A runtime whose logits are wrong."""

    def __init__(self, file):
        pass

    def __enter__(self):
        return {"wrong": lambda arrays: np.full((len(arrays[0]), 4), 7, np.float32)}

    def __exit__(self, *_):
        pass


def test_an_unknown_suffix_is_refused_with_the_list(small_recognizer, tmp_path):
    with pytest.raises(InputError, match=r"one of \.onnx, \.xml, \.pt2; got .*tagger\.tflite"):
        export_recognizer(small_recognizer, tmp_path / "tagger.tflite")


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("a.onnx", "onnx"),
        ("a.onnx", "onnxscript"),
        ("a.onnx", "onnxruntime"),
        ("a.ONNX", "openvino"),
        ("a.xml", "openvino"),
    ],
)
def test_a_missing_package_is_named_with_the_extra(
    small_recognizer, tmp_path, monkeypatch, file, package
):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPart, match=rf"{package}, .*pip install 'surelabel\[export\]'"):
        export_recognizer(small_recognizer, tmp_path / file)


def test_a_recognizer_that_is_not_fitted_is_refused(random_checkpoint, tmp_path):
    run = Run(encoder=Choice(f"local-dir:{random_checkpoint}"), method=Choice("linear"))
    with pytest.raises(NotFitted, match="linear must be fitted"):
        export_recognizer(Recognizer(run, ["lion"]), tmp_path / "a.onnx")


def test_thresholds_need_logits_and_one_value_for_each_label(
    small_recognizer, random_checkpoint, tmp_path
):
    uncalibrated = Recognizer.zero_shot(f"local-dir:{random_checkpoint}", ["lion", "guitar"])
    with pytest.raises(NotFitted, match="so its scores only rank labels"):
        export_recognizer(uncalibrated, tmp_path / "a.pt2", thresholds=0.5)
    for thresholds, message in (
        (np.zeros(3), r"one number for each of 4 labels; got an array of shape \(3,\)"),
        (1.5, r"must be in \[0, 1\]; got 1\.5"),
        (float("nan"), "got nan"),
    ):
        with pytest.raises(InputError, match=message):
            export_recognizer(small_recognizer, tmp_path / "a.pt2", thresholds=thresholds)


def test_the_number_of_images_is_limited(small_recognizer, tmp_path):
    for images, number in (([], "0"), (["a.png"] * 1025, "1,025")):
        with pytest.raises(InputError, match=f"1 to 1,024 images for the check; got {number}"):
            export_recognizer(small_recognizer, tmp_path / "a.pt2", images=images)


def test_weights_above_the_limit_of_a_file_are_refused(
    small_recognizer, check_paths, tmp_path, monkeypatch, record_once
):
    monkeypatch.setattr(exporting, "exported_program", record_once)
    monkeypatch.setattr(EXPORT_FORMATS[".onnx"], "SIZE_LIMIT", 1000)
    with pytest.raises(ConfigError, match=r"\.onnx must be below .* Export to \.pt2"):
        export_recognizer(small_recognizer, tmp_path / "a.onnx", images=check_paths)
