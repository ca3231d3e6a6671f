import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.calibration import CALIBRATORS, Hierarchical
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.errors import DataError, NotFitted
from surelabel.recognizer import Recognizer
from surelabel.recognizer.calibrating import fit_recognizer_calibration
from surelabel.recognizer.calibration_record import restore_calibration_record
from surelabel.records import LabelledFeatures

NAMES = ["lion", "guitar", "car"]


def decisions(n=400, level=(-1.0, 0.0, -2.0), seed=0):
    """Calibrated log-odds, and targets sampled from them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2 + level
    return logits, (rng.random((n, 3)) < expit(logits)).astype(float)


def made(name="platt", known=None, n=400, **level):
    logits, targets = decisions(n, **level)
    known = np.ones_like(targets, dtype=bool) if known is None else known
    run = load_run(overrides=[f"calibrator.name={name}"])
    return fit_recognizer_calibration(run, logits, targets, known, vectors=logits)


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    targets = (features[:, :3] + rng.normal(size=(n, 3)) > 1).astype(float)
    return LabelledFeatures(features, NAMES, targets)


def recognizer(*settings):
    given = ["encoder.name=features:8", "method.name=linear", "epochs=3", *settings]
    return Recognizer(load_run(overrides=given), NAMES).fit(rows())


@pytest.fixture(scope="module")
def moved():
    return (
        recognizer("calibrator.name=vector")
        .calibrate(rows(seed=1))
        .adapt_to_shift(rows(200, seed=2))
    )


@pytest.mark.parametrize("shift", [(), (0.5, -1.0, 0.0)])
@pytest.mark.parametrize("name", CALIBRATORS)
def test_its_state_brings_it_back(name, shift):
    first = made(name)
    first = replace(first, shift=shift)
    second = restore_calibration_record(first.state())
    x = decisions(50, seed=5)[0]
    np.testing.assert_array_equal(first.logits(x, x), second.logits(x, x))
    assert (first.description, first.shift) == (second.description, second.shift)
    assert (first.name, first.log_losses) == (second.name, second.log_losses)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"calibrator": "gamma"}, "must contain a calibrator .* got the calibrator 'gamma'"),
        ({"shift": 3}, "shift in calibration.json must be a list of numbers in .* got 3"),
        ({"shift": [float("nan")]}, "shift in calibration.json must be a list of numbers"),
        ({"shift": ["a"]}, "shift in calibration.json must be a list of numbers"),
        ({"state": {}}, "calibrate again"),
        ({"log_losses": {"beta": float("nan")}}, "log_losses in calibration.json must contain a"),
        ({"log_losses": [0.1]}, "log_losses in calibration.json must contain a"),
    ],
)
def test_a_state_of_something_else_is_refused(change, says):
    with pytest.raises(DataError, match=f"(?i){says}"):
        restore_calibration_record(made().state() | change)


def test_a_state_without_a_shift_is_as_older_versions_wrote_it():
    assert set(made().state()) == {"calibrator", "state", "about"}


def test_a_shared_calibration_holds_for_other_names_without_a_word():
    first = made("platt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = first.for_new_names()
    assert second.calibrator is first.calibrator
    assert second.record is None


def test_of_a_calibration_for_each_label_the_shared_part_is_kept():
    with pytest.warns(UserWarning, match=r"\(vector\) has .* parameters \(platt\)\.") as caught:
        found = made("vector").for_new_names()
    assert len(caught) == 1
    assert found.name == "platt"
    assert found.description == "vector on 400 labelled images, shared parameters only"
    assert found.logits([[0.5] * 7]).shape == (1, 7)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_what_is_kept_for_other_names_takes_any_number_of_them(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = made(name).for_new_names()
    assert (found is None) == (made(name).calibrator.shared_calibrator() is None)
    assert found is None or found.logits([[0.5] * 7], np.ones((1, 3))).shape == (1, 7)


def test_a_shift_belongs_to_its_labels():
    first = made("platt").adapt_to_shift(decisions(500, level=(1.0, 0.0, -2.0), seed=3)[0])
    with pytest.warns(UserWarning, match="platt, adapted to a label shift"):
        found = first.for_new_names()
    assert found.shift == ()
    assert "adapted" not in found.description


def test_moving_finds_how_common_labels_became():
    logits, targets = decisions(4000)
    # the same look of each label, but the first is three times as common: resample by its target
    rng = np.random.default_rng(1)
    often = targets[:, 0] == 1
    kept = rng.choice(4000, 4000, p=np.where(often, 3, 1) / np.where(often, 3, 1).sum())
    found = made(n=4000).adapt_to_shift(logits[kept])
    assert found.shift[0] == pytest.approx(np.log(3), abs=0.2)
    assert abs(found.shift[2]) < 0.3
    probabilities = expit(found.logits(logits[kept])).mean(axis=0)
    assert probabilities[0] == pytest.approx(targets[kept][:, 0].mean(), abs=0.02)


def test_moving_twice_is_moving_once_from_the_start():
    there, here = (decisions(300, level=at, seed=4)[0] for at in ((2, 0, 0), (-3, 0, 0)))
    first = made()
    assert first.adapt_to_shift(there).adapt_to_shift(here) == first.adapt_to_shift(here)
    assert (
        first.adapt_to_shift(here).description
        == "platt on 400 labelled images, adapted to 300 other images"
    )
    stored = replace(first, description="platt on 400 labelled pictures, moved to 300 others")
    again = stored.adapt_to_shift(here).description
    assert again == "platt on 400 labelled pictures, adapted to 300 other images"


def test_a_label_of_which_nothing_was_known_stays_as_it_is():
    known = np.ones((400, 3), dtype=bool)
    known[:, 1] = False
    shift = made(known=known).adapt_to_shift(decisions(300, level=(0, 3, 0), seed=4)[0]).shift
    assert shift[1] == 0
    assert shift[0] != 0


def test_what_was_calibrated_on_few_cannot_be_moved():
    with pytest.raises(NotFitted, match="a validation record with the label frequencies"):
        made(n=10).adapt_to_shift(decisions(30)[0])
    with pytest.raises(NotFitted, match="adapt_to_shift requires a calibrated recognizer"):
        recognizer().adapt_to_shift(rows())


def test_moving_changes_the_fingerprint_and_nothing_but_the_level(moved):
    still = recognizer("calibrator.name=vector").calibrate(rows(seed=1))
    assert moved.fingerprint != still.fingerprint
    change = moved.predict(rows()).logits - still.predict(rows()).logits
    np.testing.assert_allclose(change, np.tile(moved.calibration.shift, (60, 1)), atol=1e-5)


def test_record_and_shift_come_back_from_a_folder(moved, tmp_path):
    moved.save(tmp_path / "saved")
    found = Recognizer.load(tmp_path / "saved")
    assert found.calibration.shift == moved.calibration.shift
    np.testing.assert_array_equal(
        found.calibration.record.predicted_positives, moved.calibration.record.predicted_positives
    )
    np.testing.assert_array_equal(found.predict(rows()).logits, moved.predict(rows()).logits)
    assert found.adapt_to_shift(rows(200, seed=2)).fingerprint == moved.fingerprint


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
    other = fit_recognizer_calibration(
        run, logits[:, :2], targets[:, :2], targets[:, :2] >= 0
    ).record
    save_arrays(other.state(), tmp_path / "saved" / "record.safetensors")
    with pytest.raises(DataError, match=r"record\.safetensors must contain 3 labels.* got 2"):
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
    logits = more.predict(source).logits
    np.testing.assert_allclose(logits[:, :3], first.predict(source).logits, atol=1e-5)
    shared = first.calibration.calibrator.shared_calibrator()
    raw = more.logits_of(more.predict(source).scores)[:, 3:]
    np.testing.assert_allclose(logits[:, 3:], shared.logits(raw), atol=1e-5)
    about = "vector on 60 labelled images, new labels with shared parameters"
    assert more.calibrated_on == about
    with pytest.warns(UserWarning, match="platt"):
        assert more.with_names([*NAMES, "pizza", "cow"]).calibrated_on == about


@pytest.mark.parametrize("name", ["hierarchical", "vector"])
def test_labels_in_another_order_keep_their_parameters_without_a_word(name):
    first, logits = made(name), decisions(50, seed=5)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = first.for_new_names(columns=[2, 0])
    np.testing.assert_array_equal(second.logits(logits[:, [2, 0]]), first.logits(logits)[:, [2, 0]])
    assert (second.name, second.description, second.record) == (name, first.description, None)


def test_the_selected_calibrator_is_stored_and_described():
    logits, targets = decisions()
    run = load_run()
    assert run.calibrator.name == "cross_validated"
    uneven = logits + np.array([3.0, 0.0, -3.0])
    found = fit_recognizer_calibration(run, uneven, targets, targets >= 0)
    assert found.name == "hierarchical"
    about = "hierarchical (selected by log loss; new labels use its shared beta)"
    assert found.description == f"{about} on 400 labelled images"
    assert min(found.log_losses, key=found.log_losses.get) == "hierarchical"
    expected = Hierarchical().fit(uneven, targets).logits(uneven)
    np.testing.assert_array_equal(found.logits(uneven), expected)
    losses = ", ".join(f"{name} {loss:.4f}" for name, loss in found.log_losses.items())
    assert found.selection_text == f"Cross-validated log loss of the calibrators: {losses}."


def test_few_images_and_a_given_calibrator_have_no_selection():
    for found in (made("cross_validated", n=19), made("vector")):
        assert (found.log_losses, found.selection_text) == ({}, None)
    assert made("cross_validated", n=19).description == "beta on 19 labelled images"


def test_an_archive_like_the_images_that_calibrated_hardly_moves():
    # each label is off for itself, which a calibrator that all labels share cannot mend
    off, (logits, targets) = np.array([1.5, -1.5, 0.0]), decisions(4000)
    found = fit_recognizer_calibration(
        load_run(overrides=["calibrator.name=beta"]),
        logits + off,
        targets,
        targets >= 0,
    )
    again = decisions(4000, seed=5)[0] + off
    assert np.abs(found.adapt_to_shift(again).shift).max() < 0.15
    assert np.abs(found.adapt_to_shift(again - np.array([2.0, 0.0, 0.0])).shift[0]) > 0.5


@pytest.mark.parametrize("shift", [[np.nan] * 3, [10**400] * 3, [True] * 3, "none", {}])
def test_a_shift_that_is_no_log_odds_is_refused(shift):
    with pytest.raises(DataError, match=r"shift in calibration\.json must be a list of numbers"):
        restore_calibration_record(made().state() | {"shift": shift})


@pytest.mark.parametrize("changed", [{"calibrator": ["platt"]}, {"about": 5}])
def test_a_calibration_that_is_none_is_refused(changed):
    with pytest.raises(DataError, match=r"calibration\.json must contain a calibrator .*platt"):
        restore_calibration_record(made().state() | changed)
