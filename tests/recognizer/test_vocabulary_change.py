import numpy as np
import pytest
import torch

from surelabel.calibration import Dac, LabelTexts
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.methods import CoOp
from surelabel.recognizer import Recognizer
from surelabel.recognizer.vocabulary_change import check_vocabulary_can_change, label_texts

NAMES = ["lion", "guitar", "car", "airplane"]


@pytest.fixture(scope="module")
def test():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def train():
    return collection("scenes-80", split="train").take(range(120))


def fitted(train, method="linear"):
    return Recognizer(load_run(overrides=[f"method.name={method}", "epochs=5"]), NAMES).fit(train)


@pytest.fixture(scope="module")
def adapted(train, test):
    """A fitted and calibrated recognizer that tests only read."""
    return fitted(train, method="clip_adapter").calibrate(test)


def test_new_names_keep_what_all_labels_share(adapted, test):
    recognizer = adapted
    more = recognizer.with_names([*NAMES, "crab"])
    assert more.names == [*NAMES, "crab"]
    old, new = recognizer.predict(test), more.predict(test)
    np.testing.assert_allclose(new.logits[:, :4], old.logits, atol=1e-5)
    assert new.calibration == old.calibration


def test_the_same_names_keep_the_whole_calibration(adapted):
    recognizer = adapted
    assert recognizer.calibration.record is not None
    assert recognizer.with_names(NAMES).calibration is recognizer.calibration
    assert recognizer.with_names(NAMES[::-1]).calibration.record is None


def test_a_linear_head_takes_no_new_names(train):
    with pytest.raises(ConfigError, match="only the labels of the fit"):
        fitted(train).with_names(["crab"])


def test_class_specific_contexts_take_no_new_names_and_say_why():
    method = CoOp(load_encoder("tiny-vit"), NAMES, class_specific=True)
    with pytest.raises(
        ConfigError, match=r"context is class-specific.* again with method\.class_specific=false\."
    ):
        check_vocabulary_can_change("coop", method)


@pytest.fixture(scope="module")
def dense(test):
    """A calibrated recognizer that compares labels, and that tests only read."""
    run = load_run(overrides=["method.name=dense_regions", "method.windows=1"])
    return Recognizer(run, NAMES).calibrate(test)


def test_where_labels_are_compared_new_ones_drop_the_calibration_with_one_warning(dense):
    with pytest.warns(
        UserWarning, match=r"is dropped: with dense_regions .* calibrate again"
    ) as caught:
        more = dense.with_names([*NAMES, "crab"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (more.calibration, more.calibrated_on) == (None, None)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_where_labels_are_compared_the_same_ones_keep_the_calibration(order, dense, test):
    first = dense
    same, columns = first.with_names(NAMES[order]), range(len(NAMES))[order]
    expected = first.predict(test).logits[:, list(columns)]
    np.testing.assert_allclose(same.predict(test).logits, expected, atol=1e-5)


def test_an_own_calibration_of_each_label_is_dropped_with_the_rest_in_one_warning(test):
    run = load_run(
        overrides=["method.name=zero_shot", "method.domain=softmax", "calibrator.name=vector"]
    )
    with pytest.warns(UserWarning, match=r"is dropped: with zero_shot") as caught:
        more = Recognizer(run, NAMES).calibrate(test).with_names([*NAMES, "crab"])
    assert len(caught) == 1
    assert more.calibration is None


@pytest.fixture(scope="module")
def prompted(train, test):
    """A recognizer with learned prompts that moved the texts, calibrated by dac."""
    settings = ["method.name=coop", "epochs=1", "batch_size=120", "learning_rate=0.05"]
    run = load_run(overrides=[*settings, "calibrator.name=dac", "calibrator.neighbours=2"])
    return Recognizer(run, NAMES).fit(train).calibrate(test)


@torch.no_grad()
def expected_factors(recognizer, names):
    """Return the factors of the texts that the learned prompts of the method compute."""
    fit_texts, texts = (
        LabelTexts(
            recognizer.encoder.encode_labels(words, ["a photo of a {}."]).numpy(),
            recognizer.method.encode_words(words).numpy(),
        )
        for words in (NAMES, names)
    )
    fitted = recognizer.calibration.calibrator
    return fitted.with_label_texts(fit_texts, texts).factors


def test_new_names_get_the_factors_of_their_tuned_texts(prompted, test):
    names = ["crab", *NAMES[:2], "tree"]
    more = prompted.with_names(names)
    factors = more.calibration.calibrator.factors
    np.testing.assert_allclose(factors, expected_factors(prompted, names), rtol=1e-4)
    np.testing.assert_array_equal(factors[1:3], 1)
    assert (factors[[0, 3]] != 1).all()
    assert more.calibration.name == "dac"
    old, new = prompted.predict(test), more.predict(test)
    np.testing.assert_allclose(new.logits[:, 1:3], old.logits[:, :2], atol=1e-4)
    platt = prompted.calibration.calibrator.shared_.logits(more.logits_of(new.scores))
    np.testing.assert_allclose(new.logits, platt * factors, atol=1e-4)


def test_factors_of_a_second_change_are_relative_to_the_labels_of_the_fit(prompted):
    once = prompted.with_names(["crab"])
    twice = prompted.with_names(["tree", "house"]).with_names(["crab"])
    np.testing.assert_array_equal(
        once.calibration.calibrator.factors, twice.calibration.calibrator.factors
    )
    back = once.with_names(NAMES)
    np.testing.assert_array_equal(back.calibration.calibrator.factors, 1)


def test_factors_and_labels_of_the_fit_come_back_from_a_folder(prompted, test, tmp_path):
    more = prompted.with_names(["crab", "lion"])
    more.save(tmp_path / "saved")
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.fingerprint == more.fingerprint
    assert loaded.calibration.fit_labels == tuple(NAMES)
    np.testing.assert_array_equal(loaded.predict(test).logits, more.predict(test).logits)
    np.testing.assert_array_equal(
        loaded.with_names(["tree"]).calibration.calibrator.factors,
        more.with_names(["tree"]).calibration.calibrator.factors,
    )


def test_a_method_without_prompts_has_factors_of_one(test):
    run = load_run(overrides=["method.name=zero_shot", "calibrator.name=dac"])
    more = Recognizer(run, NAMES).calibrate(test).with_names(["crab", "lion|cat"])
    assert isinstance(more.calibration.calibrator, Dac)
    np.testing.assert_array_equal(more.calibration.calibrator.factors, 1)
    texts = label_texts(more.method, more.encoder, ["crab", "lion|cat"])
    np.testing.assert_allclose(np.linalg.norm(texts.zero_shot, axis=1), 1, rtol=1e-5)


def test_a_label_shift_is_dropped_with_a_warning_and_the_factors_are_kept(prompted, test):
    recognizer = prompted.with_names(NAMES)
    recognizer.adapt_to_shift(test)
    with pytest.warns(UserWarning, match="dac, adapted to a label shift"):
        more = recognizer.with_names(["crab"])
    assert more.calibration.shift == ()
    np.testing.assert_array_equal(
        more.calibration.calibrator.factors,
        prompted.with_names(["crab"]).calibration.calibrator.factors,
    )
