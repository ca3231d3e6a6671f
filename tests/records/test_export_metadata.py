import json

import pytest

from surelabel.errors import DataError
from surelabel.records.export_metadata import EXPECTED_VALUES, ExportMetadata, read_export_metadata


def make_metadata(**changes):
    values = {
        "names": ("lion", "sofa"),
        "names_with_aliases": ("lion", "sofa|couch"),
        "output": "logits",
        "calibrated_on": "platt on 100 labelled images",
        "thresholds": (0.5, 0.25),
        "input_name": "pixels",
        "input_shape": (14, 3, 96, 96),
        "output_name": "logits",
        "preprocessing": {"size": [96, 96]},
        "preprocessing_in_graph": False,
        "preprocessing_difference": None,
        "min_side": 96,
        "views": {"whole_image": True, "grids": [[2, 2], [3, 3]]},
        "encoder": "tiny-vit",
        "license": {"name": "mit", "source": "its card", "text": "mit"},
        "method": "tiles",
        "method_settings": {"rows": 3},
        "fingerprint": "0" * 32,
        "differences": ("A difference.",),
        "version": "1.0",
    }
    return ExportMetadata(**{**values, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"names": ("\"\\<&>'", "🎸\u202eü")},
        {"parents": {"sofa": "lion"}},
        {"output": "scores", "calibrated_on": None, "thresholds": None, "views": None},
        {"preprocessing_difference": {"images": 3, "levels": 1.0}, "input_shape": (-1, -1, 3)},
    ],
)
def test_metadata_are_restored_from_their_text(changes):
    metadata = make_metadata(**changes)
    text = metadata.as_json()
    assert text.isascii()
    assert read_export_metadata(text, "file") == metadata


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parents", []),
        ("parents", {"sofa": "lion", "lion": "sofa"}),
        ("parents", {"dog": "lion"}),
        ("parents", {"lion": 1}),
        ("names", []),
        ("names", ["lion", "lion"]),
        ("names", ["lion"]),
        ("names_with_aliases", ["lion", "sofa", "dog"]),
        ("output", ["logits"]),
        ("output", "scores"),
        ("calibrated_on", None),
        ("calibrated_on", 1),
        ("thresholds", [0.5, 1.5]),
        ("thresholds", [0.5, float("nan")]),
        ("thresholds", [0.5]),
        ("thresholds", None),
        ("input_name", 1),
        ("input_shape", [3, 0, 96]),
        ("input_shape", [3, 96]),
        ("output_name", None),
        ("preprocessing", []),
        ("preprocessing_in_graph", 0),
        ("preprocessing_difference", {"levels": float("inf")}),
        ("min_side", True),
        ("views", {"grids": [[2, 2]]}),
        ("views", {"whole_image": True, "grids": [[2, 0]]}),
        ("encoder", None),
        ("license", {"name": 1}),
        ("method", 3),
        ("method_settings", []),
        ("fingerprint", 5),
        ("differences", "no list"),
        ("version", None),
    ],
)
def test_an_invalid_value_is_refused_with_its_key(key, value):
    values = {**make_metadata().as_json_object(), key: value}
    with pytest.raises(DataError, match=r"in the metadata of f\.onnx must be"):
        read_export_metadata(json.dumps(values), "f.onnx")


@pytest.mark.parametrize("key", EXPECTED_VALUES)
def test_every_key_is_required(key):
    values = make_metadata().as_json_object()
    del values[key]
    with pytest.raises(DataError, match=key):
        read_export_metadata(json.dumps(values), "f.onnx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON; reading failed"),
        ("[" * 100_000, "must be JSON; reading failed"),
        ("[]", "must describe a recognizer"),
        ('{"format": 1, "kind": "text_tower"}', "must describe a recognizer"),
        ('{"format": 2, "kind": "recognizer"}', "must have the format 1; got 2"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(DataError, match=message):
        read_export_metadata(text, "f.onnx")
