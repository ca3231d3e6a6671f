import math

import numpy as np
import pytest

from surelabel.bench.negation.query_embeddings import (
    arithmetic_embeddings,
    negation_sentences,
    optimized_embeddings,
)
from surelabel.encoders import load_encoder

NAMES = ("lion", "zebra", "horse")
PAIRS = np.array([[0, 1], [2, 0]])


@pytest.fixture(scope="module")
def texts():
    encoder = load_encoder("tiny-vit")
    return encoder.encode_labels(NAMES, ("a photo of a {}.",)).double().numpy()


def unit(vector):
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector]


def test_sentences_name_both_labels():
    found = negation_sentences(NAMES, "a {a} without a {b}.", PAIRS)
    assert found == ["a lion without a zebra.", "a horse without a lion."]


def test_arithmetic_subtracts_the_excluded_label(texts):
    found = arithmetic_embeddings(texts, PAIRS, 0.3)
    for row, (a, b) in enumerate(PAIRS.tolist()):
        expected = unit([x - 0.3 * y for x, y in zip(texts[a], texts[b], strict=True)])
        assert found[row] == pytest.approx(expected)


def optimized_by_hand(start, positives, negatives, steps, size, v, u):
    e, d = list(start), range(len(start))
    for _ in range(steps):
        gradient = [
            u * (e[i] - start[i])
            - sum(p[i] for p in positives) / len(positives)
            + v * sum(n[i] for n in negatives) / len(negatives)
            for i in d
        ]
        e = unit([e[i] - size * gradient[i] for i in d])
    return e


def test_optimization_equals_gradient_steps_by_hand(texts):
    start = texts[[0]]
    positives, negatives = texts[[0, 2]][None], texts[[1, 2]][None]
    found = optimized_embeddings(
        start,
        positives,
        negatives,
        steps=4,
        step_size=0.2,
        negative_weight=0.7,
        start_weight=0.5,
    )
    expected = optimized_by_hand(start[0], positives[0], negatives[0], 4, 0.2, 0.7, 0.5)
    assert found[0] == pytest.approx(expected)


def test_optimization_moves_away_from_the_excluded_label(texts):
    arguments = (texts[[0]], texts[[0]][None], texts[[1]][None])
    settings = {"step_size": 0.1, "negative_weight": 0.5, "start_weight": 0.0}
    cosines = [
        (optimized_embeddings(*arguments, steps=steps, **settings) @ texts[1]).item()
        for steps in (0, 1, 5, 20)
    ]
    assert cosines == sorted(cosines, reverse=True)
    assert cosines[0] == pytest.approx(texts[0] @ texts[1])
