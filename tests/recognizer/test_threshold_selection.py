import numpy as np
import pytest

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.decisions import GUARANTEES, OPERATING_POINTS
from surelabel.errors import ConfigError, NotFitted, UnknownName
from surelabel.recognizer import Recognizer, guarantee, operating_point
from surelabel.records import Images, LabelledFeatures

NAMES = ["lion", "guitar"]


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    targets = (features[:, :2] + 0.3 * rng.normal(size=(n, 2)) > 0.5).astype(float)
    return LabelledFeatures(features, NAMES, targets)


def fitted(**kept):
    run = load_run(overrides=["encoder.name=features:8", "method.name=linear"])
    return Recognizer(run, NAMES).fit(rows(), **kept)


@pytest.fixture(scope="module")
def recognizer():
    return fitted().calibrate(rows(seed=1))


@pytest.mark.parametrize("goal", OPERATING_POINTS)
def test_every_goal_gives_one_threshold_a_label(recognizer, goal):
    found = operating_point(recognizer, goal)
    assert found.values.shape == (2,)
    assert found.is_reached.all()


def test_a_precision_that_was_asked_for_holds_on_other_images(recognizer):
    values = operating_point(recognizer, "precision", at_least=0.9).values
    test = rows(2000, seed=2)
    shown = recognizer.predict(test).probabilities >= values
    assert (test.targets[shown] == 1).mean() >= 0.87
    assert shown.sum() > 0.5 * test.targets.sum()


@pytest.mark.parametrize("goal", GUARANTEES)
def test_every_guarantee_is_one_threshold(recognizer, goal):
    found = guarantee(recognizer, goal)
    assert 0 <= found.threshold <= 1


def test_folds_alone_are_enough_for_a_goal():
    assert operating_point(fitted(folds=3), "f1").values.shape == (2,)


def test_a_cost_needs_probabilities_and_no_record():
    shipped = Recognizer.zero_shot("tiny-vit", NAMES)
    found = operating_point(shipped, "cost", miss_cost=3.0)
    np.testing.assert_allclose(found.values, 0.25)
    assert not found.is_reached.any()
    assert np.isnan(found.recall).all()
    np.testing.assert_allclose(operating_point(fitted(), "cost", miss_cost=1.0).values, 0.5)


def test_a_cost_of_scores_without_probabilities_is_refused():
    bare = Recognizer.zero_shot("tiny-vit", NAMES, templates="a {} on a table")
    with pytest.raises(
        NotFitted,
        match=r"require a validation record; the recognizer is not calibrated\. Run `surelabel "
        r"calibrate MODEL DATASET --out FOLDER` with 20 or more annotated images.* not verified\.$",
    ):
        operating_point(bare, "cost")


@pytest.mark.parametrize(
    ("make_recognizer", "reason"),
    [
        (
            lambda: fitted(),
            r"is not calibrated on images \(by its loss alone \(.*\)\)",
        ),
        (
            lambda: fitted().calibrate(rows(15, seed=1)),
            r"is calibrated \(\w+ on 15 labelled rows\), but on fewer than 20 images",
        ),
        (
            lambda: Recognizer.zero_shot("tiny-vit", NAMES),
            r"is calibrated \(beta, .*\), but its labels are not those of the calibration images",
        ),
    ],
)
def test_the_reason_for_a_missing_validation_record_is_named(make_recognizer, reason):
    recognizer = make_recognizer()
    for select in (
        lambda: operating_point(recognizer, "f1"),
        lambda: guarantee(recognizer, "at_most_wrong"),
    ):
        with pytest.raises(
            NotFitted,
            match=rf"{reason}\. .* a fixed --threshold, which needs no validation record\.$",
        ):
            select()


def test_a_calibration_without_labels_on_few_images_is_named():
    paths = collection("scenes-80", split="test").paths[:3]
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES, templates="a {} on a table")
    recognizer.calibrate(Images(paths))
    with pytest.raises(
        NotFitted, match=r"pseudo-labels of 3 images without labels\), but on fewer"
    ):
        operating_point(recognizer, "f1")
    with pytest.raises(NotFitted, match="got a calibration without labels"):
        guarantee(recognizer, "at_most_wrong")


@pytest.mark.parametrize("goal", sorted(OPERATING_POINTS.keys() - {"cost"}))
def test_other_goals_need_images_and_say_that_some_without_labels_will_do(goal):
    with pytest.raises(
        NotFitted,
        match=r"20 or more images without labels are sufficient .*--unlabelled --out FOLDER`\)",
    ):
        operating_point(Recognizer.zero_shot("tiny-vit", NAMES), goal)


def test_a_promise_ends_where_the_calibration_is_moved():
    moved = fitted().calibrate(rows(seed=1)).adapt_to_shift(rows(seed=3))
    for ask in (lambda: guarantee(moved, "at_most_wrong"), lambda: operating_point(moved, "f1")):
        with pytest.raises(
            NotFitted, match="its adaptation to label shift has no validation record"
        ):
            ask()
    assert operating_point(moved, "cost", miss_cost=1.0).values.tolist() == [0.5, 0.5]


def test_unknown_goals_and_settings_are_named(recognizer):
    with pytest.raises(UnknownName, match="Did you mean 'precision'"):
        operating_point(recognizer, "precison")
    with pytest.raises(ConfigError, match="f1 has no setting at_least"):
        operating_point(recognizer, "f1", at_least=0.9)
    with pytest.raises(UnknownName, match="at_most_wrong"):
        guarantee(recognizer, "at_most_wron")
