import json

import numpy as np
import pytest

import surelabel as sl
from surelabel.errors import ConfigError, InputError
from surelabel.recognizer import Recognizer, method_candidates, method_selection
from surelabel.records import LabelledFeatures

NAMES = ["lion", "guitar", "car"]
METHODS = ["tiles", "dense_regions", "standardized", "zero_shot", "linear", "clip_adapter"]
FAST = {"model": "tiny-rn", "folds": 2}
FAST |= {"settings": ["epochs=3", "batch_size=8", "learning_rate=0.05"]}
PLATT = {"settings": [*FAST["settings"], "calibrator.name=platt"]}  # quicker than the default


@pytest.fixture(scope="module")
def vectors():
    """Return vectors of which the first values are the targets, unlike vectors of the encoder."""
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 128)) / 8
    targets = (random.random((60, 3)) < 0.4).astype(float)
    features[:, :3] += 4 * targets
    return LabelledFeatures(features.astype(np.float32), NAMES, targets)


@pytest.fixture(scope="module")
def selected(vectors, tmp_path_factory):
    """Return a recognizer that was selected among methods, its checkpoint and sentences."""
    checkpoint, sentences = tmp_path_factory.mktemp("selected") / "fit", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method_selection, "selectable_methods", lambda: METHODS)
        recognizer = sl.select_method(
            vectors, **FAST, max_passes=10, checkpoint=checkpoint, describe=sentences.append
        )
    return recognizer, checkpoint, sentences


@pytest.fixture
def two_methods(monkeypatch):
    """Compare two methods only, to save time."""
    monkeypatch.setattr(method_selection, "selectable_methods", lambda: ["zero_shot", "linear"])


@pytest.fixture(scope="module")
def images():
    return sl.collection("scenes-80", split="test").take(range(8))


def test_the_method_with_the_lowest_log_loss_is_fitted_on_all_images_and_calibrated(
    vectors, selected
):
    recognizer, _, sentences = selected
    selection = recognizer.selection
    losses = [result.log_loss for result in selection.results]
    assert losses == sorted(losses)
    assert {result.method for result in selection.results} == set(METHODS[2:])
    assert recognizer.run.method.name == selection.selected.method
    assert recognizer.method.learns_from == "labels"  # the texts do not match these vectors
    about = "beta (selected by log loss) on 60 labelled images (2-fold cross-validation)"
    assert recognizer.calibrated_on == about
    again = Recognizer(recognizer.run, NAMES).fit(vectors, folds=2)
    assert again.fingerprint == recognizer.fingerprint
    assert (selection.n_images, selection.folds) == (60, 2)
    assert sentences[0].startswith("Comparing 4 methods with 2 folds on 60 images takes about ")


def test_a_method_that_cannot_be_compared_is_left_out_with_its_reason(selected):
    left_out = selected[0].selection.left_out
    assert left_out["tiles"] == "needs 14 encoder passes, more than the maximum of 10"
    assert left_out["dense_regions"].startswith("dense_regions requires images")
    assert len(left_out) == 2


def test_a_method_whose_comparison_takes_too_long_is_left_out(vectors, two_methods, monkeypatch):
    def slow_linear(recognizer, *arguments, cost=method_candidates._expected_cost):
        is_linear = recognizer.run.method.name == "linear"
        return (7200.0, 0.0) if is_linear else cost(recognizer, *arguments)

    monkeypatch.setattr(method_candidates, "_expected_cost", slow_linear)
    selection = sl.select_method(vectors, **(FAST | PLATT)).selection
    assert selection.left_out == {
        "linear": "takes about 120 minutes, more than the maximum of 5 minutes"
    }
    assert {result.method for result in selection.results} == {"zero_shot"}
    assert selection.description.endswith(
        "Left out: linear (takes about 120 minutes, more than the maximum of 5 minutes)."
    )
    with pytest.raises(ConfigError, match=r"left out \(.*maximum of 1e-09 minutes.* --minutes"):
        sl.select_method(vectors, **FAST, minutes=1e-9)


def test_the_shipped_calibration_is_compared(images, two_methods):
    recognizer = sl.select_method(images, **FAST)
    shipped = recognizer.selection.results[0]
    assert (shipped.method, shipped.calibration) == ("zero_shot", "shipped with the encoder")
    zero_shot = Recognizer.zero_shot("tiny-rn", images.names)
    assert recognizer.fingerprint == zero_shot.fingerprint
    logits = zero_shot.predict(images).logits.astype(float)
    loss = np.logaddexp(0, logits) - zero_shot.align_labels(images).targets * logits
    assert shipped.log_loss == pytest.approx(loss.mean(), rel=1e-4)


def test_the_fits_of_all_folds_are_stored_until_the_recognizer_is_saved(
    vectors, selected, tmp_path, two_methods
):
    names = {path.name for path in selected[1].parent.iterdir()}
    assert {"fit", "fit.fold-linear.fold-1-of-2", "fit.fold-clip_adapter.fold-2-of-2"} <= names
    recognizer = sl.select_method(vectors, **(FAST | PLATT), checkpoint=tmp_path / "fit")
    again = sl.select_method(vectors, **(FAST | PLATT), checkpoint=tmp_path / "fit")
    assert again.fingerprint == recognizer.fingerprint
    again.save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_the_results_are_saved_with_the_recognizer(vectors, selected, tmp_path):
    recognizer, _, _ = selected
    recognizer.save(tmp_path / "saved")
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.selection == recognizer.selection
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "## Model selection" in card
    assert f"| {recognizer.selection.selected.method} | beta, 2 folds | 1 |" in card
    assert loaded.fit(vectors).selection is None


def test_if_no_trained_method_is_selected_the_checkpoints_are_deleted(tmp_path, two_methods):
    texts = Recognizer.zero_shot("tiny-rn", NAMES).method.text_scorer.texts.numpy()
    targets = np.eye(3)[np.arange(9) % 3]
    features = LabelledFeatures(targets @ texts, NAMES, targets)
    recognizer = sl.select_method(features, **FAST, checkpoint=tmp_path / "fit")
    assert recognizer.run.method.name == "zero_shot"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_passes": 0},
            "max_passes must be 1 or more, because each image is encoded at least once; got 0",
        ),
        ({"minutes": 0}, "minutes must be positive and finite; got 0"),
        ({"folds": 61}, "folds must be at most the number of images"),
        ({"settings": ["method.name=linear"]}, r"got method\.name=linear\. Choose a method"),
        ({"settings": ["method.ratio=0.3"]}, r"default settings; got method\.ratio=0\.3"),
        ({"settings": ["loss.gamma=1"]}, "binary has no setting gamma"),
    ],
)
def test_options_out_of_range_are_refused_before_the_comparison(vectors, options, message):
    with pytest.raises((InputError, ConfigError), match=message):
        sl.select_method(vectors, **(FAST | options))


def test_images_without_contrast_and_without_labels_are_refused(vectors, images):
    negative = LabelledFeatures(vectors.features, NAMES, np.zeros((60, 3)))
    with pytest.raises(InputError, match="got no positive target in 60 images"):
        sl.select_method(negative, **FAST)
    with pytest.raises(InputError, match="requires annotated images; got 8 images without labels"):
        sl.select_method(images.paths, **FAST)


def test_a_damaged_table_of_results_is_refused(selected, tmp_path):
    selected[0].save(tmp_path / "saved")
    for state in ({}, {"results": []}, {"results": [{"method": 3}], "left_out": {}}):
        (tmp_path / "saved" / "selection.json").write_text(json.dumps(state))
        with pytest.raises(sl.SurelabelError, match=r"selection\.json must contain the results"):
            Recognizer.load(tmp_path / "saved")
