import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

import surelabel as sl
from surelabel.calibration import isotonic_logits
from surelabel.config import load_run
from surelabel.errors import DataError, InputError
from surelabel.metrics import brier_skill, ece, log_loss
from surelabel.recognizer import Recognizer, resolve_model, select_method
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.records import LabelledFeatures, LabelTree

NAMES = ["dog", "animal", "cat", "sky"]
TREE = LabelTree({"dog": "animal", "cat": "animal"})
PARENTS = np.array([1, -1, 1, -1])
SETTINGS = ["encoder.name=features:8", "method.name=linear", "epochs=3", "calibrator.name=vector"]


def rows(n=120, seed=0):
    """Vectors with dogs, cats and sky; an animal is a dog, a cat or something else."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    targets = (features[:, :4] + rng.normal(size=(n, 4)) > 1).astype(float)
    targets[:, 1] = np.maximum(targets[:, 1], targets[:, [0, 2]].max(axis=1))
    return LabelledFeatures(features, NAMES, targets)


def assert_recalibration_keeps_the_order(fitted):
    data = rows(100, seed=5)
    before = fitted.predict(data)
    known, keys = np.ones((100, 4), bool), np.arange(100, dtype=np.uint64)
    fitted.apply_recalibration(0.5, -1.0, before.logits * 0.5 - 1, data.targets, known, keys=keys)
    after = fitted.predict(data)
    assert is_ordered(after)
    np.testing.assert_allclose(after.logits, 0.5 * before.logits - 1, atol=1e-5)


def is_ordered(predictions):
    logits = predictions.logits
    return bool((logits[:, [1]] >= logits[:, [0, 2]]).all())


def recognizer(tree=TREE, *settings):
    run = load_run(overrides=[*SETTINGS, *settings])
    return Recognizer(run, NAMES, label_tree=tree).fit(rows())


@pytest.fixture(scope="module")
def calibrated():
    """A recognizer that tests only read."""
    return recognizer().calibrate(rows(seed=1))


def test_no_label_is_more_probable_than_its_parent(calibrated):
    flat = recognizer(None).calibrate(rows(seed=1)).predict(rows(300, seed=2))
    predictions = calibrated.predict(rows(300, seed=2))
    assert not is_ordered(flat)
    assert is_ordered(predictions)
    np.testing.assert_allclose(predictions.logits, isotonic_logits(flat.logits, PARENTS), atol=1e-5)
    np.testing.assert_array_equal(predictions.logits[:, 3], flat.logits[:, 3])
    np.testing.assert_allclose(predictions.probabilities, expit(predictions.logits), rtol=1e-6)


def test_targets_that_follow_from_the_tree_are_used():
    complete, partial = rows(), rows()
    targets = complete.targets.copy()
    targets[targets[:, [0, 2]].max(axis=1) == 1, 1] = np.nan  # the tree implies these animals
    targets[targets[:, 1] == 0, 0] = np.nan  # and that these are no dogs
    partial = LabelledFeatures(complete.features, NAMES, targets)
    run = load_run(overrides=SETTINGS)
    first, second = (
        Recognizer(run, NAMES, label_tree=TREE).fit(data).calibrate(data)
        for data in (complete, partial)
    )
    assert first.fingerprint == second.fingerprint
    assert first.align_labels(partial).known.all()


def test_contradicting_annotations_are_refused_with_the_image():
    data = rows()
    targets = data.targets.copy()
    targets[7, :2] = 1, 0
    wrong = LabelledFeatures(data.features, NAMES, targets)
    with pytest.raises(DataError, match=r"row 7: a positive label must not .* 'dog' positive"):
        Recognizer(load_run(overrides=SETTINGS), NAMES, label_tree=TREE).fit(wrong)


def test_the_validation_record_counts_projected_probabilities():
    flat, tree = (recognizer(t).calibrate(rows(seed=1)).calibration for t in (None, TREE))
    animal, dog = tree.record.predicted_positives[[1, 0]]
    assert (animal >= dog).all()
    assert (tree.record.predicted_positives[3] == flat.record.predicted_positives[3]).all()
    assert (tree.record.predicted_positives[1] != flat.record.predicted_positives[1]).any()


def test_metrics_are_those_of_cross_fitted_probabilities():
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(40, 4)), rng.integers(0, 2, (40, 4)).astype(float)
    known = rng.random((40, 4)) < 0.8
    projection = LabelTreeProjection.of_labels(TREE, NAMES).measured(logits, targets, known)
    before, after = expit(logits), expit(isotonic_logits(logits, PARENTS))
    for name, metric in {"log_loss": log_loss, "brier_skill": brier_skill, "ece": ece}.items():
        for found, columns in ((projection.leaves, [0, 2]), (projection.parents, [1])):
            group = targets[:, columns], known[:, columns]
            expected = metric(before[:, columns], *group), metric(after[:, columns], *group)
            assert found[name] == pytest.approx(expected)


def test_a_calibration_by_folds_or_without_labels_is_projected_too(calibrated):
    by_folds = Recognizer(load_run(overrides=SETTINGS), NAMES, label_tree=TREE)
    by_folds.fit(rows(), folds=3)
    assert is_ordered(by_folds.predict(rows(100, seed=2)))
    assert set(by_folds.calibration.tree.leaves) == {"log_loss", "brier_skill", "ece"}


def test_a_shift_and_a_recalibration_keep_the_order(calibrated):
    other = Recognizer(load_run(overrides=SETTINGS), NAMES, label_tree=TREE)
    other.fit(rows()).calibrate(rows(seed=1)).adapt_to_shift(rows(200, seed=4))
    assert is_ordered(other.predict(rows(100, seed=5)))
    assert other.calibration.tree.leaves == {}
    assert_recalibration_keeps_the_order(other)


def test_a_saved_recognizer_keeps_its_tree(calibrated, tmp_path):
    calibrated.save(tmp_path / "saved")
    assert (tmp_path / "saved/label_tree.txt").read_text() == "animal > dog\nanimal > cat\n"
    assert (
        "2 labels have parents, such as animal > dog" in (tmp_path / "saved/README.md").read_text()
    )
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.label_tree == TREE
    assert loaded.calibration.tree == calibrated.calibration.tree
    test = rows(50, seed=2)
    np.testing.assert_array_equal(loaded.predict(test).logits, calibrated.predict(test).logits)


@pytest.mark.parametrize("text", ["animal > dog\n", "animal > lion\n", "animal > animal\n", None])
def test_a_saved_tree_that_does_not_match_is_refused(calibrated, tmp_path, text):
    calibrated.save(tmp_path / "saved")
    file = tmp_path / "saved/label_tree.txt"
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    with pytest.raises(DataError, match=r"label_tree\.txt"):
        Recognizer.load(tmp_path / "saved")


@pytest.mark.parametrize(
    "state",
    [
        [1],
        {"parents": [1, 0, 1, -1]},
        {"parents": [4, -1, 1, -1]},
        {"parents": [-2, -1, 1, -1]},
        {"parents": [True, -1, 1, -1]},
        {"parents": [0.5, -1, 1, -1]},
        {"parents": [1, -1, 1, -1], "metrics_of_leaves": {"ece": [1]}},
        {"parents": [1, -1, 1, -1], "metrics_of_leaves": {"ece": "12"}},
        {"parents": [1, -1, 1, -1], "metrics_of_leaves": {"other": [1, 2]}},
        {"parents": [1, -1, 1, -1], "metrics_of_parents": [1]},
    ],
    ids=str,
)
def test_an_invalid_projection_in_a_file_is_refused(state):
    with pytest.raises(DataError, match=r"label_tree in calibration\.json must contain"):
        LabelTreeProjection.restore(state)


def test_the_state_restores_the_projection():
    projection = LabelTreeProjection((1, -1), {"ece": (0.5, float("nan"))}, {"ece": (1.0, 2.0)})
    state = json.loads(json.dumps(projection.state(), allow_nan=False))
    assert repr(LabelTreeProjection.restore(state)) == repr(projection)


def test_a_tree_that_is_set_later_applies_at_once():
    later = recognizer(None).calibrate(rows(seed=1))
    fingerprint = later.fingerprint
    later.label_tree = TREE
    assert later.calibration.record is None  # it described other probabilities
    assert later.fingerprint != fingerprint
    assert is_ordered(later.predict(rows(100, seed=2)))
    assert clone(later).label_tree == TREE
    later.label_tree = None
    assert later.fingerprint == fingerprint


@pytest.mark.filterwarnings("ignore:.* has no known target")
def test_parents_without_a_negative_target_are_refused():
    data = rows()
    leaves = data.targets.copy()
    leaves[:, 1] = np.where(leaves[:, 1] == 1, 1, np.nan)
    only_leaves = LabelledFeatures(data.features, NAMES, leaves)
    fitted = recognizer()
    unfitted = Recognizer(load_run(overrides=SETTINGS), NAMES, label_tree=TREE)
    for call in (unfitted.fit, fitted.calibrate):
        with pytest.raises(
            InputError, match=r"parent is absent; got no negative target of 'animal'\. Add"
        ):
            call(only_leaves)
    with pytest.raises(InputError, match="got no negative target of 'animal'"):
        select_method(only_leaves, settings=["encoder.name=features:8"], label_tree=TREE)


def test_a_tree_with_other_labels_is_refused():
    run = load_run(overrides=SETTINGS)
    with pytest.raises(InputError, match=r"got 1 other label, such as 'wolf'"):
        Recognizer(run, NAMES, label_tree=LabelTree({"wolf": "animal"}))


def test_log_odds_of_a_loss_are_projected_and_scores_are_not():
    test, fitted = rows(100, seed=2), recognizer(None)
    flat, fingerprint = fitted.predict(test), fitted.fingerprint
    fitted.label_tree = LabelTree({"animal": "sky"})
    found = fitted.predict(test)
    assert fitted.fingerprint != fingerprint
    assert (flat.logits[:, 1] > flat.logits[:, 3]).any()
    expected = isotonic_logits(flat.logits, np.array([-1, 3, -1, -1]))
    np.testing.assert_allclose(found.logits, expected, atol=1e-5)
    np.testing.assert_array_equal(found.scores, flat.scores)
    inputs = fitted.logits_of(found.scores)  # of a calibrator
    np.testing.assert_allclose(inputs, flat.logits, atol=1e-5)


def test_a_recalibration_of_log_odds_of_a_loss_keeps_the_order():
    assert_recalibration_keeps_the_order(recognizer())


def test_other_labels_keep_the_part_of_the_tree_that_remains():
    names = ["lion", "bear", "cat", "tiger"]
    tree = LabelTree({"tiger": "cat", "cat": "bear", "lion": "tiger"})
    zero_shot = Recognizer.zero_shot("tiny-vit", names)
    zero_shot.label_tree = tree
    assert zero_shot.calibration.tree is not None
    fewer = zero_shot.with_names(["lion", "cat", "car"])
    assert fewer.label_tree.parents == {"lion": "cat"}
    assert fewer.calibration.tree.parent_columns == (1, -1, -1)
    assert zero_shot.with_names(["car"]).label_tree is None


def test_the_selected_method_is_projected():
    selected = select_method(
        rows(), settings=["encoder.name=features:8", "epochs=1"], folds=2, label_tree=TREE
    )
    assert selected.label_tree == TREE
    assert is_ordered(selected.predict(rows(60, seed=2)))


def test_rows_of_scores_have_projected_cross_fitted_log_odds():
    data = rows()
    scores = sl.LabelledScores(data.features[:, :4], "logits", columns=NAMES)
    scores = scores.with_labels(NAMES, data.targets)
    scored = Recognizer.from_scores("logits", NAMES)
    scored.label_tree = TREE
    scored.calibrate(scores)
    assert is_ordered(scored.cross_fitted_predictions(scores, scored.predict(scores)))


def test_an_exported_file_has_the_tree_of_its_labels(exported_file):
    model = str(exported_file("tagger.onnx", parents={"green": "red", "sea": "green"}))
    assert resolve_model(model, None).label_tree.parents == {"green": "red", "sea": "green"}
    assert resolve_model(model, ["red", "sea"]).label_tree.parents == {"sea": "red"}
    assert resolve_model(model, ["sea"]).label_tree is None
    assert resolve_model(str(exported_file("other.onnx")), None).label_tree is None
