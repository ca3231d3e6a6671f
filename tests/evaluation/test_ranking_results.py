from itertools import permutations, product

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_recall_fscore_support,
    precision_score,
    recall_score,
)

from surelabel.evaluation.ranking_results import RANKING_CUTOFFS, compute_ranking_results


def drawn(n=40, c=9, seed=0, rate=0.3):
    rng = np.random.default_rng(seed)
    return rng.random((n, c)), rng.random((n, c)) < rate, np.ones((n, c), bool)


def whole(scores, present, known):
    n, c = scores.shape
    return compute_ranking_results(scores, present, known, rows=np.arange(n), columns=np.arange(c))


@pytest.mark.parametrize("k", RANKING_CUTOFFS)
def test_numbers_are_those_of_scikit_learn_on_the_k_best(k):
    scores, present, known = drawn()
    shown = np.zeros(scores.shape, int)
    np.put_along_axis(shown, np.argsort(-scores, axis=1)[:, :k], 1, axis=1)
    found = whole(scores, present, known).achieved
    micro = {"average": "micro", "y_true": present.astype(int), "y_pred": shown}
    assert found.micro[k].precision == pytest.approx(precision_score(**micro))
    assert found.micro[k].recall == pytest.approx(recall_score(**micro))
    assert found.micro[k].f1 == pytest.approx(f1_score(**micro))
    macro = micro | {"average": "macro", "zero_division": np.nan}
    precision, recall = precision_score(**macro), recall_score(**macro)
    means = found.macro[k]
    assert (means.precision, means.recall) == pytest.approx((precision, recall))
    assert means.f1 == pytest.approx(2 / (1 / precision + 1 / recall))


def with_undefined_classes():
    """Return scores that never rank classes 0 and 3 high, and no positive image of 3 and 7."""
    scores, present, known = drawn()
    scores[:, [0, 3]] -= 2
    present[:, [3, 7]] = False
    return scores, present, known


@pytest.mark.parametrize("k", RANKING_CUTOFFS)
def test_zero_filled_class_means_are_those_of_scikit_learn_with_zero_division_0(k):
    scores, present, known = with_undefined_classes()
    shown = np.zeros(scores.shape, int)
    np.put_along_axis(shown, np.argsort(-scores, axis=1)[:, :k], 1, axis=1)
    precision, recall, mean_of_f1, _ = precision_recall_fscore_support(
        present.astype(int), shown, average="macro", zero_division=0
    )
    means = whole(scores, present, known).achieved.macro_zero_filled[k]
    assert (means.precision, means.recall) == pytest.approx((precision, recall))
    assert means.f1 == pytest.approx(2 / (1 / precision + 1 / recall))
    assert means.f1 != pytest.approx(mean_of_f1)  # the macro F1 of scikit-learn is not CF1


@pytest.mark.parametrize("k", RANKING_CUTOFFS)
def test_both_class_means_are_those_of_plain_loops(k):
    scores, present, known = with_undefined_classes()
    known[:, [1, 2]] = np.random.default_rng(1).random((40, 2)) < 0.8
    present &= known
    hits, chosen = [0] * 9, [0] * 9
    for s, y, told in zip(scores, present, known, strict=True):
        for j in sorted(np.flatnonzero(told), key=lambda j: -s[j])[:k]:
            hits[j], chosen[j] = hits[j] + int(y[j]), chosen[j] + 1
    positives = present.sum(axis=0)
    precision = [h / n for h, n in zip(hits, chosen, strict=True) if n]
    recall = [h / n for h, n in zip(hits, positives, strict=True) if n]
    assert (len(precision), len(recall)) == (7, 7)
    found = whole(scores, present, known).achieved
    for means, n_precision, n_recall in (
        (found.macro[k], len(precision), len(recall)),
        (found.macro_zero_filled[k], 9, 9),
    ):
        cp, cr = sum(precision) / n_precision, sum(recall) / n_recall
        assert (means.precision, means.recall) == pytest.approx((cp, cr))
        assert means.f1 == pytest.approx(2 * cp * cr / (cp + cr))


def test_both_class_means_are_equal_where_every_class_is_defined():
    found = whole(*drawn()).achieved
    assert found.macro_zero_filled == found.macro


def test_classes_without_positives_count_as_zero_or_not_at_all():
    scores, present, known = drawn()
    present[:, [2, 5]] = False
    there = [j for j in range(9) if j not in (2, 5)]
    each = [average_precision_score(present[:, j], scores[:, j]) for j in there]
    found = whole(scores, present, known)
    assert found.labels_without_positives == 2
    assert found.achieved.mean_average_precision == pytest.approx(np.mean(each))
    assert found.achieved.mean_average_precision_zero_filled == pytest.approx(sum(each) / 9)
    assert found.perfect_ranking.mean_average_precision == 1
    assert found.perfect_ranking.mean_average_precision_zero_filled == pytest.approx(7 / 9)


def test_no_order_of_the_labels_is_above_the_ceiling_and_one_reaches_it():
    present = np.array([[True, False, True, False], [False, False, True, False]])
    known = np.ones((2, 4), bool)
    orders = [np.array(order, float) for order in permutations(range(4))]
    every = [whole(np.stack(rows), present, known) for rows in product(orders, orders[::4])]
    ceiling = every[0].perfect_ranking
    for k in RANKING_CUTOFFS:
        for what in ("precision", "recall", "f1"):
            best = max(getattr(one.achieved.micro[k], what) for one in every)
            assert getattr(ceiling.micro[k], what) == pytest.approx(best)
    assert max(one.achieved.mean_average_precision for one in every) == 1
    assert ceiling.mean_average_precision == 1
    assert ceiling.mean_average_precision_zero_filled == 1 / 2


def test_class_means_of_a_perfect_ranking_are_no_bound():
    present = np.array([[True, False, False, False, False]])
    scores = np.array([[0.9, 0.8, 0.7, 0.1, 0.1]])
    one = whole(scores, present, np.ones((1, 5), bool))
    assert one.perfect_ranking.macro[3].precision == pytest.approx(1 / 5)
    assert one.achieved.macro[3].precision == pytest.approx(1 / 3)


def test_zero_filled_class_means_of_a_perfect_ranking_are_no_bound():
    present = np.eye(5, dtype=bool)[[0, 1, 4, 4]]
    scores = np.eye(5)[[0, 1, 4, 4]] + [0.0, 0, 0.5, 0.4, 0]  # classes 2 and 3 fill the ranks
    one = whole(scores, present, np.ones((4, 5), bool))
    assert one.achieved.macro_zero_filled[3].precision == pytest.approx(3 / 5)
    assert one.perfect_ranking.macro_zero_filled[3].precision < 3 / 5


def test_labels_a_image_can_be_read_from_any_precision_and_recall():
    one = whole(*drawn())
    for at in (one.achieved.micro, one.perfect_ranking.micro):
        for k in RANKING_CUTOFFS:
            assert one.labels_per_image == pytest.approx(k * at[k].precision / at[k].recall)


def test_only_chosen_rows_and_columns_count():
    scores, present, known = drawn()
    rows, columns = np.array([1, 4, 30]), np.array([0, 3, 5, 8])
    part = compute_ranking_results(scores, present, known, rows=rows, columns=columns)
    cut = np.ix_(rows, columns)
    assert part == whole(scores[cut], present[cut], known[cut])
    assert (part.candidates, part.images) == (4, 3)


def test_unknown_labels_are_neither_ranked_nor_found():
    scores, present, known = drawn()
    known = np.random.default_rng(1).random(known.shape) < 0.6
    present &= known
    found = whole(scores, present, known).achieved
    assert found == whole(np.where(known, scores, 9.0), present, known).achieved
    hits = chosen = 0
    for s, y, told in zip(scores, present, known, strict=True):
        best = sorted(np.flatnonzero(told), key=lambda j: -s[j])[:3]
        hits, chosen = hits + sum(y[best]), chosen + len(best)
    assert found.micro[3].precision == pytest.approx(hits / chosen)
    assert found.micro[3].recall == pytest.approx(hits / present.sum())


def test_fewer_names_than_places_are_all_shown():
    scores, present, known = drawn(c=1)
    one = whole(scores, present, known)
    assert one.achieved.micro[3] == one.achieved.micro[5] == one.perfect_ranking.micro[5]
    assert one.achieved.micro[3].recall == 1
    assert one.achieved.micro[3].precision == pytest.approx(present.mean())


def test_without_a_image_everything_but_the_count_of_names_is_undefined():
    scores, present, known = drawn()
    one = compute_ranking_results(scores, present, known, rows=np.arange(0), columns=np.arange(9))
    assert (one.candidates, one.images, one.labels_without_positives) == (9, 0, 9)
    assert np.isnan(
        [one.labels_per_image, one.achieved.micro[3].f1, one.achieved.macro[5].f1]
    ).all()
    assert np.isnan(one.achieved.mean_average_precision)
    zero_filled = one.achieved.macro_zero_filled[5]
    assert (zero_filled.precision, zero_filled.recall, zero_filled.f1) == (0, 0, 0)


def test_class_means_of_nothing_right_are_zero():
    scores, present = np.array([[4.0, 3, 2, 1]]), np.array([[False, False, False, True]])
    found = whole(scores, present, np.ones((1, 4), bool)).achieved
    assert found.macro[3].f1 == found.macro_zero_filled[3].f1 == 0
