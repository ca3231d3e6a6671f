import json

import pytest

from surelabel.encoders.image_only.exported_metadata import (
    exported_view_count,
    openvino_weights_file,
    read_exported_metadata,
)
from surelabel.errors import ConfigError, DataError


@pytest.mark.parametrize("name", ["tagger.onnx", "tagger.xml"])
def test_the_metadata_of_both_formats_are_read(exported_file, name):
    metadata = read_exported_metadata(exported_file(name))
    assert metadata.names == ("red", "green", "sea")
    assert metadata.names_with_aliases[2] == "sea|blue"
    assert metadata.thresholds == (0.3, 0.5, 0.9)
    assert exported_view_count(metadata) == 1


def test_the_views_are_the_whole_image_and_all_tiles(exported_file):
    assert exported_view_count(read_exported_metadata(exported_file(inputs="views"))) == 5


def test_a_pt2_file_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "tagger.pt2"
    file.write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(ConfigError, match=r"load.* \.pt2 files with pickle, .* as \.onnx or \.xml"):
        read_exported_metadata(file)


def test_a_file_without_metadata_is_refused_with_the_name_of_an_encoder(exported_file):
    file = exported_file(metadata="")
    with pytest.raises(ConfigError, match=r"no metadata of surelabel\. Give onnx:.*tagger\.onnx"):
        read_exported_metadata(file)
    with pytest.raises(ConfigError, match=r"no metadata of surelabel\. Export the recognizer"):
        read_exported_metadata(exported_file("tagger.xml", metadata=""))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"names": ["red", "red", "sea"]}, "names .* must be a list of different labels"),
        ({"names": ["red"]}, "names_with_aliases .* one entry for each of 1 label"),
        ({"thresholds": [0.3, 0.5, 1.5]}, r"thresholds .* numbers in \[0, 1\]"),
        ({"thresholds": [0.3, 0.5]}, "thresholds .* one entry for each of 3 labels"),
        ({"thresholds": [0.3, 0.5, "0.9"]}, "thresholds .* must be a list of numbers"),
        ({"thresholds": None}, "thresholds .* given for logits and null for scores"),
        ({"thresholds": [0.3, 0.5, float("nan")]}, "thresholds .* must be a list of numbers"),
        ({"format": 2}, "must have the format 1; got 2"),
        ({"kind": "text_tower"}, "must describe a recognizer"),
        ({"output": "cosines"}, "output .* must be one of logits, scores"),
        ({"calibrated_on": "a\x1b[31mb"}, "calibrated_on .* printable characters"),
        ({"calibrated_on": "a" * 10_000}, "calibrated_on .* at most 2,000 printable"),
        ({"encoder": "a\nb"}, "encoder .* must be one line"),
        ({"preprocessing": {}}, "preprocess_cfg in .* must contain mean"),
        ({"preprocessing": ["/etc/passwd"]}, "preprocessing .* must be an object"),
        ({"min_side": 10**9}, "min_side .* must be at most"),
        ({"min_side": True}, "min_side .* must be a number of pixels"),
        ({"input_shape": [3, 9, 8]}, r"input_shape .* must be \(3, 8, 8\)"),
        ({"preprocessing_in_graph": True}, r"input_shape .* must be \(-1, -1, 3\)"),
        ({"views": {"whole_image": True, "grids": [[2, 2]]}}, "input_shape .* must be"),
        ({"views": {"whole_image": True, "grids": [[99, 99]]}}, "views .* at most 1,024 views"),
        ({"views": {"whole_image": True, "grids": [[10**30, 1]]}}, "views .* at most 1,024 views"),
        ({"license": {"name": 3}}, "license .* must be an object of texts"),
    ],
)
def test_metadata_that_are_not_valid_are_refused_by_name(exported_file, changed, message):
    with pytest.raises(DataError, match=message):
        read_exported_metadata(exported_file(**changed))


def test_a_size_of_the_input_that_is_no_number_of_pixels_is_refused(exported_file):
    for size in (None, [8], 10**9, "8"):
        preprocessing = {
            "size": size,
            "mean": [0.5] * 3,
            "std": [0.5] * 3,
            "interpolation": "bicubic",
            "resize_mode": "squash",
        }
        with pytest.raises(DataError, match=r"size in .* must be"):
            read_exported_metadata(exported_file(preprocessing=preprocessing))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "3", "null", json.dumps({"names": 3})])
def test_text_that_is_no_object_of_metadata_is_refused(exported_file, text):
    with pytest.raises(DataError, match=r"metadata of .*tagger\.onnx must"):
        read_exported_metadata(exported_file(metadata=text))


def test_the_largest_metadata_are_limited(exported_file, monkeypatch):
    module = "surelabel.encoders.image_only.exported_metadata"
    monkeypatch.setattr(f"{module}.METADATA_LIMIT", 100)
    with pytest.raises(DataError, match="must have at most 100 characters"):
        read_exported_metadata(exported_file())
    monkeypatch.setattr(f"{module}.METADATA_LIMIT", 2**20)
    monkeypatch.setattr(f"{module}.MAX_LABELS", 2)
    with pytest.raises(DataError, match=r"names .* must be at most 2 labels; got '3'"):
        read_exported_metadata(exported_file())
    monkeypatch.setattr(f"{module}.XML_LIMIT", 10)
    with pytest.raises(DataError, match="got more than 10 bytes"):
        read_exported_metadata(exported_file("tagger.xml"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not well-formed"),
        (b"<net", "not well-formed"),
        (b"\xff\xfe", "not well-formed"),
        (b"<opencv_storage/>", "the root element 'opencv_storage'"),
        (b'<!DOCTYPE net [<!ENTITY a SYSTEM "/etc/passwd">]><net>&a;</net>', "unsafe"),
    ],
)
def test_another_file_than_an_openvino_model_is_refused(tmp_path, content, message):
    file = tmp_path / "tagger.xml"
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"root element net; got .*{message}"):
        read_exported_metadata(file)


def test_only_metadata_at_their_place_are_read(tmp_path):
    file = tmp_path / "tagger.xml"
    file.write_text('<net><layers><surelabel value="{}"/></layers><rt_info/></net>')
    with pytest.raises(ConfigError, match="contains no metadata"):
        read_exported_metadata(file)


def test_a_damaged_or_missing_file_is_refused(exported_file, tmp_path):
    file = exported_file()
    file.write_bytes(b"\x08" + file.read_bytes()[:40])
    with pytest.raises(DataError, match="must be an ONNX file"):
        read_exported_metadata(file)
    with pytest.raises(DataError, match="No such file"):
        read_exported_metadata(tmp_path / "nothing.xml")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(DataError, match="a folder"):
        read_exported_metadata(tmp_path / "folder.onnx")


def test_the_weights_of_openvino_have_to_be_beside_the_model(exported_file):
    file = exported_file("tagger.xml")
    assert openvino_weights_file(file).name == "tagger.bin"
    file.with_suffix(".bin").unlink()
    with pytest.raises(DataError, match=r"tagger\.bin .*Copy both files"):
        openvino_weights_file(file)
