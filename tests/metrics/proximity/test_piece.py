import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import (
    ece,
    neighbour_proximity,
    noise_floor,
    piece,
)

TEN_P = [[p] for p in (0.05, 0.12, 0.31, 0.38, 0.55, 0.62, 0.71, 0.86, 0.93, 0.97)]
TEN_Y = [[y] for y in (0, 0, 0, 1, 1, 0, 1, 1, 1, 1)]
TEN_NEAR = (0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5, 0.55)


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    p = rng.random((300, 5))
    y = (rng.random((300, 5)) < p).astype(float)
    known = rng.random((300, 5)) < 0.7
    known[:, 0] = True
    return p, y, rng.standard_normal((300, 4)), known


def test_ten_decisions_by_hand():
    assert piece(TEN_P, TEN_Y, TEN_NEAR, bins=5, groups=2) == pytest.approx(0.27, abs=1e-12)
    assert piece(TEN_P, TEN_Y, TEN_NEAR, bins=5, groups=1) == pytest.approx(0.15, abs=1e-12)


def test_equals_cells_written_out(images):
    p, y, features, known = images
    near = neighbour_proximity(features)
    group = np.argsort(np.argsort(near)) * 6 // 300
    sums = {}
    for i in range(300):
        for c in range(5):
            if known[i, c]:
                cell = group[i], int(p[i, c] * 8)
                sums[cell] = sums.get(cell, 0.0) + p[i, c] - y[i, c]
    expected = sum(map(abs, sums.values())) / known.sum()
    assert piece(p, y, near, known, bins=8, groups=6) == pytest.approx(expected, rel=1e-9)


def test_is_never_below_the_plain_error(images):
    p, y, features, known = images
    near = neighbour_proximity(features)
    for groups in (1, 3, 10):
        assert piece(p, y, near, known, groups=groups) >= ece(p, y, known, bins=10) - 1e-12
    assert piece(p, y, near, known, groups=1) == pytest.approx(ece(p, y, known, bins=10))


def test_shows_what_cancels_between_the_crowd_and_the_outliers():
    p = np.full((100, 1), 0.5)
    y = np.repeat([[1.0], [0.0]], 50, axis=0)
    near = np.repeat([0.9, 0.1], 50)
    assert ece(p, y) == pytest.approx(0)
    assert piece(p, y, near) == pytest.approx(0.5)


@pytest.mark.parametrize("same", [1, 0], ids=["images", "twice the images"])
def test_the_order_of_images_does_not_matter_even_where_they_are_the_same(same, images):
    p, y, features, _ = images
    features = features if same else np.repeat(features[:100], 3, axis=0)
    order = np.random.default_rng(1).permutation(300)
    near = np.round(neighbour_proximity(features), 6)
    assert piece(p, y, near) == pytest.approx(piece(p[order], y[order], near[order]), rel=1e-9)


def test_it_has_a_noise_floor(images):
    p, y, features, _ = images
    near = neighbour_proximity(features)
    floor = noise_floor(lambda p, y, known: piece(p, y, near, known), p)
    assert 0.5 * floor < piece(p, y, near) < 2 * floor


def test_without_known_targets_the_error_is_undefined():
    nothing = np.full((3, 1), np.nan)
    assert np.isnan(piece(np.zeros((3, 1)), nothing, [1, 2, 3]))


def test_invalid_arguments_are_refused():
    p, y = [[0.5], [0.5]], [[0], [1]]
    with pytest.raises(InputError, match=r"proximity \(n\) has shape \(3,\)"):
        piece(p, y, [1, 2, 3])
    with pytest.raises(InputError, match=r"proximity must be finite; got 1"):
        piece(p, y, [1, np.nan])
    with pytest.raises(ConfigError, match=r"groups must be .* got 0"):
        piece(p, y, [1, 2], groups=0)
    with pytest.raises(ConfigError, match=r"bins must be .* got 0"):
        piece(p, y, [1, 2], bins=0)
    with pytest.raises(InputError, match=r"probabilities must be in \[0, 1\].*1\.3"):
        piece([[1.3], [0.5]], y, [1, 2])
