import numpy as np
import pytest
from mapie.risk_control import MultiLabelClassificationController
from mapie.risk_control._base_controller import ltt_procedure
from scipy.special import expit, logit

from surelabel.decisions import at_most_missed, at_most_missed_on_average, at_most_wrong, track
from surelabel.decisions.record import THRESHOLDS

PREVALENCE = np.array([0.3, 0.1, 0.2, 0.05, 0.15])
SKILL = np.array([3.0, 2.5, 3.5, 3.0, 2.0])


def drawn(rng, pictures):
    """Log-odds that are calibrated by construction, and what is true."""
    targets = rng.random((pictures, 5)) < PREVALENCE
    noise = rng.normal(size=targets.shape) + SKILL * targets
    logits = SKILL * noise - SKILL**2 / 2 + np.log(PREVALENCE / (1 - PREVALENCE))
    return logits, targets.astype(float)


def with_something(logits, targets):
    """Only pictures with a label, which MAPIE demands."""
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
    record = track(*data)
    for level in (0.051, 0.203, 0.487):  # MAPIE asks for less than the level, not at most
        theirs = mapie("recall", *data, level, method="crc")
        np.testing.assert_allclose(record.missed[:-1] / record.with_labels, theirs.r_hat)
        ours = at_most_missed_on_average(record, level=level)
        assert ours.threshold == theirs.best_predict_param[0]


def test_a_mean_that_just_meets_the_level_is_safe():
    logits, targets = np.array([[1.0]] * 9 + [[-1.0]] * 10), np.ones((19, 1))
    found = at_most_missed_on_average(track(logits, targets), level=11 / 20)
    assert found.threshold == pytest.approx(expit(1.0))
    assert found.risk == pytest.approx(10 / 19)


@pytest.mark.parametrize("seed", range(3))
def test_missed_is_never_more_careful_than_the_hoeffding_bound_of_mapie(seed):
    data = with_something(*drawn(np.random.default_rng(seed), 120))
    theirs = mapie(
        "recall", *data, 0.2, method="rcps", rcps_bound="hoeffding", confidence_level=0.9
    )
    ours = at_most_missed(track(*data), level=0.2, confidence=0.9)
    assert theirs.best_predict_param[0] <= ours.threshold
    assert ours.threshold < mapie("recall", *data, 0.2, method="crc").best_predict_param[0]


def test_where_every_picture_shows_something_the_wrong_share_is_that_of_mapie():
    rng = np.random.default_rng(0)
    logits, targets = drawn(rng, 150)
    always = np.full((150, 1), 30.0)
    logits, targets = np.hstack([logits, always]), np.hstack([targets, rng.random((150, 1)) < 0.97])
    logits, targets = with_something(logits, targets)
    theirs = mapie("precision", logits, targets, 0.2, confidence_level=0.9)
    record = track(logits, targets)
    np.testing.assert_allclose((record.wrong / record.tagged.clip(1))[:-1], theirs.r_hat)
    ours = at_most_wrong(record, level=0.2).threshold
    assert ours <= theirs.best_predict_param[0]  # a sequence costs less than Holm's correction


@pytest.mark.filterwarnings("ignore:Fixed sequence testing requires a monotonic risk:UserWarning")
@pytest.mark.parametrize("pictures", [100, 400, 2000])
@pytest.mark.parametrize("level", [0.05, 0.1, 0.3])
def test_wrong_is_the_fixed_sequence_test_of_mapie_from_one_minus_the_level(pictures, level):
    record = track(*drawn(np.random.default_rng(pictures), pictures))
    place = np.arange(np.searchsorted(record.thresholds, 1 - level), -1, -1)
    valid, _ = ltt_procedure(
        (record.wrong / record.tagged.clip(1))[None, place],
        np.array([[level]]),
        0.1,
        record.tagged[None, place],
        fwer_method="fixed_sequence",
    )
    found = at_most_wrong(record, level=level, confidence=0.9)
    assert found.reached == bool(valid[0])
    if found.reached:
        assert found.threshold == record.thresholds[place[max(valid[0])]]


@pytest.fixture(scope="module")
def truth():
    return track(*drawn(np.random.default_rng(99), 50_000))


def true_risk(guarantee, truth, of):
    place = np.searchsorted(truth.thresholds, guarantee.threshold)
    if of == "wrong":
        return truth.wrong[place] / truth.tagged[place]
    return truth.missed[place] / truth.with_labels


@pytest.mark.parametrize(("entry", "of"), [(at_most_wrong, "wrong"), (at_most_missed, "missed")])
def test_the_promise_is_kept_with_its_confidence_and_is_not_idle(entry, of, truth):
    rng = np.random.default_rng(1)
    found = [entry(track(*drawn(rng, 300)), level=0.15, confidence=0.8) for _ in range(200)]
    risks = [true_risk(f, truth, of) for f in found if f.reached]
    assert len(risks) > 190
    assert np.mean(np.array(risks) > 0.15) <= 0.2
    assert np.mean(risks) > 0.15 / 2


def test_on_average_the_missed_share_is_at_most_the_level_and_close_to_it(truth):
    rng = np.random.default_rng(2)
    found = [at_most_missed_on_average(track(*drawn(rng, 100)), level=0.2) for _ in range(300)]
    mean = np.mean([true_risk(f, truth, "missed") for f in found])
    assert 0.17 < mean <= 0.203


def test_overconfident_probabilities_break_no_promise(truth):
    rng = np.random.default_rng(3)
    broken = 0
    for _ in range(50):
        logits, targets = drawn(rng, 400)
        found = at_most_wrong(track(3 * logits, targets), level=0.1)
        if found.reached:
            place = np.searchsorted(truth.thresholds, expit(logit(found.threshold) / 3))
            broken += truth.wrong[place] / truth.tagged[place] > 0.1
    assert broken <= 5


def test_pictures_that_show_nothing_do_not_hide_the_errors_of_others():
    """Nine in ten show nothing, half the tags of the rest are wrong: not one in twenty."""
    logits = np.full((1000, 1), -5.0)
    logits[:100] = 5.0
    targets = np.zeros((1000, 1))
    targets[:50] = 1
    found = at_most_wrong(track(logits, targets), level=0.1)
    assert not found.reached
    assert found.needed is None


def test_a_picture_without_labels_misses_nothing_and_does_not_count():
    logits, targets = with_something(*drawn(np.random.default_rng(0), 300))
    empty = np.zeros_like(targets)
    for entry in (at_most_missed, at_most_missed_on_average):
        alone = entry(track(logits, targets))
        among = entry(track(np.vstack([logits, logits]), np.vstack([targets, empty])))
        assert (among.threshold, among.pictures) == (alone.threshold, alone.pictures)


@pytest.mark.parametrize("entry", [at_most_missed, at_most_missed_on_average])
def test_so_many_pictures_as_are_said_to_be_needed_do(entry):
    few = entry(track([[0.0]] * 2, [[1]] * 2), level=0.1)
    assert not few.reached
    assert not entry(track([[0.0]] * (few.needed - 1), [[1]] * (few.needed - 1)), level=0.1).reached
    assert entry(track([[0.0]] * 40, [[1]] * 40), level=0.1).reached
