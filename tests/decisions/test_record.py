import numpy as np
import pytest
import safetensors.numpy

from surelabel.decisions import TrackRecord, track
from surelabel.errors import DataError, InputError


@pytest.fixture
def record():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(50, 3))
    return track(logits, rng.random((50, 3)), rng.random((50, 3)) < 0.8)


def test_comes_back_from_safetensors(record):
    again = TrackRecord.restore(safetensors.numpy.load(safetensors.numpy.save(record.state())))
    assert (again.pictures, again.with_labels) == (record.pictures, record.with_labels)
    for name, value in record.state().items():
        np.testing.assert_array_equal(again.state()[name], value)


def test_comes_back_from_lists(record):
    again = TrackRecord.restore({name: value.tolist() for name, value in record.state().items()})
    np.testing.assert_array_equal(again.shown, record.shown)


def test_a_thousand_labels_take_few_megabytes():
    state = track(np.zeros((1, 1000)), np.zeros((1, 1000))).state()
    assert sum(a.nbytes for a in state.values()) < 4e6


def test_support_is_what_is_present(record):
    np.testing.assert_array_equal(record.support, record.present.max(axis=1))


def test_records_of_other_labels_do_not_add_up(record):
    with pytest.raises(InputError, match=r"\(3, 163\) and \(1, 163\)"):
        record + track([[0.0]], [[1.0]])


def changed(name, change):
    def damage(state):
        state[name] = change(state[name].copy())

    return damage


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda s: s.pop("wrong"), "must hold thresholds, .*calibrate again"),
        (lambda s: s.update(more=np.ones(1)), "Got .*more"),
        (changed("shown", lambda a: a.astype(str)), "finite numbers of at least 0. shown does not"),
        (changed("wrong", lambda a: a * np.nan), "finite numbers of at least 0. wrong does not"),
        (changed("missed", lambda a: -a), "finite numbers of at least 0. missed does not"),
        (changed("pictures", lambda a: a + 0.5), "pictures .* one whole number"),
        (changed("present", lambda a: a[:2]), "not one number for each of 163 thresholds"),
        (changed("shown", lambda a: a[0]), "not one number for each of 163 thresholds"),
        (changed("thresholds", lambda a: a[::-1]), "do not rise from 0 to 1"),
        (changed("shown", lambda a: a[:, ::-1]), "more is shown at a higher threshold"),
        (changed("shown", lambda a: a + 1), "something is shown at 1"),
        (changed("present", lambda a: 2 * a), "more is right, or wrong, than is shown"),
        (changed("wrong", lambda a: 5 * a), "more is right, or wrong, than is shown"),
        (changed("missed", lambda a: 5 * a), "more is missed than is there"),
        (changed("pictures", lambda a: a - 3), "numbers of pictures do not fit"),
    ],
)
def test_a_damaged_record_is_refused(record, damage, match):
    state = dict(record.state())
    damage(state)
    with pytest.raises(DataError, match=f"(?i){match}"):
        TrackRecord.restore(state)
