"""Loading: an incomplete, damaged or changed folder is refused."""

import json
import os
import shutil

import pytest
from safetensors.numpy import load_file, save_file

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.errors import DataError
from surelabel.recognizer import Recognizer
from surelabel.recognizer.loading import REQUIRED_FILES

NAMES = ["lion", "guitar|drum", "car"]
FILES = ["run.toml", "names.txt", "link.json", "calibration.json", "weights.safetensors"]


@pytest.fixture(scope="module")
def recognizer():
    train = collection("scenes-80", split="train").take(range(80))
    run = load_run(overrides=["method.name=clip_adapter", "loss.name=asymmetric", "epochs=2"])
    return Recognizer(run, NAMES).fit(train).calibrate(train)


@pytest.fixture
def saved(recognizer, tmp_path):
    recognizer.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_what_was_saved_before_there_was_averaging_is_loaded(recognizer, saved):
    text = (saved / "run.toml").read_text()
    older = text.replace("warm_up = 0.0\nema_decay = 0.0\n", "")
    assert older != text
    (saved / "run.toml").write_text(older)
    assert Recognizer.load(saved).fingerprint == recognizer.fingerprint


@pytest.mark.parametrize("part", REQUIRED_FILES)
def test_a_missing_part_is_named(saved, part):
    target = saved / part
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    with pytest.raises(
        DataError, match=rf"complete saved recognizer; the folder does not contain {part}"
    ):
        Recognizer.load(saved)


@pytest.mark.parametrize("part", ["weights.safetensors", "calibration.json", "about.json"])
def test_a_truncated_part_is_named(saved, part):
    content = (saved / part).read_bytes()
    (saved / part).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"{part} is damaged"):
        Recognizer.load(saved)


def test_a_newer_format_is_refused(saved):
    about = json.loads((saved / "about.json").read_text())
    (saved / "about.json").write_text(json.dumps(about | {"format": 99, "surelabel": "9.0"}))
    with pytest.raises(DataError, match=r"format 99 of surelabel 9\.0"):
        Recognizer.load(saved)


@pytest.mark.parametrize(
    ("part", "content", "says"),
    [
        ("about.json", '{"format": null}', "about.json must be an integer"),
        ("calibration.json", '{"calibrator": "gamma", "state": {}, "about": ""}', "gamma"),
        ("link.json", "{}", "changed after saving"),
        ("run.toml", '[method]\nname = "clip_adapter"\n', "must be the loss of run.toml, binary"),
    ],
)
def test_what_reads_well_and_is_wrong_is_refused(saved, part, content, says):
    (saved / part).write_text(content)
    with pytest.raises(DataError, match=says):
        Recognizer.load(saved)


def test_a_valid_record_with_other_numbers_is_refused(saved):
    assert (saved / "record.safetensors").exists()
    arrays = load_file(saved / "record.safetensors")
    better = {"false_discovery_sum": arrays["false_discovery_sum"] / 2}
    save_file(arrays | better, saved / "record.safetensors")
    with pytest.raises(DataError, match=r"checksums of .*record\.safetensors must equal"):
        Recognizer.load(saved)


def test_a_changed_description_of_the_calibration_is_refused(saved):
    stored = json.loads((saved / "calibration.json").read_text())
    text = json.dumps(stored | {"about": "platt on 1000000 labelled images"})
    (saved / "calibration.json").write_text(text)
    with pytest.raises(DataError, match=r"checksums of .*calibration\.json must equal"):
        Recognizer.load(saved)


def test_a_saved_run_names_no_file_of_prompt_templates(tmp_path):
    Recognizer.zero_shot("tiny-vit", ["lion"]).save(tmp_path / "saved")
    (tmp_path / "secret.txt").write_text("a {} here\n")
    run = tmp_path / "saved" / "run.toml"
    templates = f'[method]\ntemplates = "{tmp_path / "secret.txt"}"'
    run.write_text(run.read_text().replace("[method]", templates))
    with pytest.raises(DataError, match=r"templates in .*run\.toml must be one of .*secret\.txt"):
        Recognizer.load(tmp_path / "saved")


def test_a_saved_run_names_no_file_of_words(saved, tmp_path):
    run = saved / "run.toml"
    regularizer = f'[regularizer]\nname = "outlier"\nwords = "{tmp_path / "secret.txt"}"\n'
    run.write_text(run.read_text() + regularizer)
    with pytest.raises(DataError, match=r"words in .*run\.toml must be a list .*secret\.txt"):
        Recognizer.load(saved)


def test_the_encoder_that_a_saved_run_names_is_not_opened(tmp_path):
    Recognizer.zero_shot("tiny-vit", ["lion"]).save(tmp_path / "saved")
    run = tmp_path / "saved" / "run.toml"
    run.write_text(run.read_text().replace('"tiny-vit"', '"local-dir:/no/such/folder"'))
    assert Recognizer.load(tmp_path / "saved").encoder.name == "tiny-vit"


def test_changed_names_are_noticed(saved):
    (saved / "names.txt").write_text("lion\ncrab\ncar\n")
    with pytest.raises(DataError, match="changed after saving"):
        Recognizer.load(saved)


@pytest.mark.parametrize("loss", ["spa", "none", ["asymmetric"], 5])
def test_the_link_of_another_loss_is_refused(saved, loss):
    (saved / "link.json").write_text(json.dumps({"loss": loss}))
    with pytest.raises(DataError, match=r"link\.json must be the loss of run\.toml, asymmetric"):
        Recognizer.load(saved)


def test_the_shift_of_other_labels_is_refused(saved):
    found = json.loads((saved / "calibration.json").read_text())
    (saved / "calibration.json").write_text(json.dumps(found | {"shift": [1.0]}))
    with pytest.raises(DataError, match=r"calibration\.json must contain 3 labels.* got 1"):
        Recognizer.load(saved)


def test_a_part_that_is_nested_without_end_is_damaged(saved):
    (saved / "calibration.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"calibration\.json is damaged"):
        Recognizer.load(saved)


@pytest.mark.parametrize("part", [*FILES, "about.json"])
def test_a_named_pipe_in_place_of_a_file_is_refused_without_waiting(saved, part):
    (saved / part).unlink()
    os.mkfifo(saved / part)
    with pytest.raises(DataError, match=rf"{part} cannot be read: .* got a named pipe\."):
        Recognizer.load(saved)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"loss": ' + "1" * 5000 + "}", "a number with more than 4300 digits"),
        ('{"loss": "spa", "loss": null}', "an object that contains the key 'loss' twice"),
    ],
)
def test_a_hostile_part_is_refused_on_one_line(saved, text, reason):
    (saved / "link.json").write_text(text)
    with pytest.raises(DataError, match=rf"link\.json is damaged: {reason}\. Copy the complete"):
        Recognizer.load(saved)
