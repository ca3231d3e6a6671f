import math

import numpy as np
import pytest

from surelabel.calibration import Dac, LabelTexts, Platt
from surelabel.errors import DataError, InputError, NotFitted

X = np.array([[0.1, 0.3], [0.2, 0.4], [0.5, -0.2]])
Y = np.array([[0, 0], [1, 1], [1, 0]])


def texts(count, seed):
    """Return random vectors whose tuned versions are near the others, as if prompts moved them."""
    rng = np.random.default_rng(seed)
    zero_shot = rng.normal(size=(count, 6)) + 2
    return LabelTexts(zero_shot, zero_shot + 0.5 * rng.normal(size=(count, 6)))


def fitted(**settings):
    return Dac(**settings).fit(X, Y)


def unit(vector):
    length = math.sqrt(sum(value**2 for value in vector))
    return [value / length for value in vector]


def mean_distance(vector, others, k):
    distances = sorted(math.dist(unit(vector), unit(other)) for other in others)
    return sum(distances[:k]) / len(distances[:k]), distances[0]


@pytest.mark.parametrize("neighbours", [1, 3, 5, 20])
def test_the_factors_are_those_of_the_formula(neighbours):
    fit_texts, new_texts = texts(8, seed=0), texts(4, seed=1)
    found = fitted(neighbours=neighbours).with_label_texts(fit_texts, new_texts).factors
    for c in range(4):
        tuned, nearest = mean_distance(new_texts.tuned[c], fit_texts.tuned, neighbours)
        zero_shot, _ = mean_distance(new_texts.zero_shot[c], fit_texts.zero_shot, neighbours)
        assert nearest > 0.05
        assert found[c] == pytest.approx(math.exp(-tuned) / math.exp(-zero_shot))


def test_logits_are_those_of_platt_scaling_times_the_factors():
    new = fitted().with_label_texts(texts(8, seed=0), texts(3, seed=1))
    x = np.random.default_rng(2).normal(size=(7, 3))
    np.testing.assert_allclose(new.logits(x), Platt().fit(X, Y).logits(x) * new.factors)
    assert len(set(new.factors)) == 3


def test_a_label_that_tuning_moved_away_gets_probabilities_nearer_to_one_half():
    fit_texts = LabelTexts(np.eye(3)[:2], np.eye(3)[:2])
    zero_shot, away = np.array([[0.6, 0.6, 0.5]]), np.array([[0.1, 0.1, 1.0]])
    moved = fitted().with_label_texts(fit_texts, LabelTexts(zero_shot, away))
    back = fitted().with_label_texts(fit_texts, LabelTexts(away, zero_shot))
    assert moved.factors[0] < 1 < back.factors[0]
    assert moved.factors[0] * back.factors[0] == pytest.approx(1)


def test_labels_of_the_fit_have_a_factor_of_one_in_any_order():
    fit_texts = texts(8, seed=0)
    order = [5, 1, 7]
    some = LabelTexts(fit_texts.zero_shot[order], fit_texts.tuned[order])
    np.testing.assert_array_equal(fitted().with_label_texts(fit_texts, some).factors, 1)
    np.testing.assert_array_equal(fitted().factors, 1)


def test_a_label_is_one_of_the_fit_within_a_distance_of_the_tuned_vectors():
    fit_texts = LabelTexts(np.eye(2), np.eye(2))
    for angle, is_one in ((0.049, True), (0.051, False)):
        near = LabelTexts(np.array([[1.0, 1.0]]), np.array([[math.cos(angle), math.sin(angle)]]))
        found = fitted().with_label_texts(fit_texts, near).factors
        assert (found[0] == 1) == is_one


def test_without_tuning_all_factors_are_one():
    fit_texts, new_texts = texts(8, seed=0).zero_shot, texts(4, seed=1).zero_shot
    new = fitted().with_label_texts(
        LabelTexts(fit_texts, fit_texts), LabelTexts(new_texts, new_texts)
    )
    np.testing.assert_array_equal(new.factors, 1)


def test_the_lengths_of_text_vectors_have_no_influence():
    fit_texts, new_texts = texts(8, seed=0), texts(4, seed=1)
    longer = LabelTexts(3 * new_texts.zero_shot, 5 * new_texts.tuned)
    np.testing.assert_allclose(
        fitted().with_label_texts(fit_texts, longer).factors,
        fitted().with_label_texts(fit_texts, new_texts).factors,
    )


def test_the_fitted_calibrator_is_not_changed_by_other_labels():
    first = fitted()
    first.with_label_texts(texts(8, seed=0), texts(5, seed=1))
    np.testing.assert_array_equal(first.factors, 1)
    assert first.logits(X).shape == X.shape


def test_factors_come_back_from_their_state():
    new = fitted().with_label_texts(texts(8, seed=0), texts(2, seed=1))
    np.testing.assert_array_equal(Dac().restore(new.state()).logits(X), new.logits(X))


def test_the_number_of_neighbours_comes_back_for_other_labels():
    back = Dac().restore(fitted(neighbours=2).state())
    assert back.neighbours == 2
    np.testing.assert_array_equal(
        back.with_label_texts(texts(8, seed=0), texts(2, seed=1)).factors,
        fitted(neighbours=2).with_label_texts(texts(8, seed=0), texts(2, seed=1)).factors,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"tuned_distances": [0.1, -0.1]},
        {"zero_shot_distances": [0.1, 2.1]},
        {"neighbours": 0},
        {"neighbours": 1.5},
    ],
    ids=str,
)
def test_saved_distances_are_those_of_unit_vectors_and_neighbours_are_a_count(change):
    state = fitted().state() | change
    with pytest.raises(DataError, match=r"distances of text vectors must be in \[0, 2\]"):
        Dac().restore(state)


def test_text_vectors_must_be_finite_and_not_zero():
    good = texts(3, seed=0)
    for value in (0.0, np.nan, np.inf):
        bad = good.tuned.copy()
        bad[1] = value
        with pytest.raises(InputError, match="finite and nonzero; got 1 invalid vector"):
            fitted().with_label_texts(good, LabelTexts(good.zero_shot, bad))


def test_text_vectors_must_have_the_width_of_those_of_the_fit():
    with pytest.raises(InputError, match=r"\(3, 5\).*\(3, 6\)"):
        fitted().with_label_texts(texts(3, seed=0), LabelTexts(np.ones((3, 5)), np.ones((3, 5))))


def test_there_are_no_factors_before_the_fit():
    with pytest.raises(NotFitted, match="Dac is not fitted"):
        Dac().with_label_texts(texts(3, seed=0), texts(3, seed=1))
