import os

import click
import pytest

from surelabel.cli.output_paths import (
    unused_output_path,
    validate_terminal_model_path,
    validate_terminal_output_directory,
    validate_terminal_output_folder,
    validate_terminal_output_path,
)
from surelabel.errors import DataError

OUT = click.Option(["--out"])
MODEL = click.Option(["--model"])


def test_a_place_below_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file is a file, not a folder\. Give another path"):
        validate_terminal_output_path(None, OUT, str(tmp_path / "file" / "deep" / "below"))


def test_a_place_without_a_name_is_refused_instead_of_written_nowhere():
    with pytest.raises(DataError, match=r"^--out must not be empty\. Give a path\.$"):
        validate_terminal_output_path(None, OUT, " ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_is_closed_is_refused_at_once(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(DataError, match=r"no write permission for .*closed\. Give another path"):
        validate_terminal_output_path(None, OUT, str(tmp_path / "closed" / "new"))


def test_a_folder_that_is_written_whole_cannot_be_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="must not contain the current folder"):
        validate_terminal_output_folder(None, OUT, ".")
    assert validate_terminal_output_folder(None, OUT, "new") == "new"
    assert validate_terminal_output_folder(None, OUT, None) is None


@pytest.mark.parametrize("place", ["new/deeper", "file", "."])
def test_a_place_that_can_be_written_or_replaced_passes(place, tmp_path):
    (tmp_path / "file").write_text("")
    assert validate_terminal_output_path(None, OUT, str(tmp_path / place)) == str(tmp_path / place)


@pytest.mark.parametrize(
    "validate", [validate_terminal_output_directory, validate_terminal_output_folder]
)
def test_a_file_is_no_folder(validate, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"^--out requires a folder; got the file .*file\. Give"):
        validate(None, OUT, str(tmp_path / "file"))
    assert validate(None, OUT, str(tmp_path / "new")) == str(tmp_path / "new")


def test_an_empty_folder_name_is_not_the_current_folder():
    with pytest.raises(DataError, match=r"^--out must not be empty\. Give a path\.$"):
        validate_terminal_output_folder(None, OUT, "")


@pytest.mark.parametrize(
    "model",
    [
        "./nowhere",
        "../nowhere",
        "/nowhere/deep",
        "~/nowhere",
        "a/",
        "local-dir:nowhere",
        "onnx:",
    ],
)
def test_a_missing_path_of_a_model_is_called_missing(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind = "file" if model.startswith("onnx") else "folder"
    with pytest.raises(DataError, match=rf"^--model '{model}': no such {kind}\. Check the path"):
        validate_terminal_model_path(None, MODEL, model)


def test_a_file_is_no_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.pt").touch()
    for model in ("weights.pt", "./weights.pt", "local-dir:weights.pt"):
        with pytest.raises(DataError, match=r"^--model requires a folder, .* the file .*\.pt\."):
            validate_terminal_model_path(None, MODEL, model)
    assert validate_terminal_model_path(None, MODEL, "onnx:weights.pt") == "onnx:weights.pt"


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    assert validate_terminal_model_path(None, MODEL, "~/mine") == str(tmp_path / "mine")


@pytest.mark.parametrize(
    "model", [None, "tiny-vit", "ViT-B-16/openai", "timm:resnet18", "hf-hub:a/b", "features:8"]
)
def test_the_name_of_an_encoder_is_no_path(model):
    assert validate_terminal_model_path(None, MODEL, model) == model


@pytest.mark.parametrize("name", ["open_clip_config.json", "surelabel_encoder.json"])
@pytest.mark.parametrize("model", ["clip", "./clip", "clip/"])
def test_a_folder_of_an_encoder_needs_local_dir(tmp_path, monkeypatch, name, model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip" / name).write_text("{}")
    with pytest.raises(DataError, match=f"contains an encoder.* Give local-dir:{model} to use"):
        validate_terminal_model_path(None, MODEL, model)
    assert validate_terminal_model_path(None, MODEL, "local-dir:clip") == "local-dir:clip"


def test_a_suggested_output_does_not_exist(tmp_path):
    path = str(tmp_path / "calibrated")
    assert unused_output_path(path) == path
    (tmp_path / "calibrated").mkdir()
    (tmp_path / "calibrated-2").touch()
    assert unused_output_path(path) == f"{path}-3"
