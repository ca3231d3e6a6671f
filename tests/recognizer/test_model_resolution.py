from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

from surelabel.config import load_run
from surelabel.errors import ConfigError, DataError, InputError, UnknownName
from surelabel.recognizer import Recognizer, resolve_model
from surelabel.recognizer.model_resolution import absolute_model_name
from surelabel.records import LabelledImages


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


@pytest.fixture
def images(tmp_path):
    """Write 24 images of one colour each, and return them with labels that are mostly right."""
    rng = np.random.default_rng(0)
    colours, paths = rng.integers(0, 256, (24, 3)), []
    for row, colour in enumerate(colours):
        paths.append(str(tmp_path / f"{row}.png"))
        Image.new("RGB", (20, 30), tuple(colour.tolist())).save(paths[-1])
    targets = ((colours > 128) ^ (rng.random((24, 3)) < 0.2)).astype(float)
    logits = 9 * (colours / 127.5 - 1)
    return LabelledImages(paths, ["red", "green", "blue"], targets), logits


FORMATS = ("tagger.onnx", "tagger.xml")


@pytest.mark.parametrize("name", FORMATS)
def test_an_exported_file_has_its_labels_logits_and_thresholds(exported_file, images, name):
    labelled, logits = images
    recognizer = resolve_model(str(exported_file(name)), default_names=["bear"])
    predictions = recognizer.predict(labelled)
    assert recognizer.names_with_aliases == ["red", "green", "sea|blue"]
    np.testing.assert_allclose(predictions.logits, logits, atol=1e-4)
    np.testing.assert_allclose(predictions.probabilities, expit(logits), atol=1e-5)
    assert predictions.calibration == recognizer.calibrated_on == "platt on 99 labelled images"
    assert recognizer.default_thresholds.tolist() == [0.3, 0.5, 0.9]
    assert Recognizer.zero_shot("tiny-vit", ["lion"]).default_thresholds is None


def test_some_labels_of_an_exported_file_can_be_chosen(exported_file, images):
    labelled, logits = images
    recognizer = resolve_model(str(exported_file()), ["Blue", "red"])
    found = recognizer.predict(labelled)
    assert found.names == ["Blue", "red"]
    np.testing.assert_allclose(found.logits, logits[:, [2, 0]], atol=1e-4)
    assert recognizer.default_thresholds.tolist() == [0.9, 0.3]
    with pytest.raises(ConfigError, match=r"only the 3 labels of the export; got dog, cat"):
        resolve_model(str(exported_file()), ["red", "dog", "cat"])


def test_the_outputs_of_an_uncalibrated_recognizer_are_scores(exported_file, images):
    labelled, logits = images
    values = {"output": "scores", "output_name": "scores"}
    file = exported_file(**values, calibrated_on=None, thresholds=None)
    recognizer = resolve_model(str(file))
    predictions = recognizer.predict(labelled)
    assert predictions.logits is recognizer.calibrated_on is recognizer.default_thresholds is None
    np.testing.assert_allclose(predictions.scores, logits, atol=1e-4)
    recognizer.calibrate(labelled)
    assert recognizer.predict(labelled).probabilities.shape == (24, 3)


@pytest.mark.parametrize("name", FORMATS)
def test_a_calibrated_exported_file_is_saved_with_a_copy_of_it(
    exported_file, images, tmp_path, name
):
    labelled, _ = images
    file = exported_file(name)
    recognizer = resolve_model(str(file), settings=["calibrator.name=platt"])
    as_exported = recognizer.predict(labelled)
    recognizer.save(tmp_path / "as_exported")
    recognizer.calibrate(labelled).save(tmp_path / "saved")
    for copied in recognizer.encoder.graph.files:
        copied.unlink()
    saved = Recognizer.load(tmp_path / "saved")
    assert saved.calibrated_on == "platt on 24 labelled images"
    assert saved.default_thresholds is None
    assert saved.fingerprint == recognizer.fingerprint
    found = saved.predict(labelled)
    assert np.array_equal(found.logits, recognizer.predict(labelled).logits)
    slope, shift = np.polyfit(as_exported.logits.ravel(), found.logits.ravel(), 1)
    np.testing.assert_allclose(slope * as_exported.logits + shift, found.logits, atol=1e-3)
    assert abs(slope - 1) > 0.1
    again = Recognizer.load(tmp_path / "as_exported")
    assert (again.calibrated_on, again.fingerprint) == (as_exported.calibration, as_exported.model)
    assert again.default_thresholds.tolist() == [0.3, 0.5, 0.9]


def test_a_saved_exported_file_that_was_changed_is_refused(exported_file, tmp_path):
    resolve_model(str(exported_file())).save(tmp_path / "saved")
    other = exported_file("other.onnx", thresholds=[0.0, 0.0, 0.0])
    other.replace(tmp_path / "saved" / "encoder" / "exported" / "tagger.onnx")
    with pytest.raises(DataError, match="fingerprint"):
        Recognizer.load(tmp_path / "saved")


def test_an_exported_file_is_not_fitted_and_takes_no_method(exported_file, images):
    file, (labelled, _) = str(exported_file()), images
    recognizer = resolve_model(file)
    with pytest.raises(ConfigError, match="is an exported recognizer, whose encoder and labels"):
        recognizer.fit(labelled)
    with pytest.raises(ConfigError, match=r"calibration without labels requires .* text encoder"):
        recognizer.calibrate(labelled.paths)
    for argument in ({"template": "one"}, {"settings": ["method.name=tiles"]}, {"max_passes": 2}):
        with pytest.raises(
            InputError, match=r"got the exported file .*, whose .* cannot be changed"
        ):
            resolve_model(file, **argument)
    with pytest.raises(ConfigError, match=r"got the file .* give its file as the model"):
        Recognizer(load_run(overrides=[f"encoder.name={file}", "method.name=linear"]), ["red"])


def test_other_files_than_exported_ones_are_refused_with_a_hint(exported_file, tmp_path):
    with pytest.raises(ConfigError, match=r"Give onnx:.*plain\.onnx if the file contains an image"):
        resolve_model(str(exported_file("plain.onnx", metadata="")), ["red"])
    with pytest.raises(DataError, match=r"nothing\.onnx cannot be read"):
        resolve_model(str(tmp_path / "nothing.onnx"), ["red"])
    (tmp_path / "tagger.pt2").touch()
    with pytest.raises(ConfigError, match=r"\.pt2 files with pickle, which can execute code"):
        resolve_model(str(tmp_path / "tagger.pt2"))
    names = ["red", "green|GREEN", "sea"]
    with pytest.raises(DataError, match=r"labels of .*tagger\.onnx are not valid\. .*GREEN"):
        resolve_model(str(exported_file(names_with_aliases=names)))


def test_the_path_of_an_exported_file_becomes_absolute(exported_file, tmp_path, monkeypatch):
    exported_file()
    monkeypatch.chdir(tmp_path)
    assert absolute_model_name("tagger.onnx") == str(tmp_path / "tagger.onnx")
