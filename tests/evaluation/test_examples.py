import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from surelabel.evaluation.examples import (
    LABELS_PER_EXAMPLE,
    MAX_EXAMPLES,
    ExampleLabel,
    select_evaluation_examples,
)
from surelabel.records import Predictions


def predictions(logits, calibration="platt", scores=None):
    n, c = np.shape(logits)
    logits = np.asarray(logits, dtype=np.float32)
    return Predictions(
        [f"{i}.jpg" for i in range(n)],
        [f"label {k}" for k in range(c)],
        logits if scores is None else np.asarray(scores, dtype=np.float32),
        logits,
        calibration,
    )


def rows_of(examples):
    return [int(example.path.removesuffix(".jpg")) for example in examples]


def log_loss(logits, targets, known):
    """Mean log loss over the known targets of one image, from its definition."""
    losses = []
    for logit, target, is_known in zip(logits, targets, known, strict=True):
        if is_known:
            p = 1 / (1 + math.exp(-float(logit)))
            losses.append(-math.log(p if target else 1 - p))
    return sum(losses) / len(losses)


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(scale=2, size=(40, 5))


@pytest.fixture
def targets():
    return np.random.default_rng(1).integers(0, 2, (40, 5)).astype(float)


@pytest.fixture
def known():
    """Every image but 3 has a known target."""
    known = np.random.default_rng(2).random((40, 5)) < 0.8
    known[:, 0] |= ~known.any(axis=1)
    known[3] = False
    return known


def test_the_worst_come_in_decreasing_and_the_best_in_increasing_order_of_log_loss(
    logits, targets, known
):
    made = predictions(logits)
    worst, best = select_evaluation_examples(made, targets, known)
    losses = {
        row: log_loss(made.logits[row], targets[row], known[row]) for row in range(40) if row != 3
    }
    rising = sorted(losses, key=losses.get)
    with_two = [row for row in rising if (targets[row, known[row]] == 1).sum() >= 2]
    assert rows_of(worst) == rising[::-1][:MAX_EXAMPLES]
    assert rows_of(best) == with_two[:MAX_EXAMPLES]
    for example, row in zip((*worst, *best), rows_of((*worst, *best)), strict=True):
        assert example.loss == pytest.approx(losses[row])


def test_without_calibration_the_loss_is_one_minus_average_precision(logits, targets, known):
    targets[5] = 0  # no positive label: average precision is undefined
    made = predictions(-logits, None, scores=logits)
    worst, best = select_evaluation_examples(made, targets, known)
    losses = {
        row: 1 - average_precision_score(targets[row, known[row]], made.scores[row, known[row]])
        for row in range(40)
        if (targets[row, known[row]] == 1).any()
    }
    assert 5 not in losses
    for examples, sign in ((worst, -1), (best, 1)):
        found = [example.loss for example in examples]
        assert found == pytest.approx([losses[row] for row in rows_of(examples)])
        assert found == sorted(found, key=lambda loss: sign * loss)
    assert worst[-1].loss == pytest.approx(sorted(losses.values())[-MAX_EXAMPLES])


def test_equal_losses_keep_the_order_of_the_images():
    """The best begin at the first image, the worst at the last one; 40 defeat an unstable sort."""
    logits = np.tile([[1.0, 1.0], [3.0, 3.0], [-2.0, -2.0], [2.0, 2.0]], (10, 1))
    worst, best = select_evaluation_examples(
        predictions(logits), np.ones((40, 2)), np.ones((40, 2), dtype=bool)
    )
    assert rows_of(best) == [1, 5, 9, 13, 17, 21]
    assert rows_of(worst) == [38, 34, 30, 26, 22, 18]


def test_labels_of_equal_score_keep_their_order():
    logits, targets = np.arange(40)[None] % 4, np.ones((1, 40))
    _, (only,) = select_evaluation_examples(predictions(logits), targets, targets > 0)
    order = [*range(3, 40, 4), *range(2, 40, 4), *range(1, 40, 4), *range(0, 40, 4)]
    assert [label.name for label in only.labels] == [f"label {c}" for c in order[:6]]
    assert only.missed_labels == tuple(f"label {c}" for c in order[6:])


def test_an_image_among_the_best_is_not_among_the_worst():
    logits, targets = np.array([[3.0, 3.0], [2.0, 2.0], [-1.0, 1.0]]), np.ones((3, 2))
    targets[2, 1] = 0
    worst, best = select_evaluation_examples(predictions(logits), targets, targets >= 0)
    assert (rows_of(best), rows_of(worst)) == ([0, 1], [2])


def test_unknown_positive_labels_do_not_count_among_the_two_of_the_best():
    known = np.array([[True, True, False], [True, True, True]])
    targets = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    worst, best = select_evaluation_examples(predictions(4 * targets - 2), targets, known)
    assert (rows_of(best), rows_of(worst)) == ([1], [0])


@pytest.mark.parametrize("calibration", ["platt", None])
def test_labels_of_an_example_fall_in_score_and_what_follows_is_missed(calibration):
    scores = np.array([[0.0, 3.0, 1.0, 3.0, -1.0, -2.0, 2.0, 1.0, -3.0]])
    targets = np.array([[1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0]])
    known = np.ones((1, 9), dtype=bool)
    known[0, [2, 5]] = False
    made = predictions(scores if calibration else 0 * scores, calibration, scores=scores)
    _, (only,) = select_evaluation_examples(made, targets, known)
    order = [1, 3, 6, 2, 7, 0]  # equal scores: in the order of the labels
    assert len(order) == LABELS_PER_EXAMPLE
    are_positive = [False, True, True, None, False, True]
    values = [1 / (1 + math.exp(-s)) if calibration else s for s in scores[0, order]]
    assert only.labels == tuple(
        ExampleLabel(f"label {c}", pytest.approx(value), is_positive)
        for c, value, is_positive in zip(order, values, are_positive, strict=True)
    )
    assert only.missed_labels == ("label 4", "label 8")  # label 5 is unknown
