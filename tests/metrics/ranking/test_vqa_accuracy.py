import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data import score_question_answers
from surelabel.errors import InputError
from surelabel.metrics import precision_at_k, vqa_accuracy, vqa_accuracy_per_question

LEVELS = [0.0, 0.3, 0.6, 0.9, 1.0]  # targets of answers of 0, 1, 2, 3 and more of ten people


@pytest.fixture
def graded():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (1200, 5)) / 3  # with ties, and more rows than a block
    return scores, rng.choice(LEVELS, (1200, 5)), rng.random((1200, 5)) < 0.7


def accuracies_by_hand(scores, targets, known):
    """Accuracy of each question, with loops over answers; None without a known target."""
    for row, truth, given_targets in zip(scores, targets, known, strict=True):
        best, total, n_tied = None, 0.0, 0
        for score, target, is_given in zip(row, truth, given_targets, strict=True):
            if is_given and (best is None or score > best):
                best, total, n_tied = score, target, 1
            elif is_given and score == best:
                total, n_tied = total + target, n_tied + 1
        yield total / n_tied if n_tied else None


def test_equals_loops_over_answers_with_ties_and_unknown_targets(graded):
    expected = list(accuracies_by_hand(*graded))
    assert None in expected
    values = [np.nan if value is None else value for value in expected]
    np.testing.assert_allclose(vqa_accuracy_per_question(*graded), values)
    assert vqa_accuracy(*graded) == pytest.approx(np.nanmean(values))


def test_tied_answers_count_with_their_mean():
    assert vqa_accuracy([[0.7, 0.7, 0.1]], [[1.0, 0.3, 0.0]]) == pytest.approx(0.65)
    assert vqa_accuracy([[0.7, 0.1, 0.7]], [[1.0, 0.0, 0.3]]) == pytest.approx(0.65)


def accuracy_of_the_evaluation_server(answer, annotations):
    """Accuracy of one answer: for each annotator, compare with the answers of all others."""
    accuracies = []
    for annotator in annotations:
        others = [one for one in annotations if one["id"] != annotator["id"]]
        matching = [one for one in others if one["answer"] == answer]
        accuracies.append(min(1.0, len(matching) / 3))
    return sum(accuracies) / len(accuracies)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("xyzw"), min_size=10, max_size=10), min_size=1, max_size=5),
    st.integers(0, 2**31),
)
def test_equals_the_evaluation_over_all_subsets_of_nine_annotators(answers, seed):
    names = ["x", "y", "z"]  # w is in no column
    ids = [f"{number}.jpg" for number in range(len(answers))]
    data = score_question_answers(ids, ids, answers, names=names)
    scores = np.random.default_rng(seed).random((len(answers), 3))
    expected = [
        accuracy_of_the_evaluation_server(
            names[row.argmax()], [{"id": i, "answer": text} for i, text in enumerate(texts)]
        )
        for row, texts in zip(scores, answers, strict=True)
    ]
    assert vqa_accuracy(scores, data.targets) == pytest.approx(np.mean(expected))


def test_equals_precision_at_one_for_binary_targets(graded):
    scores, targets, known = graded
    binary = (targets > 0.5).astype(float)
    expected = precision_at_k(scores, binary, known, k=1)
    assert vqa_accuracy(scores, binary, known) == pytest.approx(expected)


def test_only_the_order_of_the_scores_counts(graded):
    scores, targets, known = graded
    expected = vqa_accuracy(scores, targets, known)
    assert vqa_accuracy(5 * scores - 100, targets, known) == expected
    order = np.random.default_rng(1).permutation(5)
    columns = (array[:, order] for array in graded)
    assert vqa_accuracy(*columns) == pytest.approx(expected)


def test_unknown_targets_have_no_influence(graded):
    scores, targets, known = graded
    expected = vqa_accuracy(scores, targets, known)
    assert vqa_accuracy(scores, np.where(known, targets, np.nan)) == expected
    assert vqa_accuracy(scores, np.where(known, targets, 1 - targets), known) == expected
    assert vqa_accuracy(scores, targets) != expected


def test_is_undefined_without_known_targets():
    assert np.isnan(vqa_accuracy(np.empty((0, 3)), np.empty((0, 3))))
    assert np.isnan(vqa_accuracy(np.empty((2, 0)), np.empty((2, 0))))
    values = vqa_accuracy_per_question([[1.0, 2.0], [2.0, 1.0]], [[np.nan, np.nan], [0.3, np.nan]])
    np.testing.assert_array_equal(values, [np.nan, 0.3])


@pytest.mark.parametrize(
    ("scores", "targets", "message"),
    [
        ([[0.1, np.nan]], [[1.0, 0.0]], r"scores must be finite; got 1 NaN or infinite value"),
        ([[0.1, 0.2]], [[1.3, 0.0]], r"targets must be in \[0, 1\].*1\.3"),
        ([[0.1, 0.2]], [[1.0, 0.0, 0.0]], r"\(1, 2\).*\(1, 3\)"),
    ],
)
def test_invalid_input_is_refused(scores, targets, message):
    with pytest.raises(InputError, match=message):
        vqa_accuracy(scores, targets)
