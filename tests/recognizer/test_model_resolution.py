from pathlib import Path

import pytest

from surelabel.errors import InputError, UnknownName
from surelabel.recognizer import Recognizer, resolve_model
from surelabel.recognizer.model_resolution import absolute_model_name


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "saved"
    Recognizer.zero_shot("tiny-vit", ["lion", "violin|guitar"]).save(folder)
    return str(folder)


def test_an_encoder_looks_for_the_names_given():
    assert resolve_model("tiny-vit", ["lion"]).names == ["lion"]
    assert resolve_model("tiny-vit", ["lion"], default_names=["bear"]).names == ["lion"]
    assert resolve_model("tiny-vit", default_names=["bear"]).names == ["bear"]


def test_an_encoder_without_names_is_refused():
    with pytest.raises(InputError, match="tiny-vit requires labels; got none"):
        resolve_model("tiny-vit")


def test_a_saved_recognizer_keeps_its_names_unless_others_are_given(saved):
    assert resolve_model(saved, default_names=["bear"]).names == ["lion", "violin"]
    assert resolve_model(saved, ["bear"]).names == ["bear"]


def test_a_recognizer_whose_writer_was_killed_between_two_renames_is_restored(saved):
    Path(saved).rename(Path(saved).with_name(".saved.0123abcd.old"))
    assert resolve_model(saved).names == ["lion", "violin"]


def test_the_same_names_give_the_same_recognizer(saved):
    again = resolve_model(saved, ["lion", "violin|guitar"])
    assert again.fingerprint == Recognizer.load(saved).fingerprint


def test_a_template_is_for_an_encoder_only(saved):
    given = resolve_model("tiny-vit", ["lion"], template="a drawing of a {}")
    assert given.run.method.settings == {"templates": "a drawing of a {}"}
    with pytest.raises(InputError, match="whose template cannot be changed"):
        resolve_model(saved, template="ensemble")


def test_what_is_neither_folder_nor_encoder_is_told_that_both_are_taken():
    with pytest.raises(
        UnknownName, match=r"^There is no folder tiny-vitt, and 'tiny-vitt' is not the name of an"
    ):
        resolve_model("tiny-vitt", ["lion"])


def test_the_path_in_a_model_argument_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "weights.pt").touch()
    assert absolute_model_name("mine") == str(tmp_path / "mine")
    assert absolute_model_name("local-dir:mine/encoder") == f"local-dir:{tmp_path}/mine/encoder"
    assert absolute_model_name("onnx:a.onnx") == f"onnx:{tmp_path}/a.onnx"
    assert absolute_model_name("transformers:mine") == f"transformers:{tmp_path}/mine"
    assert absolute_model_name("ViT-B-16/weights.pt") == f"ViT-B-16/{tmp_path}/weights.pt"
    hub_names = ("hf-hub:owner/name", "transformers:owner/name", "timm:resnet50")
    for name in ("tiny-vit", "ViT-B-16/openai", *hub_names):
        assert absolute_model_name(name) == name
