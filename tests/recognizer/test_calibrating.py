import warnings

import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import CALIBRATORS, cross_fitted
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.decisions import track
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.recognizer import Recognizer
from surelabel.recognizer.calibrating import Calibration, calibrated, check_level, restored
from surelabel.records import LabelledFeatures

NAMES = ["lion", "guitar", "car"]


def decisions(n=400, level=(-1.0, 0.0, -2.0), seed=0):
    """Honest log-odds, and targets drawn by them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2 + level
    return logits, (rng.random((n, 3)) < expit(logits)).astype(float)


def made(name="platt", known=None, n=400, **level):
    logits, targets = decisions(n, **level)
    known = np.ones_like(targets, dtype=bool) if known is None else known
    run = load_run(overrides=[f"calibrator.name={name}"])
    return calibrated(run, logits, targets, known, how="on")


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    targets = (features[:, :3] + rng.normal(size=(n, 3)) > 1).astype(float)
    return LabelledFeatures(features, NAMES, targets)


def recognizer(*settings):
    given = ["backbone.name=features:8", "method.name=linear", "epochs=3", *settings]
    return Recognizer(load_run(overrides=given), NAMES).fit(rows())


@pytest.fixture(scope="module")
def moved():
    return recognizer("calibrator.name=vector").calibrate(rows(seed=1)).move_to(rows(200, seed=2))


def test_it_says_on_how_many_pictures_with_known_labels_it_was_fitted():
    known = np.ones((400, 3), dtype=bool)
    known[:100] = False
    found = made(known=known)
    assert found.about == "platt on 300 labelled pictures"
    assert found.record.pictures == 300


def test_the_record_is_of_calibrators_that_had_not_seen_the_picture():
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(60, 1)), (rng.random((60, 1)) < 0.3).astype(float)
    run = load_run(overrides=["calibrator.name=isotonic_per_class", "calibrator.pseudo_count=0.01"])
    found = calibrated(run, scores, targets, targets >= 0, how="on")
    by_heart = track(found.logits(scores), targets)
    honest = track(cross_fitted(run.make("calibrator"), scores, targets), targets)
    np.testing.assert_array_equal(found.record.shown, honest.shown)
    assert not np.array_equal(by_heart.shown, honest.shown)


def test_few_pictures_calibrate_and_leave_no_record():
    assert made(n=19).record is None
    assert made(n=20).record.pictures == 20


def test_a_single_present_label_calibrates_and_leaves_no_record():
    logits, targets = decisions(30)[0], np.zeros((30, 3))
    targets[3, 1] = 1
    found = calibrated(load_run(), logits, targets, targets >= 0, how="on")
    assert np.isfinite(found.logits(logits)).all()
    assert found.record is None


def test_nothing_present_is_an_error():
    logits, targets = decisions(30)[0], np.zeros((30, 3))
    with pytest.raises(InputError, match="Got 0 present among 90 known"):
        calibrated(load_run(), logits, targets, targets >= 0, how="on")


@pytest.mark.parametrize("name", CALIBRATORS)
def test_scores_without_a_level_need_a_calibrator_that_finds_one(name):
    run = load_run(overrides=[f"calibrator.name={name}"])
    check_level(run, None)
    if CALIBRATORS[name].sets_level:
        check_level(run, "ranking")
    else:
        with pytest.raises(ConfigError, match=f"{name} takes the level .* ranking gives scores"):
            check_level(run, "ranking")


def test_the_level_is_asked_for_before_a_picture_is_encoded():
    with pytest.raises(ConfigError, match="two_way gives scores without one"):
        recognizer("loss.name=two_way", "calibrator.name=temperature").calibrate(["no/such.png"])
    zero = Recognizer(
        load_run(overrides=["method.name=zero_shot", "calibrator.name=temperature"]), NAMES
    )
    with pytest.raises(ConfigError, match="zero_shot gives scores without one"):
        zero.calibrate(["no/such.png"])


@pytest.mark.parametrize("shift", [(), (0.5, -1.0, 0.0)])
@pytest.mark.parametrize("name", CALIBRATORS)
def test_its_state_brings_it_back(name, shift):
    first = made(name)
    first = Calibration(name, first.fitted, first.about, shift=shift)
    second = restored(first.state())
    x = decisions(50, seed=5)[0]
    np.testing.assert_array_equal(first.logits(x), second.logits(x))
    assert (first.about, first.shift) == (second.about, second.shift)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"calibrator": "gamma"}, "must hold one of .* Got 'gamma'"),
        ({"shift": 3}, "shift in calibration.json must be numbers in .* Got 3"),
        ({"shift": [float("nan")]}, "shift in calibration.json must be numbers"),
        ({"shift": ["a"]}, "shift in calibration.json must be numbers"),
        ({"state": {}}, "calibrate again"),
    ],
)
def test_a_state_of_something_else_is_refused(change, says):
    with pytest.raises(DataError, match=f"(?i){says}"):
        restored(made().state() | change)


def test_a_state_without_a_shift_is_as_older_versions_wrote_it():
    assert set(made().state()) == {"calibrator", "state", "about"}


def test_a_shared_calibration_holds_for_other_names_without_a_word():
    first = made("platt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = first.for_other_names()
    assert second.fitted is first.fitted
    assert second.record is None


def test_of_a_calibration_for_each_label_the_shared_part_is_kept():
    with pytest.warns(UserWarning, match=r"\(vector\) belongs .* it \(platt\) is kept") as caught:
        found = made("vector").for_other_names()
    assert len(caught) == 1
    assert found.name == "platt"
    assert found.about == "vector on 400 labelled pictures, the part that all labels share"
    assert found.logits([[0.5] * 7]).shape == (1, 7)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_what_is_kept_for_other_names_takes_any_number_of_them(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = made(name).for_other_names()
    assert (found is None) == (made(name).fitted.shared_part() is None)
    assert found is None or found.logits([[0.5] * 7]).shape == (1, 7)


def test_a_shift_belongs_to_its_labels():
    first = made("platt").moved(decisions(500, level=(1.0, 0.0, -2.0), seed=3)[0])
    with pytest.warns(UserWarning, match="platt, moved to other frequencies"):
        found = first.for_other_names()
    assert found.shift == ()
    assert "moved" not in found.about


def test_moving_finds_how_common_labels_became():
    logits, targets = decisions(4000)
    # the same look of each label, but the first is three times as common: resample by its target
    rng = np.random.default_rng(1)
    often = targets[:, 0] == 1
    kept = rng.choice(4000, 4000, p=np.where(often, 3, 1) / np.where(often, 3, 1).sum())
    found = made(n=4000).moved(logits[kept])
    assert found.shift[0] == pytest.approx(np.log(3), abs=0.2)
    assert abs(found.shift[2]) < 0.3
    probabilities = expit(found.logits(logits[kept])).mean(axis=0)
    assert probabilities[0] == pytest.approx(targets[kept][:, 0].mean(), abs=0.02)


def test_moving_twice_is_moving_once_from_the_start():
    there, here = (decisions(300, level=at, seed=4)[0] for at in ((2, 0, 0), (-3, 0, 0)))
    first = made()
    assert first.moved(there).moved(here) == first.moved(here)
    assert first.moved(here).about == "platt on 400 labelled pictures, moved to 300 others"


def test_a_label_of_which_nothing_was_known_stays_as_it_is():
    known = np.ones((400, 3), dtype=bool)
    known[:, 1] = False
    shift = made(known=known).moved(decisions(300, level=(0, 3, 0), seed=4)[0]).shift
    assert shift[1] == 0
    assert shift[0] != 0


def test_what_was_calibrated_on_few_cannot_be_moved():
    with pytest.raises(NotFitted, match=r"How common the labels were .* is not known"):
        made(n=10).moved(decisions(30)[0])
    with pytest.raises(NotFitted, match="Only a calibrated recognizer can be moved"):
        recognizer().move_to(rows())


def test_moving_changes_the_fingerprint_and_nothing_but_the_level(moved):
    still = recognizer("calibrator.name=vector").calibrate(rows(seed=1))
    assert moved.fingerprint != still.fingerprint
    change = moved.predict(rows()).logits - still.predict(rows()).logits
    np.testing.assert_allclose(change, np.tile(moved.calibration.shift, (60, 1)), atol=1e-5)


def test_record_and_shift_come_back_from_a_folder(moved, tmp_path):
    moved.save(tmp_path / "saved")
    found = Recognizer.load(tmp_path / "saved")
    assert found.calibration.shift == moved.calibration.shift
    np.testing.assert_array_equal(found.calibration.record.shown, moved.calibration.record.shown)
    np.testing.assert_array_equal(found.predict(rows()).logits, moved.predict(rows()).logits)
    assert found.move_to(rows(200, seed=2)).fingerprint == moved.fingerprint


def test_a_folder_without_a_record_loads(moved, tmp_path):
    moved.save(tmp_path / "saved")
    (tmp_path / "saved" / "record.safetensors").unlink()
    found = Recognizer.load(tmp_path / "saved")
    assert found.calibration.record is None
    assert found.fingerprint == moved.fingerprint


def test_a_damaged_record_is_refused(moved, tmp_path):
    moved.save(tmp_path / "saved")
    file = tmp_path / "saved" / "record.safetensors"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"record\.safetensors is damaged"):
        Recognizer.load(tmp_path / "saved")


def test_the_record_of_other_labels_is_refused(moved, tmp_path):
    from surelabel.recognizer.saving import save_arrays

    moved.save(tmp_path / "saved")
    logits, targets = decisions(30)
    run = load_run()
    other = calibrated(run, logits[:, :2], targets[:, :2], targets[:, :2] >= 0, how="on").record
    save_arrays(other.state(), tmp_path / "saved" / "record.safetensors")
    with pytest.raises(DataError, match=r"record\.safetensors is of 2 labels .* of 3"):
        Recognizer.load(tmp_path / "saved")


def test_the_card_of_a_set_loss_names_it(tmp_path):
    recognizer("loss.name=ranking").save(tmp_path / "saved")
    assert "| loss | ranking |" in (tmp_path / "saved" / "README.md").read_text()
    Recognizer.zero_shot("tiny-vit", NAMES).save(tmp_path / "zero")
    assert "| loss | none" in (tmp_path / "zero" / "README.md").read_text()


def test_new_names_of_a_recognizer_keep_the_shared_part():
    source = collection("scenes-80", split="validation").take(range(60))
    given = ["method.name=clip_adapter", "epochs=2", "calibrator.name=vector"]
    first = Recognizer(load_run(overrides=given), NAMES).fit(source).calibrate(source)
    with pytest.warns(UserWarning, match="platt") as caught:
        more = first.with_names([*NAMES, "pizza"])
    assert len(caught) == 1
    assert more.predict(source).probabilities.shape == (60, 4)
    assert more.calibrated_on.endswith("the part that all labels share")


def test_an_archive_like_the_pictures_that_calibrated_hardly_moves():
    # each label is off for itself, which a calibrator that all labels share cannot mend
    off, (logits, targets) = np.array([1.5, -1.5, 0.0]), decisions(4000)
    found = calibrated(
        load_run(overrides=["calibrator.name=beta"]),
        logits + off,
        targets,
        targets >= 0,
        how="on",
    )
    again = decisions(4000, seed=5)[0] + off
    assert np.abs(found.moved(again).shift).max() < 0.15
    assert np.abs(found.moved(again - np.array([2.0, 0.0, 0.0])).shift[0]) > 0.5


@pytest.mark.parametrize("shift", [[np.nan] * 3, [10**400] * 3, [True] * 3, "none", {}])
def test_a_shift_that_is_no_log_odds_is_refused(shift):
    with pytest.raises(DataError, match=r"shift in calibration\.json must be numbers"):
        restored(made().state() | {"shift": shift})


@pytest.mark.parametrize("changed", [{"calibrator": ["platt"]}, {"about": 5}])
def test_a_calibration_that_is_none_is_refused(changed):
    with pytest.raises(DataError, match=r"calibration\.json must hold one of beta"):
        restored(made().state() | changed)
