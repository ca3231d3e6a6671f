"""Scores of another program are calibrated, fitted on, saved and indexed without an encoder."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import surelabel as sl
from surelabel.calibration import CALIBRATORS, cross_fitted_logits
from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.recognizer import Recognizer, basic_evaluation_run, index_images_with_recognizer
from surelabel.recognizer.score_calibration import CrossFittedScoreRows
from surelabel.recognizer.vector_normalization import precomputed_vectors
from surelabel.records import LabelledScores

NAMES = ["dog", "cat", "car"]
N = 60


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))


def sample(kind="logits", n=N, seed=0, views=None):
    random = np.random.default_rng(seed)
    targets = (random.random((n, 3)) < 0.4).astype(float)
    log_odds = 3 * targets - 4 + random.normal(size=(n, 3) if views is None else (views, n, 3))
    log_odds = log_odds if views is None else log_odds.transpose(1, 0, 2)
    scores = {"logits": log_odds, "probabilities": expit(log_odds), "cosines": log_odds / 50}[kind]
    paths = [f"{seed}-{row}.jpg" for row in range(n)]
    return LabelledScores(scores, kind, columns=NAMES, targets=targets, paths=paths)


def platt(kind="logits", **settings):
    recognizer = Recognizer.from_scores(kind, NAMES, **settings)
    run = replace(recognizer.run, calibrator=Choice("platt"))
    return Recognizer(run, NAMES)


def test_logits_and_probabilities_are_used_as_they_are_until_they_are_calibrated():
    for kind in ("logits", "probabilities"):
        recognizer = Recognizer.from_scores(kind, NAMES)
        predictions = recognizer.predict(sample(kind))
        assert predictions.calibration == "model"
        assert predictions.logits == pytest.approx(sample("logits").features, abs=1e-4)
    array = np.asarray(sample("probabilities").features, dtype=float)
    assert recognizer.predict(expit(array)).logits == pytest.approx(array, abs=1e-4)


def test_views_are_averaged():
    views = sample(views=4)
    logits = Recognizer.from_scores("logits", NAMES, views=4).predict(views).logits
    assert logits == pytest.approx(views.features.reshape(N, 4, 3).mean(axis=1), abs=1e-5)


def test_calibration_rows_get_the_probabilities_of_calibrators_that_never_saw_them():
    scores, recognizer = sample(), platt()
    recognizer.calibrate(scores)
    expected = cross_fitted_logits(
        CALIBRATORS["platt"],
        scores.features.astype(float),
        scores.targets,
        scores.known,
        folds=5,
        seed=0,
    )
    rows = np.random.default_rng(1).permutation(N)[:30]
    evaluation = basic_evaluation_run(recognizer, scores.take(rows))
    assert evaluation.predictions.logits == pytest.approx(expected[rows], abs=1e-4)
    assert "cross-fitted probabilities of 30 of 30 images" in evaluation.predictions.calibration
    other = sample(seed=1)
    assert basic_evaluation_run(recognizer, other).predictions.logits == pytest.approx(
        recognizer.predict(other).logits
    )
    moved = scores.with_paths([f"/elsewhere/{path}" for path in scores.paths])
    assert "60 of 60" in basic_evaluation_run(recognizer, moved).predictions.calibration
    renamed = scores.with_paths([f"x{path}" for path in scores.paths])
    assert basic_evaluation_run(recognizer, renamed).predictions.calibration == (
        "platt on 60 labelled images"
    )


def test_cosines_get_a_shared_slope_and_level_before_parameters_of_a_label():
    recognizer = Recognizer.from_scores("cosines", NAMES)
    assert recognizer.calibrated_on is None
    run = replace(recognizer.run, calibrator=Choice("vector"))
    scores = sample("cosines")
    recognizer = Recognizer(run, NAMES).calibrate(scores)
    line = CALIBRATORS["platt"]().fit(scores.features, scores.targets).state()
    assert recognizer.encoder.slope == pytest.approx(line["slope"], rel=1e-4)
    assert recognizer.encoder.level == pytest.approx(line["shift"], rel=1e-4)
    log_odds = line["slope"] * scores.features.astype(float) + line["shift"]
    expected = CALIBRATORS["vector"]().fit(log_odds, scores.targets).logits(log_odds)
    assert recognizer.predict(scores).logits == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kind", ["probabilities", "cosines"])
def test_a_saved_recognizer_gives_the_same_probabilities_for_columns_in_any_order(tmp_path, kind):
    scores = sample(kind)
    recognizer = platt(kind).calibrate(scores)
    recognizer.save(tmp_path / "r")
    again = Recognizer.load(tmp_path / "r")
    assert again.predict(scores).logits.tolist() == recognizer.predict(scores).logits.tolist()
    order = [2, 0, 1]
    values = expit(scores.features) if kind == "probabilities" else scores.features
    swapped = LabelledScores(values[:, order], kind, columns=[NAMES[i] for i in order])
    assert again.predict(swapped).logits == pytest.approx(again.predict(scores).logits, abs=1e-4)
    evaluations = [basic_evaluation_run(r, scores).predictions for r in (recognizer, again)]
    assert evaluations[0].logits.tolist() == evaluations[1].logits.tolist()
    assert evaluations[0].calibration == evaluations[1].calibration
    assert sl.operating_point(again, "precision", at_least=0.95).is_reached.any()


def test_labels_are_learned_from_the_scores_of_all_columns():
    scores = sample(n=100, views=2)
    animal = scores.with_labels(["animal"], scores.targets[:, :2].max(axis=1, keepdims=True))
    settings = {"columns": NAMES, "views": 2}
    run = Run(encoder=Choice("scores:logits", settings), method=Choice("linear"), epochs=10)
    run = replace(run, calibrator=Choice("platt"))
    recognizer = Recognizer(run, ["animal"]).fit(animal, folds=3)
    assert recognizer.encoder.is_standardized
    evaluation = basic_evaluation_run(recognizer, animal)
    assert "cross-fitted probabilities of 100 of 100 images" in evaluation.predictions.calibration
    assert evaluation.summary["average_precision"] > 0.9


def test_an_index_of_scores_needs_no_image_files(tmp_path):
    scores, recognizer = sample(), platt().calibrate(sample())
    paths = [str(tmp_path / "images" / path) for path in scores.paths]
    first = scores.with_paths(paths).take(range(50))
    update = index_images_with_recognizer(tmp_path / "index", recognizer, first)
    assert (update.added, update.index.root) == (50, str(tmp_path / "images"))
    more = scores.with_paths(paths).take(range(40, 60))
    update = index_images_with_recognizer(tmp_path / "index", recognizer, more)
    assert (update.added, update.changed, update.removed, len(update.index)) == (10, 10, 0, 60)
    best = update.index.search("dog & !cat", 1)[0]
    p = recognizer.predict(scores).probabilities
    assert best.path == paths[int((p[:, 0] * (1 - p[:, 1])).argmax())]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.full((N, 3), np.nan), "at least 20 images with known targets; got 0 for 3 labels"),
        (np.ones((N, 3)), "got 180 positive among 180 known targets"),
        (np.zeros((N, 3)), "got 0 positive among 180 known targets"),
    ],
)
@pytest.mark.parametrize("kind", ["logits", "cosines"])
def test_a_calibration_needs_labels_of_both_kinds(kind, targets, message):
    with (
        pytest.raises(InputError, match=message),
        pytest.warns(UserWarning, match="no known target")
        if np.isnan(targets).all()
        else pytest.MonkeyPatch.context(),
    ):
        platt(kind).calibrate(sample(kind).with_labels(NAMES, targets))


def test_scores_and_recognizers_of_images_are_not_mixed():
    with pytest.raises(ConfigError, match=r"Scores need a recognizer.*got the encoder features:3"):
        precomputed_vectors(load_encoder("features:3"), sample())


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"keys": np.zeros(2, np.uint64), "logits": np.zeros((2, 4), np.float32)},
        {"keys": np.zeros(1, np.uint64), "logits": np.full((1, 3), np.nan, np.float32)},
        {"keys": np.zeros(1, np.int64), "logits": np.zeros((1, 3), np.float32)},
    ],
)
def test_damaged_cross_fitted_rows_are_refused(arrays):
    with pytest.raises(DataError, match=r"Cross-fitted .*Calibrate again"):
        CrossFittedScoreRows.restore(arrays, 3)
