"""Shapes of queries put together."""

from math import isnan, nan, sqrt

import pytest

from surelabel.retrieval.query_average_precision import (
    ShapePrecision,
    query_average_precision_of_shapes,
)


def whole(shape, n, mean):
    return ShapePrecision(
        *shape, queries=n, fulfilled=n, evaluated=n, mean=mean, standard_error=0.0
    )


def test_shapes_weigh_as_much_as_they_have_fulfilled_queries():
    got = query_average_precision_of_shapes(
        [whole((1, 0), 10, 0.8), whole((1, 1), 60, 0.5), whole((2, 0), 30, 0.2)], 3
    )
    assert got.mean == pytest.approx((10 * 0.8 + 60 * 0.5 + 30 * 0.2) / 100)
    assert got.per_length == pytest.approx({1: 0.8, 2: (60 * 0.5 + 30 * 0.2) / 90})
    assert got.queries == {1: 10, 2: 90}
    assert (got.standard_error, got.seed) == (0, 3)


def test_the_error_comes_from_the_means_and_from_the_weights_of_what_was_drawn():
    drawn = ShapePrecision(
        2, 0, queries=500, fulfilled=100, evaluated=20, mean=0.4, standard_error=0.05, draws=100
    )
    got = query_average_precision_of_shapes([drawn, whole((1, 1), 300, 0.8)], 0)
    assert got.mean == pytest.approx((100 * 0.4 + 300 * 0.8) / 400)
    weight = (1 - 20 / 100) / 20  # relative variance of the number of fulfilled queries
    expected = 100 / 400 * sqrt(0.05**2 + weight * (0.4 - got.mean) ** 2)
    assert got.standard_error == pytest.approx(expected)
    assert got.skipped == {2: 400}


def test_a_shape_that_nothing_fulfils_weighs_nothing():
    got = query_average_precision_of_shapes([whole((1, 0), 4, 0.5), whole((1, 1), 0, nan)], 0)
    assert got.mean == 0.5
    assert isnan(got.per_length[2])


def test_nothing_at_all_is_undefined():
    assert isnan(query_average_precision_of_shapes([], 0).mean)
