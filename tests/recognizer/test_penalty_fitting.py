import time

import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.losses import binary
from surelabel.methods import Linear
from surelabel.recognizer import Recognizer, penalty_fitting
from surelabel.recognizer.penalty_fitting import (
    expected_penalty_fit_seconds,
    penalties_description,
)
from surelabel.records import LabelledFeatures
from surelabel.training.penalty_selection import PENALTIES

NAMES = ["warm", "loud"]


def vectors(n=60, seed=0):
    """Return annotated vectors; the first column predicts the first label, with errors."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 6)) + 3
    targets = values[:, :2] + rng.normal(size=(n, 2)) > 3
    return LabelledFeatures(values, NAMES, targets)


def recognizer(*settings, method="linear"):
    run = load_run(None, ["encoder.name=features:6", f"method.name={method}", *settings])
    return Recognizer(run, NAMES)


def test_a_fit_chooses_a_penalty_for_each_label_and_states_it():
    fitted = recognizer().fit(vectors())
    assert all(np.isclose(PENALTIES, p).any() for p in fitted.method.penalties.tolist())
    text = penalties_description(fitted.run, fitted.method.state_dict())
    assert text.startswith("penalty per label from ")
    assert text.endswith("chosen by 5-fold cross-validation")


TRAINING = {
    "epochs": 3,
    "weight_decay": 0.5,
    "learning_rate": 0.01,
    "optimizer.name": "sgd",
    "warm_up": 0.1,
    "batch_size": 8,
    "ema_decay": 0.5,
    "regularizer.name": "mdca",
    "loss.name": "two_way",
}


@pytest.mark.parametrize("key", TRAINING)
def test_a_run_that_states_training_uses_the_training_loop(key):
    linear = recognizer(f"{key}={TRAINING[key]}")
    assert linear.run.method.settings["penalty_folds"] == 0
    assert linear.method.penalties is None
    assert penalties_description(linear.run, linear.fit(vectors()).method.state_dict()) is None


@pytest.mark.parametrize("setting", ["regularizer.name=mdca", "loss.name=two_way"])
def test_penalty_folds_are_refused_with_terms_of_batches(setting):
    linear = recognizer(setting, "method.penalty_folds=5")
    with pytest.raises(ConfigError, match=r"penalty_folds must be 0 with .* Remove"):
        linear.fit(vectors())


def test_two_fits_with_the_same_seed_are_equal():
    first, second = (recognizer().fit(vectors()) for _ in range(2))
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize("n", [2, 3, 4])
def test_fewer_rows_than_folds_are_enough(n):
    rows = LabelledFeatures(vectors(n).features, NAMES, [[1, 0]] + [[0, 1]] * (n - 1))
    probabilities = recognizer().fit(rows).predict(rows).probabilities
    assert np.isfinite(probabilities).all()


def test_one_known_row_gives_probabilities_near_its_targets():
    targets = np.full((4, 2), np.nan)
    targets[0] = [1, 0]
    rows = LabelledFeatures(vectors(4).features, NAMES, targets)
    with pytest.warns(UserWarning, match="no positive image|Only 1 training"):
        probabilities = recognizer().fit(rows).predict(rows).probabilities
    np.testing.assert_allclose(probabilities, [[0.75, 0.25]] * 4, atol=1e-6)


def test_a_label_without_positives_or_known_targets_keeps_a_finite_prevalence():
    targets = vectors().targets.astype(float)
    targets[:, 1] = 0
    rows = LabelledFeatures(vectors().features, NAMES, targets)
    with pytest.warns(UserWarning, match="no positive image"):
        probabilities = recognizer().fit(rows).predict(rows).probabilities
    np.testing.assert_allclose(probabilities[:, 1], 0.5 / 61, atol=1e-6)
    targets[:, 1] = np.nan
    rows = LabelledFeatures(vectors().features, NAMES, targets)
    with pytest.warns(UserWarning, match="no known target"):
        probabilities = recognizer().fit(rows).predict(rows).probabilities
    np.testing.assert_allclose(probabilities[:, 1], 0.5, atol=1e-6)


def test_a_saved_recognizer_states_its_settings_and_loads(tmp_path):
    fitted = recognizer().fit(vectors(30))
    fitted.save(tmp_path / "saved")
    text = (tmp_path / "saved" / "run.toml").read_text(encoding="utf-8")
    assert "centred = true" in text
    assert "penalty_folds = 5" in text
    assert "| regularization | penalty" in (tmp_path / "saved/README.md").read_text("utf-8")
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.fingerprint == fitted.fingerprint
    expected = fitted.predict(vectors().features).probabilities
    np.testing.assert_array_equal(loaded.predict(vectors().features).probabilities, expected)


def test_a_fit_resumes_from_its_checkpoint(tmp_path):
    first = recognizer().fit(vectors(30), folds=2, checkpoint=tmp_path / "fit")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["fit"] + [f"fit.fold-{k}-of-2" for k in (1, 2)]
    again = recognizer().fit(vectors(30), folds=2, checkpoint=tmp_path / "fit")
    assert again.fingerprint == first.fingerprint


def test_at_most_5000_images_choose_the_penalty(monkeypatch):
    sizes, original = [], penalty_fitting.select_penalties

    def recording(values, *args, **settings):
        sizes.append(len(values))
        return original(values, *args, **settings)

    monkeypatch.setattr(penalty_fitting, "select_penalties", recording)
    recognizer().fit(vectors(penalty_fitting.MAX_SELECTION_IMAGES + 300))
    assert sizes == [penalty_fitting.MAX_SELECTION_IMAGES]


def test_blocks_of_labels_are_fitted_like_all_labels_and_reported(monkeypatch):
    together = recognizer().fit(vectors())
    monkeypatch.setattr(penalty_fitting, "LABELS_PER_BLOCK", 1)
    calls = []
    blocks = recognizer().fit(vectors(), progress=lambda *call: calls.append(call))
    assert calls[-2:] == [(1, 2), (2, 2)]
    np.testing.assert_allclose(blocks.method.penalties, together.method.penalties)
    expected = together.predict(vectors().features).probabilities
    actual = blocks.predict(vectors().features).probabilities
    np.testing.assert_allclose(actual, expected, atol=2e-3)


def test_the_expected_time_grows_with_the_images_and_covers_a_fit():
    settings = {"folds": 5, "loss": binary, "link": Sigmoid()}
    few, many = (expected_penalty_fit_seconds(6, 2, n, **settings) for n in (100, 100_000))
    assert 0 < few < many
    start = time.perf_counter()
    recognizer().fit(vectors())
    assert few > (time.perf_counter() - start) / 100


def test_the_method_refuses_one_fold():
    with pytest.raises(ConfigError, match="must be 0 or at least 2; got 1"):
        Linear(recognizer().encoder, NAMES, penalty_folds=1)


def test_a_folder_without_the_settings_loads_as_not_centred_with_its_fingerprint(tmp_path):
    fitted = recognizer("method.centred=false", "method.penalty_folds=0").fit(vectors(30))
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "run.toml"
    text = file.read_text(encoding="utf-8")
    older = text.replace("centred = false\npenalty_folds = 0\n", "")
    assert older != text
    file.write_text(older, encoding="utf-8")
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.method.mean is None
    assert loaded.method.penalties is None
    assert loaded.fingerprint == fitted.fingerprint
    expected = fitted.predict(vectors().features).probabilities
    np.testing.assert_array_equal(loaded.predict(vectors().features).probabilities, expected)
