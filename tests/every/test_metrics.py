"""Requirements of every metric; a new entry of a table is tested automatically."""

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.metrics import (
    BINARY_TARGET_METRICS,
    METRICS,
    PER_CLASS,
    POOLED,
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    RANKING,
    RANKING_PER_CLASS,
)


def over(table):
    return pytest.mark.parametrize("metric", table.values(), ids=table.keys())


ALL = POOLED | {f"{name} per class": metric for name, metric in PER_CLASS.items()}
N = 600  # images: enough to fill every bin of every class
OF_PROBABILITIES = list(PROBABILITY.values()) + list(PROBABILITY_PER_CLASS.values())


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    probabilities = rng.random((N, 7))
    return probabilities, (rng.random((N, 7)) < probabilities**2).astype(float)


@pytest.fixture
def known():
    return np.random.default_rng(2).random((N, 7)) < 0.6


def test_a_metric_of_each_class_has_one_of_the_whole():
    assert PER_CLASS.keys() <= POOLED.keys()
    assert METRICS.keys() == POOLED.keys() | {f"{name}_per_class" for name in PER_CLASS}
    assert RANKING_PER_CLASS.keys() <= RANKING.keys()
    assert PROBABILITY_PER_CLASS.keys() == PROBABILITY.keys()


@over(POOLED)
def test_the_whole_gets_one_number(metric, batch):
    assert isinstance(metric(*batch), float)
    assert np.isfinite(metric(*batch))


@over(PER_CLASS)
def test_each_class_gets_one_number(metric, batch):
    found = metric(*batch)
    assert found.shape == (7,)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


@over(ALL)
def test_order_of_images_does_not_matter(metric, batch):
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_allclose(metric(*batch), metric(*(b[order] for b in batch)))


@over(POOLED)
def test_order_of_classes_does_not_matter_for_the_whole(metric, batch):
    np.testing.assert_allclose(metric(*batch), metric(*(b[:, ::-1] for b in batch)))


@over(PER_CLASS)
def test_order_of_classes_only_moves_the_answers(metric, batch):
    order = [2, 0, 3, 1, 6, 4, 5]
    np.testing.assert_allclose(metric(*batch)[order], metric(*(b[:, order] for b in batch)))


@over(POOLED)
def test_truth_is_best_and_its_opposite_worst(metric, batch):
    p, y = batch
    best, worst = metric(y, y), metric(1 - y, y)
    sign = np.sign(best - worst)
    assert sign != 0
    assert sign * best >= sign * metric(p, y) >= sign * worst
    assert sign * best >= sign * metric(0.9 * p, y) >= sign * worst


@over(ALL)
def test_repeated_data_give_the_same_value(metric, batch):
    np.testing.assert_allclose(metric(*batch), metric(*(np.tile(b, (2, 1)) for b in batch)))


@over(ALL)
def test_unknown_targets_have_no_influence(metric, batch, known):
    p, y = batch
    lies = np.where(known, y, 1 - y)
    missing = np.where(known, y, np.nan)
    np.testing.assert_array_equal(metric(p, y, known), metric(p, lies, known))
    np.testing.assert_array_equal(metric(p, y, known), metric(p, missing))
    assert not np.array_equal(metric(p, y, known), metric(p, y))


@over(ALL)
def test_nothing_known_is_undefined(metric, batch):
    assert np.isnan(metric(*batch, np.zeros((N, 7), dtype=bool))).all()


@over(ALL)
def test_no_images_is_undefined(metric):
    assert np.isnan(metric(np.empty((0, 3)), np.empty((0, 3)))).all()


@over(POOLED)
def test_a_class_of_which_nothing_is_known_changes_nothing(metric, batch):
    p, y = batch
    wider = np.hstack([p, p[:, :1]]), np.hstack([y, np.full((N, 1), np.nan)])
    np.testing.assert_allclose(metric(*wider), metric(p, y))


@over(PER_CLASS)
def test_each_class_is_judged_by_its_own_targets(metric, batch):
    p, y = batch
    changed = y.copy()
    changed[:, 3] = 1 - changed[:, 3]
    same = metric(p, y) == metric(p, changed)
    assert same.tolist() == [True] * 3 + [False] + [True] * 3


@over(RANKING_PER_CLASS)
def test_a_class_without_positives_is_never_better_than_none(metric, batch):
    p, y = batch
    y = y.copy()
    y[:, 2] = 0
    assert not metric(p, y)[2] > 0


@over(ALL)
def test_ties_give_the_same_answer_in_every_order(metric, batch):
    p, y = np.round(batch[0], 1), batch[1]
    order = np.random.default_rng(3).permutation(N)
    np.testing.assert_allclose(metric(p, y), metric(p[order], y[order]))


@over(RANKING | {f"{name} per class": metric for name, metric in RANKING_PER_CLASS.items()})
@pytest.mark.parametrize("monotone", [np.exp, lambda s: 5 * s - 100, lambda s: s**3], ids="els")
def test_ranking_looks_at_the_order_only(metric, monotone, batch):
    p, y = batch
    np.testing.assert_allclose(metric(monotone(p), y), metric(p, y))


@pytest.mark.parametrize("metric", OF_PROBABILITIES, ids=lambda m: m.__name__)
@pytest.mark.parametrize("bad", [1.3, -0.1, np.nan])
def test_what_is_no_probability_is_refused(metric, bad, batch):
    p, y = batch
    p[3, 2] = bad
    with pytest.raises(InputError, match=r"probabilities must be in \[0, 1\].*(1\.3|-0\.1|nan)"):
        metric(p, y)


@over(ALL)
def test_reports_both_shapes_when_they_differ(metric):
    with pytest.raises(InputError, match=r"\(2, 3\).*\(2, 4\)"):
        metric(np.zeros((2, 3)), np.zeros((2, 4)))


@over(ALL)
def test_a_target_outside_its_range_is_refused(metric, batch):
    with pytest.raises(InputError, match=r"targets must be in \[0, 1\].*2"):
        metric(batch[0], 2 * batch[1])


@over(ALL)
def test_lists_integers_and_float32_are_taken(metric, batch):
    p, y = batch[0].astype(np.float32), batch[1].astype(int)
    expected = metric(p.astype(float), y.astype(float))
    np.testing.assert_array_equal(metric(p, y), expected)
    np.testing.assert_array_equal(metric(p.tolist(), y.tolist()), expected)
    np.testing.assert_array_equal(metric(p, y.astype(bool)), expected)


@over(ALL)
def test_float16_is_taken_for_the_numbers_it_holds(metric, batch):
    p, y = (b.astype(np.float16) for b in batch)
    expected = metric(p.astype(float), y.astype(float))
    np.testing.assert_array_equal(metric(p, y), expected)
    assert np.max(np.abs(expected - metric(*batch))) < 0.05


@over(ALL)
def test_images_of_which_nothing_is_known_change_nothing(metric, batch):
    p, y = batch
    longer = np.vstack([p, p[:50]]), np.vstack([y, np.full((50, 7), np.nan)])
    np.testing.assert_allclose(metric(*longer), metric(p, y), rtol=1e-12)


@over(POOLED)
def test_one_image_gives_a_number_in_range_or_nothing(metric, batch):
    y = np.array([[1.0, 0, 0, 1, 0, 0, 0]])
    found = metric(batch[0][:1], y)
    assert isinstance(found, float)
    ends = sorted([metric(y, y), metric(1 - y, y)])
    assert np.isnan(found) or ends[0] <= found <= ends[1]


@over(PER_CLASS)
def test_one_decision_in_each_class_gives_a_number_for_each_or_nothing(metric):
    found = metric(np.full((1, 3), 0.25), [[1, 0, np.nan]])
    assert found.shape == (3,)
    assert np.isnan(found[2])


@over(POOLED)
@pytest.mark.parametrize("level", [0.1, 0.3, 1.0])
def test_constant_scores_are_between_the_best_and_the_worst(metric, level, batch):
    _, y = batch
    found = metric(np.full((N, 7), level), y)
    ends = sorted([metric(y, y), metric(1 - y, y)])
    assert ends[0] <= found <= ends[1]
    order = np.random.default_rng(4).permutation(N)
    assert metric(np.full((N, 7), level), y[order]) == pytest.approx(found, rel=1e-12)


@over(PER_CLASS)
def test_a_class_without_positives_leaves_the_others_alone(metric, batch):
    p, y = batch
    fewer = y.copy()
    fewer[:, 2] = 0
    others = [0, 1, 3, 4, 5, 6]
    np.testing.assert_array_equal(metric(p, fewer)[others], metric(p, y)[others])


@over(PER_CLASS)
def test_what_is_undefined_is_nan_and_can_be_counted(metric, batch):
    p, y = batch
    y = y.copy()
    y[:, [1, 4]] = np.nan
    assert np.count_nonzero(np.isnan(metric(p, y))) == 2


@over(ALL)
def test_inputs_are_left_alone(metric, batch, known):
    before = [b.copy() for b in (*batch, known)]
    metric(*batch, known)
    for now, then in zip((*batch, known), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("name", POOLED)
def test_metrics_that_need_binary_targets_refuse_graded_ones(name, batch):
    probabilities, targets = batch
    tables = [POOLED, PER_CLASS] if name in PER_CLASS else [POOLED]
    for table in tables:
        if name in BINARY_TARGET_METRICS:
            with pytest.raises(InputError, match="must be 0 or 1; got 0"):
                table[name](probabilities, 0.9 * targets)
        else:
            assert np.isfinite(table[name](probabilities, 0.9 * targets)).all()
