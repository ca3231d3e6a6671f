"""Files that earlier versions wrote load today and give the same scores, logits and hits."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from surelabel.config import load_run
from surelabel.data import collection, read_predictions
from surelabel.errors import DataError, InputError
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledFeatures
from surelabel.retrieval import Index

FROZEN = Path(__file__).parent / "0.1.0"
EXPECTED = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))
RECOGNIZERS = sorted(EXPECTED["recognizers"])
NAMES = ["lion", "guitar|drum", "car", "airplane", "cow", "coffee"]
TEST = collection("scenes-80", split="test")
CLOSE = {"rtol": 0, "atol": 1e-5}


def vectors(count, seed):
    """Return the annotated vectors of ``freeze.py``."""
    values = np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)
    return LabelledFeatures(values, ["warm", "loud"], values[:, :2] > 0.5)


def inputs_of(name):
    return vectors(8, 1) if name == "linear_vectors" else TEST.take(range(8))


@pytest.fixture(scope="module")
def arrays():
    with np.load(FROZEN / "expected.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", RECOGNIZERS)
def test_a_recognizer_predicts_as_the_version_that_saved_it(name, arrays):
    recognizer = Recognizer.load(FROZEN / "recognizers" / name)
    predictions = recognizer.predict(inputs_of(name))
    expected = EXPECTED["recognizers"][name]
    assert list(predictions.names) == expected["names"]
    assert predictions.calibration == expected["calibration"]
    assert recognizer.fingerprint == expected["fingerprint"]
    np.testing.assert_allclose(predictions.scores, arrays[f"{name}/scores"], **CLOSE)
    if f"{name}/logits" in arrays:
        np.testing.assert_allclose(predictions.logits, arrays[f"{name}/logits"], **CLOSE)
    else:
        assert predictions.logits is None


@pytest.mark.parametrize("name", RECOGNIZERS)
def test_a_recognizer_that_is_saved_again_keeps_fingerprint_and_record(name, tmp_path):
    first = Recognizer.load(FROZEN / "recognizers" / name)
    first.save(tmp_path / "saved")
    second = Recognizer.load(tmp_path / "saved")
    assert second.fingerprint == first.fingerprint
    assert (tmp_path / "saved" / "encoder").is_dir()
    record = FROZEN / "recognizers" / name / "record.safetensors"
    assert (second.calibration is not None and second.calibration.record is not None) == (
        record.exists()
    )


def change_weight(folder):
    file = folder / "weights.safetensors"
    weights = load_file(file)
    key = next(
        key for key, value in weights.items() if value.numel() and value.dtype.is_floating_point
    )
    weights[key].view(-1)[0] += 1
    save_file(weights, file)


def change_text(name, old, new):
    def change(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


CHANGES = {
    "weight": ("clip_adapter_spa", change_weight),
    "name": ("clip_adapter_spa", change_text("names.txt", "lion", "tiger")),
    "alias": ("clip_adapter_spa", change_text("names.txt", "|drum", "|violin")),
    "setting": ("tiles", change_text("run.toml", "0.3", "0.4")),
    "link": ("clip_adapter_spa", change_text("link.json", '"spa"', "null")),
    "calibration": ("zero_shot_moved", change_text("calibration.json", "0.3618", "0.3619")),
    "shift": ("zero_shot_moved", change_text("calibration.json", "0.4869", "0.4868")),
}


@pytest.mark.parametrize("is_saved_again", [False, True])
@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_folder_is_refused_whichever_version_wrote_it(what, is_saved_again, tmp_path):
    name, change = CHANGES[what]
    folder = tmp_path / "recognizer"
    if is_saved_again:
        Recognizer.load(FROZEN / "recognizers" / name).save(folder)
    else:
        shutil.copytree(FROZEN / "recognizers" / name, folder)
    Recognizer.load(folder)
    change(folder)
    with pytest.raises(DataError, match="changed after saving"):
        Recognizer.load(folder)


@pytest.mark.parametrize("query", EXPECTED["hits"])
def test_an_index_gives_the_same_hits(query):
    hits = Index.open(FROZEN / "index").search(query, k=10)
    expected = EXPECTED["hits"][query]
    assert [hit.path for hit in hits] == [path for path, _ in expected]
    np.testing.assert_allclose([hit.probability for hit in hits], [p for _, p in expected], **CLOSE)


@pytest.fixture
def index(tmp_path):
    shutil.copytree(FROZEN / "index", tmp_path / "index")
    return Index.open(tmp_path / "index")


@pytest.mark.parametrize("is_loaded", [False, True])
def test_an_index_takes_new_images_of_the_same_recognizer(index, is_loaded):
    recognizer = (
        Recognizer.load(FROZEN / "recognizers" / "zero_shot")
        if is_loaded
        else Recognizer.zero_shot("tiny-vit", NAMES)
    )
    index.add(recognizer.predict(TEST.take(range(40, 44))))
    assert len(index) == 44


def test_an_index_refuses_images_of_another_recognizer(index):
    other = Recognizer.load(FROZEN / "recognizers" / "zero_shot_moved")
    with pytest.raises(InputError, match=r"Predictions must have the .* of the index"):
        index.add(other.predict(TEST.take(range(40, 44))))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_predictions_are_read(suffix):
    predictions = read_predictions(FROZEN / f"predictions.{suffix}")
    with np.load(FROZEN / "predictions.npz") as expected:
        np.testing.assert_allclose(predictions.scores, expected["scores"], **CLOSE)
        np.testing.assert_allclose(predictions.logits, expected["logits"], **CLOSE)


def test_a_run_file_is_read_with_all_its_settings():
    run = load_run(FROZEN / "run.toml")
    assert (run.encoder.name, run.batch_size, run.micro_batch_size) == ("tiny-rn", 32, 16)
    assert (run.ema_decay, run.warm_up, run.seed) == (0.9, 0.1, 3)
    assert run.method.settings == {"image_size": 48, "decoder_learning_rate_scale": 2.0}
    assert run.teacher.name == "standardized"
    assert run.teacher.settings == {"domain": "standardized", "pairs_per_label": 5}
    assert run.pseudolabels.settings == {"image_weight": 0.3}
    assert run.sewing.name == "cut_and_sew"
    assert run.sewing.settings == {"max_overlays": 2, "strong_view_weight": 0.5}
    assert run.regularizer.settings == {"min_images": 5}
    assert run.calibrator.settings == {"shrinkage": 2.0}


def test_a_training_checkpoint_is_refused_with_what_to_do(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    shutil.copy(FROZEN / "checkpoint", checkpoint)
    run = load_run(overrides=["encoder.name=features:16", "method.name=linear", "epochs=4"])
    recognizer = Recognizer(run, ["warm", "loud"])
    with pytest.raises(DataError, match=r"start the fit again") as refused:
        recognizer.fit(vectors(40, 0), checkpoint=checkpoint)
    assert "\n" not in str(refused.value)
