"""Mean average precision over queries."""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from surelabel.errors import ConfigError, InputError
from surelabel.retrieval.conjunction_map import (
    mean_average_precision_of_conjunctions,
    number_of_queries_in_conjunction_map,
)
from surelabel.retrieval.literal_scores import (
    average_precision_of_literal_scores,
    compute_literal_scores,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "retrieval.json").read_text())


def test_the_recorded_precisions_and_counts_come_out():
    got = mean_average_precision_of_conjunctions(
        GOLDEN["log_odds"], GOLDEN["targets"], max_literals=5
    )
    assert got.mean == pytest.approx(GOLDEN["mean"], abs=1e-12)
    assert sum(got.queries.values()) == GOLDEN["queries"]
    for length, expected in GOLDEN["per_length"].items():
        n = int(length)
        assert got.per_length[n] == pytest.approx(expected["mAP"], abs=1e-12)
        assert got.skipped[n] == expected["skipped_no_relevant"]
        assert got.queries[n] + got.skipped[n] == expected["queries"]


@pytest.mark.parametrize("c", ["20", "80"])
def test_queries_are_counted_as_recorded(c):
    counts = {n: number_of_queries_in_conjunction_map(int(c), int(n)) for n in GOLDEN["counts"][c]}
    assert counts == GOLDEN["counts"][c]


def by_hand(logits, targets, most):
    """Average precision of every fulfilled query by its shape; NaN in the targets is unknown."""
    found = {}
    for length in range(1, most + 1):
        for columns in combinations(range(logits.shape[1]), length):
            given = ~np.isnan(targets[:, columns]).any(axis=1)
            for signs in product((1, -1), repeat=length):
                literals = list(zip(columns, signs, strict=True))
                p = np.prod([1 / (1 + np.exp(-s * logits[:, j])) for j, s in literals], axis=0)
                holds = np.all([targets[:, j] == (s > 0) for j, s in literals], axis=0)
                if 1 in signs and holds.any():
                    shape = (signs.count(1), signs.count(-1))
                    precision = average_precision_score(holds[given], p[given])
                    found.setdefault(shape, []).append(precision)
    return found


@pytest.mark.parametrize("unknown", [0, 0.2])
def test_every_shape_equals_scikit_learn(unknown):
    random = np.random.default_rng(2)
    logits, targets = random.normal(0, 2, (50, 5)), (random.random((50, 5)) < 0.3) * 1.0
    targets[random.random(targets.shape) < unknown] = np.nan
    expected = by_hand(logits, targets, 5)
    got = mean_average_precision_of_conjunctions(logits, targets)
    assert len(got.by_shape) == 15
    for cell in got.by_shape:
        values = expected.get((cell.wanted, cell.unwanted), [])
        assert cell.evaluated == cell.fulfilled == len(values)
        assert (cell.standard_error, cell.draws, cell.sampled_queries) == (0, 0, ())
        if values:
            assert cell.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert got.mean == pytest.approx(np.mean(np.concatenate([*expected.values()])), abs=1e-9)
    known = ~np.isnan(targets)
    again = mean_average_precision_of_conjunctions(logits, np.nan_to_num(targets, nan=1), known)
    assert again.mean == got.mean


def made(n=150, c=9):
    """Images of which the labels often come together."""
    random = np.random.default_rng(5)
    logits = random.normal(-2, 1.5, (n, c)) + 1.5 * random.standard_normal((n, 1))
    return logits, random.random((n, c)) < 1 / (1 + np.exp(-logits))


def test_samples_miss_the_exact_means_by_about_their_standard_errors():
    exact = mean_average_precision_of_conjunctions(*made(), max_literals=3)
    assert exact.standard_error == 0
    settings = {"max_literals": 3, "max_exact_literals": 1, "sample_size": 40}
    tries = [mean_average_precision_of_conjunctions(*made(), **settings, seed=s) for s in range(60)]
    for pick in (
        lambda q: (q.mean, q.standard_error, exact.mean),
        lambda q: (q.curve[2].mean, q.curve[2].standard_error, exact.curve[2].mean),
        lambda q: (q.by_shape[3].mean, q.by_shape[3].standard_error, exact.by_shape[3].mean),
    ):
        misses = np.array([(mean - true) / error for mean, error, true in map(pick, tries)])
        assert abs(misses.mean()) < 4 / np.sqrt(60)
        assert 0.7 < misses.std() < 1.4
    for found, true in zip(
        zip(*(q.by_shape for q in tries), strict=True), exact.by_shape, strict=True
    ):
        numbers = np.array([cell.fulfilled for cell in found])
        assert numbers.mean() == pytest.approx(true.fulfilled, rel=0.02)


def test_a_sample_can_be_drawn_again_and_evaluated_again():
    settings = {"max_exact_literals": 1, "sample_size": 30}
    one, same, other = (
        mean_average_precision_of_conjunctions(*made(), **settings, seed=seed) for seed in (7, 7, 8)
    )
    assert one == same
    assert one.by_shape[-2].sampled_queries != other.by_shape[-2].sampled_queries
    images = compute_literal_scores(*made())
    drawn = [cell for cell in one.by_shape if cell.draws]
    assert len(drawn) > 5
    for cell in drawn:
        values = [
            average_precision_of_literal_scores(images.query_scores(q), images.relevant_images(q))
            for q in cell.sampled_queries
        ]
        assert cell.evaluated == len(values) == 30
        assert cell.mean == np.mean(values)
        assert cell.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(30))
        assert all(sum(sign > 0 for _, sign in q) == cell.wanted for q in cell.sampled_queries)


def test_means_weigh_shapes_by_how_many_fulfilled_queries_they_have():
    got = mean_average_precision_of_conjunctions(*made(), max_exact_literals=2, sample_size=50)
    for point in got.curve:
        cells = [c for c in got.by_shape if c.wanted + c.unwanted == point.length and c.evaluated]
        expected = np.average([c.mean for c in cells], weights=[c.fulfilled for c in cells])
        assert point.mean == got.per_length[point.length] == pytest.approx(expected)
        every = number_of_queries_in_conjunction_map(9, point.length)
        assert got.skipped[point.length] == round(every - sum(c.fulfilled for c in cells))
    expected = np.average(
        [c.mean for c in got.by_shape if c.evaluated],
        weights=[c.fulfilled for c in got.by_shape if c.evaluated],
    )
    assert got.mean == pytest.approx(expected)


def test_progress_rises_to_the_whole():
    calls = []
    settings = {
        "max_exact_literals": 2,
        "sample_size": 400,
        "progress": lambda *now: calls.append(now),
    }
    mean_average_precision_of_conjunctions(*made(), **settings)
    assert len(calls) > 3
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert {total for _, total in calls} == {calls[-1][0]}


def test_without_any_fulfilled_query_the_mean_is_undefined():
    got = mean_average_precision_of_conjunctions(np.zeros((3, 2)), np.zeros((3, 2)))
    assert np.isnan(got.mean)
    assert (got.queries, got.skipped) == ({1: 0, 2: 0}, {1: 2, 2: 3})


def test_invalid_input_is_refused():
    with pytest.raises(InputError, match="must be finite"):
        mean_average_precision_of_conjunctions([[np.nan]], [[1]])
    with pytest.raises(InputError, match="targets must be in"):
        mean_average_precision_of_conjunctions([[1.0]], [[2]])


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"max_literals": 0}, r"max_literals must be .* at least 1; got 0"),
        ({"max_exact_literals": 1.5}, r"max_exact_literals must be a whole number .* got 1\.5"),
        ({"sample_size": 1}, r"sample_size must be .* at least 2; got 1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(setting, match):
    with pytest.raises(ConfigError, match=match):
        mean_average_precision_of_conjunctions([[1.0]], [[1]], **setting)
