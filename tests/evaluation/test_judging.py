import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.evaluation import judge
from surelabel.records import LabelledImages, Predictions

RNG = np.random.default_rng(0)
NAMES = ["dog", "cat", "tree"]


@pytest.fixture
def labelled():
    targets = RNG.integers(0, 2, (40, 3)).astype(float)
    targets[0] = np.nan
    return LabelledImages([f"{i}.jpg" for i in range(40)], NAMES, targets)


def predictions(labelled, logits, calibration="platt"):
    return Predictions(
        labelled.paths, NAMES, logits.astype(np.float32), logits.astype(np.float32), calibration
    )


def test_a_perfect_recognizer_is_perfect(labelled):
    found = judge(predictions(labelled, 80.0 * labelled.targets - 40), labelled)
    assert found.summary["mean_average_precision"] == 1
    assert found.summary["brier_skill"] == pytest.approx(1)
    assert found.summary["ece"] == pytest.approx(0, abs=1e-9)


def test_without_calibration_there_are_rankings_only(labelled):
    found = judge(predictions(labelled, RNG.normal(size=(40, 3)), None), labelled)
    assert "mean_average_precision" in found.summary
    assert "ece" not in found.summary
    assert found.floor == {}


def test_pictures_in_another_order_change_nothing(labelled):
    logits = RNG.normal(size=(40, 3))
    order = RNG.permutation(40)
    turned = labelled.take(order)
    first, second = (
        judge(predictions(labelled, logits), labelled),
        judge(predictions(turned, logits[order]), labelled),
    )
    assert first.summary == pytest.approx(second.summary, nan_ok=True)


def test_the_worst_picture_is_the_one_most_confidently_wrong(labelled):
    logits = np.where(labelled.targets > 0, 3.0, -3.0)
    logits[7] *= -1
    found = judge(predictions(labelled, logits), labelled)
    assert found.worst[0].path == "7.jpg"
    assert found.worst[0].loss == pytest.approx(np.log1p(np.exp(3.0)), rel=1e-6)


def test_the_best_pictures_show_two_labels_or_more(labelled):
    found = judge(predictions(labelled, np.where(labelled.targets > 0, 3.0, -3.0)), labelled)
    row = {p: t for p, t in zip(labelled.paths, labelled.targets, strict=True)}
    assert found.best
    assert all(row[e.path].sum() >= 2 for e in found.best)
    assert not {e.path for e in found.best} & {e.path for e in found.worst}


def test_a_class_without_positives_is_counted_as_undefined(labelled):
    empty = LabelledImages(labelled.paths, NAMES, labelled.targets * [1, 1, 0])
    found = judge(predictions(empty, RNG.normal(size=(40, 3))), empty)
    assert found.undefined["average_precision"] == 1


def test_other_names_or_unlabelled_pictures_are_refused(labelled):
    made = predictions(labelled, RNG.normal(size=(40, 3)))
    with pytest.raises(InputError, match="same names"):
        judge(made, LabelledImages(labelled.paths, ["a", "b", "c"], labelled.targets))
    with pytest.raises(InputError, match=r"1 of 40 .* 39\.jpg"):
        judge(made, labelled.take(range(39)))


def test_nothing_known_is_refused(labelled):
    nothing = LabelledImages(labelled.paths, NAMES, np.full((40, 3), np.nan))
    with pytest.raises(InputError, match="No label"):
        judge(predictions(nothing, RNG.normal(size=(40, 3))), nothing)


def test_means_of_classes_leave_the_undefined_out_and_have_a_floor_of_their_own(labelled):
    empty = LabelledImages(labelled.paths, NAMES, labelled.targets * [1, 1, 0])
    found = judge(predictions(empty, RNG.normal(size=(40, 3))), empty)
    values = found.per_class["average_precision"]
    assert found.class_means["average_precision"] == pytest.approx(values[:2].mean())
    assert found.class_floor["ece"] > found.floor["ece"] > 0


def test_what_was_before_the_calibrator_is_judged_beside_it(labelled):
    logits = RNG.normal(size=(40, 3))
    found = judge(predictions(labelled, logits / 3), labelled, before=logits)
    alone = judge(predictions(labelled, logits), labelled)
    assert found.before.summary == pytest.approx(
        {name: alone.summary[name] for name in found.before.summary}, rel=1e-5
    )
    assert judge(predictions(labelled, logits), labelled).before is None


def test_nothing_is_before_a_calibration_that_never_was(labelled):
    logits = RNG.normal(size=(40, 3))
    with pytest.raises(InputError, match="nothing calibrated these predictions"):
        judge(predictions(labelled, logits, None), labelled, before=logits)
