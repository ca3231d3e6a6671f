import numpy as np
import pytest
import torch
from torchmetrics.classification import MultilabelAveragePrecision
from torchmetrics.retrieval import RetrievalPrecision

from surelabel.errors import InputError
from surelabel.evaluation import evaluate_unseen_classes
from surelabel.metrics import brier_skill, ece, log_loss, noise_floor

SEEN, UNSEEN = [0, 2, 3, 6, 7], [1, 4, 5]


def drawn(n=60, c=8, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random((n, c)) ** 2
    return p, (rng.random((n, c)) < p).astype(float)


def by_hand(scores, targets, columns, rows, k):
    """Precision, recall and F1 of the k best, one image and one label at a time."""
    hits = chosen = present = 0
    for i in rows:
        best = sorted(columns, key=lambda j: -scores[i][j])[:k]
        hits += sum(targets[i][j] for j in best)
        chosen += len(best)
        present += sum(targets[i][j] for j in columns)
    precision, recall = hits / chosen, hits / present
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("k", [3, 5])
def test_each_protocol_counts_its_own_images_and_names(k):
    scores, targets = drawn()
    found = evaluate_unseen_classes(scores, targets, SEEN)
    every, names = range(60), range(8)
    with_one = [i for i in every if any(targets[i][j] for j in UNSEEN)]
    assert 0 < len(with_one) < 60
    for one, columns, rows in (
        (found.zsl, UNSEEN, with_one),
        (found.zsl_all_images, UNSEEN, every),
        (found.gzsl, names, every),
    ):
        at = one.achieved.micro[k]
        assert (at.precision, at.recall, at.f1) == pytest.approx(
            by_hand(scores, targets, columns, rows, k)
        )
        assert (one.candidates, one.images) == (len(columns), len(rows))


def test_precision_is_that_of_torchmetrics_where_it_has_one():
    scores, targets = drawn()
    index = torch.arange(60).repeat_interleave(8)
    flat = torch.from_numpy(scores).flatten(), torch.from_numpy(targets).flatten().long()
    for k in (3, 5):
        other = RetrievalPrecision(top_k=k, empty_target_action="neg")(*flat, indexes=index)
        ours = evaluate_unseen_classes(scores, targets, SEEN).gzsl.achieved.micro[k].precision
        assert ours == pytest.approx(other.item(), abs=1e-6)


def test_average_precision_is_that_of_torchmetrics_on_both_sides():
    scores, targets = drawn()
    found = evaluate_unseen_classes(scores, targets, SEEN)
    each = MultilabelAveragePrecision(8, average=None)(
        torch.from_numpy(scores), torch.from_numpy(targets).long()
    )
    assert found.gzsl.achieved.mean_average_precision == pytest.approx(each.mean().item(), abs=1e-6)
    sides = found.metrics_by_group["mean_average_precision"]
    assert sides["seen"] == pytest.approx(each[SEEN].mean().item(), abs=1e-6)
    assert sides["unseen"] == pytest.approx(each[UNSEEN].mean().item(), abs=1e-6)
    assert sides["unseen"] == found.zsl_all_images.achieved.mean_average_precision


def test_images_without_an_unseen_label_lower_precision_and_leave_recall():
    found = evaluate_unseen_classes(*drawn(), SEEN)
    few, all_of_them = found.zsl.achieved.micro[3], found.zsl_all_images.achieved.micro[3]
    assert few.recall == all_of_them.recall
    assert few.precision > all_of_them.precision


def test_probabilities_of_both_sides_are_judged_by_themselves():
    p, targets = drawn()
    found = evaluate_unseen_classes(np.log(p), targets, SEEN, probabilities=p)
    for side, columns in (("seen", SEEN), ("unseen", UNSEEN)):
        own = p[:, columns], targets[:, columns]
        assert found.metrics_by_group["ece"][side] == ece(*own)
        assert found.metrics_by_group["brier_skill"][side] == brier_skill(*own)
        assert found.metrics_by_group["log_loss"][side] == log_loss(*own)
        assert found.noise_floor["ece"][side] == pytest.approx(noise_floor(ece, own[0]))


def test_probabilities_that_are_too_low_on_unseen_names_show_on_their_side_only():
    p, targets = drawn(2000)
    low = p.copy()
    low[:, UNSEEN] /= 2
    found = evaluate_unseen_classes(p, targets, SEEN, probabilities=low)
    assert found.metrics_by_group["ece"]["seen"] < 2 * found.noise_floor["ece"]["seen"]
    assert found.metrics_by_group["ece"]["unseen"] > 5 * found.noise_floor["ece"]["unseen"]


def test_without_probabilities_only_the_ranking_is_judged():
    found = evaluate_unseen_classes(*drawn(), SEEN)
    assert (set(found.metrics_by_group), found.noise_floor) == ({"mean_average_precision"}, {})


def test_unknown_labels_have_no_influence():
    scores, targets = drawn()
    known = np.random.default_rng(3).random(targets.shape) < 0.7
    by_flag = evaluate_unseen_classes(scores, targets, SEEN, known, scores)
    by_nan = evaluate_unseen_classes(scores, np.where(known, targets, np.nan), SEEN, None, scores)
    turned = evaluate_unseen_classes(
        scores, np.where(known, targets, 1 - targets), SEEN, known, scores
    )
    assert by_flag == by_nan == turned


def test_a_image_of_which_nothing_unseen_is_known_belongs_to_no_camp():
    scores, targets = drawn()
    known = np.ones(targets.shape, bool)
    known[:10, UNSEEN] = False
    found = evaluate_unseen_classes(scores, targets, SEEN, known)
    assert (found.zsl_all_images.images, found.gzsl.images) == (50, 60)


def test_the_order_of_columns_does_not_matter():
    scores, targets = drawn()
    one = evaluate_unseen_classes(scores, targets, SEEN, probabilities=scores)
    order = [*SEEN, *UNSEEN]
    other = evaluate_unseen_classes(
        scores[:, order], targets[:, order], range(5), probabilities=scores[:, order]
    )
    assert one.zsl == other.zsl
    assert one.gzsl.achieved.micro == other.gzsl.achieved.micro
    assert one.metrics_by_group["ece"]["unseen"] == pytest.approx(
        other.metrics_by_group["ece"]["unseen"]
    )


def test_one_seen_and_one_unseen_name_are_enough():
    found = evaluate_unseen_classes([[0.9, 0.1], [0.2, 0.6]], [[1, 0], [0, 1]], [1])
    assert (found.zsl.candidates, found.zsl.images, found.gzsl.candidates) == (1, 1, 2)
    assert found.gzsl.achieved.micro[3].recall == 1


def test_no_unseen_label_in_any_image_leaves_zero_shot_undefined():
    found = evaluate_unseen_classes([[0.9, 0.1]], [[1, 0]], [0])
    assert (found.zsl.images, found.zsl.labels_without_positives) == (0, 1)
    assert np.isnan(found.zsl.achieved.micro[3].f1)


@pytest.mark.parametrize("columns", [[], [0, 8], [-1], [0.0], [[0]], np.ones(8, bool)])
def test_columns_must_be_numbers_of_columns(columns):
    with pytest.raises(InputError, match=r"seen_columns must contain one or more column indices"):
        evaluate_unseen_classes(*drawn(), columns)


def test_bad_input_is_refused():
    scores, targets = drawn()
    with pytest.raises(InputError, match=r"At least one label must be unseen; got all 8 columns"):
        evaluate_unseen_classes(scores, targets, range(8))
    with pytest.raises(InputError, match="scores must be finite"):
        evaluate_unseen_classes(np.where(scores > 0.5, np.nan, scores), targets, SEEN)
    with pytest.raises(InputError, match=r"probabilities must be in \[0, 1\]"):
        evaluate_unseen_classes(scores, targets, SEEN, probabilities=scores * 9)
    with pytest.raises(InputError, match=r"targets \(n c\)"):
        evaluate_unseen_classes(scores, targets[:, 1:], SEEN)
    with pytest.raises(InputError, match="probabilities"):
        evaluate_unseen_classes(scores, targets, SEEN, probabilities=scores[:, 1:])
