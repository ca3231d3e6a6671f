import numpy as np
import pytest
from mapie.risk_control import MultiLabelClassificationController
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from scipy.special import expit, logit

from surelabel.decisions import (
    at_most_missed,
    at_most_missed_on_average,
    at_most_wrong,
    record_validation,
)
from surelabel.decisions.validation_record import THRESHOLDS

PREVALENCE = np.array([0.3, 0.1, 0.2, 0.05, 0.15])
SKILL = np.array([3.0, 2.5, 3.5, 3.0, 2.0])


def drawn(rng, images):
    """Log-odds that are calibrated by construction, and what is true."""
    targets = rng.random((images, 5)) < PREVALENCE
    noise = rng.normal(size=targets.shape) + SKILL * targets
    logits = SKILL * noise - SKILL**2 / 2 + np.log(PREVALENCE / (1 - PREVALENCE))
    return logits, targets.astype(float)


def with_something(logits, targets):
    """Only images with a label, which MAPIE demands."""
    some = targets.any(axis=1)
    return logits[some], targets[some]


def mapie(risk, logits, targets, level, **how):
    controller = MultiLabelClassificationController(
        expit, risk=risk, target_level=1 - level, predict_params=THRESHOLDS[:-1], **how
    )
    return controller.calibrate(logits, targets)


@pytest.mark.parametrize("seed", range(3))
def test_missed_on_average_is_conformal_risk_control_of_mapie(seed):
    data = with_something(*drawn(np.random.default_rng(seed), 120))
    record = record_validation(*data)
    for level in (0.051, 0.203, 0.487):  # MAPIE asks for less than the level, not at most
        theirs = mapie("recall", *data, level, method="crc")
        np.testing.assert_allclose(
            record.false_negative_sum[:-1] / record.images_with_positives, theirs.r_hat
        )
        ours = at_most_missed_on_average(record, level=level)
        assert ours.threshold == theirs.best_predict_param[0]


def test_a_mean_that_just_meets_the_level_is_safe():
    logits, targets = np.array([[1.0]] * 9 + [[-1.0]] * 10), np.ones((19, 1))
    found = at_most_missed_on_average(record_validation(logits, targets), level=11 / 20)
    assert found.threshold == pytest.approx(expit(1.0))
    assert found.risk == pytest.approx(10 / 19)


@pytest.mark.parametrize("seed", range(3))
def test_missed_is_never_more_careful_than_the_hoeffding_bound_of_mapie(seed):
    data = with_something(*drawn(np.random.default_rng(seed), 120))
    theirs = mapie(
        "recall", *data, 0.2, method="rcps", rcps_bound="hoeffding", confidence_level=0.9
    )
    ours = at_most_missed(record_validation(*data), level=0.2, confidence=0.9)
    assert theirs.best_predict_param[0] <= ours.threshold
    assert ours.threshold < mapie("recall", *data, 0.2, method="crc").best_predict_param[0]


def test_where_every_image_shows_something_the_wrong_share_is_that_of_mapie():
    rng = np.random.default_rng(0)
    logits, targets = drawn(rng, 150)
    always = np.full((150, 1), 30.0)
    logits, targets = np.hstack([logits, always]), np.hstack([targets, rng.random((150, 1)) < 0.97])
    logits, targets = with_something(logits, targets)
    theirs = mapie("precision", logits, targets, 0.2, confidence_level=0.9)
    record = record_validation(logits, targets)
    np.testing.assert_allclose(
        (record.false_discovery_sum / record.images_with_predictions.clip(1))[:-1], theirs.r_hat
    )
    ours = at_most_wrong(record, level=0.2).threshold
    assert ours <= theirs.best_predict_param[0]  # a sequence costs less than Holm's correction


def test_one_wrong_label_among_images_needs_half_of_the_error():
    """With 40 images, one wrong label is proof at the whole error; with 48, at half of it."""

    def found(images):
        return at_most_wrong(record_validation([[5.0]] * images, [[0]] + [[1]] * (images - 1)))

    assert not found(47).is_reached
    assert found(48).is_reached


def test_a_calibrated_recognizer_is_refused_half_as_often_as_by_one_sequence():
    rng = np.random.default_rng(0)
    before, after = [], []
    for _ in range(120):
        logits = rng.normal(-1.5, 2.25, (300, 10))
        record = record_validation(logits, rng.random(logits.shape) < expit(logits))
        after.append(not at_most_wrong(record, level=0.1, confidence=0.9).is_reached)
        start = np.searchsorted(record.thresholds, 0.9)
        risk = record.false_discovery_sum[start] / record.images_with_predictions[start]
        p = compute_hoeffding_bentkus_p_value(
            np.array([risk]), int(record.images_with_predictions[start]), 0.1
        )
        before.append(p[0, 0] > 0.1)
    assert np.mean(before) > 0.45
    assert np.mean(after) <= 0.35


def few_labels(images):
    """One image in twenty has a label with a high probability; the others have doubtful ones."""
    logits = np.full((images, 1), -1.0)
    logits[: images // 20] = 5.0
    targets = np.zeros_like(logits)
    targets[: images // 20] = 1
    return record_validation(logits, targets)


def test_a_threshold_that_predicts_almost_nothing_is_refused_and_the_sentence_says_so():
    found = at_most_wrong(few_labels(1000))
    assert not found.is_reached
    assert found.threshold == 1
    assert found.images_needed is None
    assert found.sentence.endswith(
        "Labels with probability >= 0.28905 satisfy the bound, but there are fewer than 0.1 such "
        "labels per image. On 1000 labelled images, 95 % of the labels with probability >= 0.269 "
        "were wrong. Calibrate again or increase the level."
    )


def sparse(rng, images):
    """Nearly perfect log-odds of 10 labels at 5 % prevalence; one random target is known."""
    targets = rng.random((images, 10)) < 0.05
    logits = np.where(targets, 6.0, -6.0)
    known = np.zeros(targets.shape, bool)
    known[np.arange(images), rng.integers(10, size=images)] = True
    return record_validation(logits, targets, known)


def test_one_known_target_per_image_is_sufficient_with_enough_images():
    rng = np.random.default_rng(0)
    few = at_most_wrong(sparse(rng, 200))
    assert not few.is_reached
    assert 200 < few.images_needed < 2000
    assert few.sentence.endswith(
        f"{few.images} labelled images with a predicted label are not sufficient; about "
        f"{few.images_needed} labelled images in total are needed."
    )
    assert (
        np.mean([at_most_wrong(sparse(rng, few.images_needed)).is_reached for _ in range(20)]) > 0.5
    )
    many = at_most_wrong(sparse(rng, 2000))
    assert many.is_reached
    assert many.risk == 0


def test_rare_labels_are_refused_also_if_few_targets_are_known():
    logits, targets = np.full((2000, 10), -6.0), np.zeros((2000, 10))
    logits[::20, 0], targets[::20, 0] = 6.0, 1
    known = np.zeros(targets.shape, bool)
    known[:, 0], known[::3, 1:] = True, True
    found = at_most_wrong(record_validation(logits, targets, known))
    assert not found.is_reached
    assert "there are fewer than 0.1 such labels per image" in found.sentence


def test_so_many_images_as_are_needed_reach_the_promise_more_often_than_not():
    rng = np.random.default_rng(4)
    reached = []
    while len(reached) < 20:
        found = at_most_wrong(record_validation(*drawn(rng, 60)), level=0.1)
        if found.images_needed:
            assert found.images_needed > 60
            more = record_validation(*drawn(rng, min(found.images_needed, 5000)))
            reached.append(at_most_wrong(more, level=0.1).is_reached)
    assert np.mean(reached) > 0.5


@pytest.fixture(scope="module")
def truth():
    return record_validation(*drawn(np.random.default_rng(99), 50_000))


def true_risk(guarantee, truth, of):
    place = np.searchsorted(truth.thresholds, guarantee.threshold)
    if of == "wrong":
        return truth.false_discovery_sum[place] / truth.images_with_predictions[place]
    return truth.false_negative_sum[place] / truth.images_with_positives


@pytest.mark.parametrize(("entry", "of"), [(at_most_wrong, "wrong"), (at_most_missed, "missed")])
def test_the_promise_is_kept_with_its_confidence_and_is_not_idle(entry, of, truth):
    rng = np.random.default_rng(1)
    found = [
        entry(record_validation(*drawn(rng, 300)), level=0.15, confidence=0.8) for _ in range(200)
    ]
    risks = [true_risk(f, truth, of) for f in found if f.is_reached]
    assert len(risks) > 190
    assert np.mean(np.array(risks) > 0.15) <= 0.2
    assert np.mean(risks) > 0.15 / 2


def test_on_average_the_missed_share_is_at_most_the_level_and_close_to_it(truth):
    rng = np.random.default_rng(2)
    found = [
        at_most_missed_on_average(record_validation(*drawn(rng, 100)), level=0.2)
        for _ in range(300)
    ]
    mean = np.mean([true_risk(f, truth, "missed") for f in found])
    assert 0.17 < mean <= 0.203


def test_overconfident_probabilities_break_no_promise(truth):
    rng = np.random.default_rng(3)
    broken = 0
    for _ in range(50):
        logits, targets = drawn(rng, 400)
        found = at_most_wrong(record_validation(3 * logits, targets), level=0.1)
        if found.is_reached:
            place = np.searchsorted(truth.thresholds, expit(logit(found.threshold) / 3))
            broken += truth.false_discovery_sum[place] / truth.images_with_predictions[place] > 0.1
    assert broken <= 5


def test_images_that_show_nothing_do_not_hide_the_errors_of_others():
    """Nine in ten show nothing, half the tags of the rest are wrong: not one in twenty."""
    logits = np.full((1000, 1), -5.0)
    logits[:100] = 5.0
    targets = np.zeros((1000, 1))
    targets[:50] = 1
    found = at_most_wrong(record_validation(logits, targets), level=0.1)
    assert not found.is_reached
    assert found.images_needed is None


def test_a_image_without_labels_misses_nothing_and_does_not_count():
    logits, targets = with_something(*drawn(np.random.default_rng(0), 300))
    empty = np.zeros_like(targets)
    for entry in (at_most_missed, at_most_missed_on_average):
        alone = entry(record_validation(logits, targets))
        among = entry(record_validation(np.vstack([logits, logits]), np.vstack([targets, empty])))
        assert (among.threshold, among.images) == (alone.threshold, alone.images)


@pytest.mark.parametrize("entry", [at_most_missed, at_most_missed_on_average])
def test_so_many_images_as_are_said_to_be_needed_do(entry):
    few = entry(record_validation([[0.0]] * 2, [[1]] * 2), level=0.1)
    assert not few.is_reached
    assert not entry(
        record_validation([[0.0]] * (few.images_needed - 1), [[1]] * (few.images_needed - 1)),
        level=0.1,
    ).is_reached
    assert entry(record_validation([[0.0]] * 40, [[1]] * 40), level=0.1).is_reached
