import numpy as np
import pytest

from surelabel.errors import ConfigError, InputError
from surelabel.metrics import ece, noise_floor, piece, piece_of_neighbours, proximity

TEN_P = [[p] for p in (0.05, 0.12, 0.31, 0.38, 0.55, 0.62, 0.71, 0.86, 0.93, 0.97)]
TEN_Y = [[y] for y in (0, 0, 0, 1, 1, 0, 1, 1, 1, 1)]
TEN_NEAR = (0.9, 0.1, 0.8, 0.2, 0.7, 0.3, 0.6, 0.4, 0.5, 0.55)


@pytest.fixture
def pictures():
    rng = np.random.default_rng(0)
    p = rng.random((300, 5))
    y = (rng.random((300, 5)) < p).astype(float)
    known = rng.random((300, 5)) < 0.7
    known[:, 0] = True
    return p, y, rng.standard_normal((300, 4)), known


def test_ten_decisions_by_hand():
    assert piece(TEN_P, TEN_Y, TEN_NEAR, bins=5, groups=2) == pytest.approx(0.27, abs=1e-12)
    assert piece(TEN_P, TEN_Y, TEN_NEAR, bins=5, groups=1) == pytest.approx(0.15, abs=1e-12)


def test_equals_cells_written_out(pictures):
    p, y, features, known = pictures
    near = proximity(features)
    group = np.argsort(np.argsort(near)) * 6 // 300
    sums = {}
    for i in range(300):
        for c in range(5):
            if known[i, c]:
                cell = group[i], int(p[i, c] * 8)
                sums[cell] = sums.get(cell, 0.0) + p[i, c] - y[i, c]
    expected = sum(map(abs, sums.values())) / known.sum()
    assert piece(p, y, near, known, bins=8, groups=6) == pytest.approx(expected, rel=1e-9)


def test_is_never_below_the_plain_error(pictures):
    p, y, features, known = pictures
    near = proximity(features)
    for groups in (1, 3, 10):
        assert piece(p, y, near, known, groups=groups) >= ece(p, y, known, bins=10) - 1e-12
    assert piece(p, y, near, known, groups=1) == pytest.approx(ece(p, y, known, bins=10))


def test_shows_what_cancels_between_the_crowd_and_the_outliers():
    p = np.full((100, 1), 0.5)
    y = np.repeat([[1.0], [0.0]], 50, axis=0)
    near = np.repeat([0.9, 0.1], 50)
    assert ece(p, y) == pytest.approx(0)
    assert piece(p, y, near) == pytest.approx(0.5)


def test_neighbours_written_out(pictures):
    p, y, features, known = pictures
    known = known.copy()
    known[7] = False
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    judged = [i for i in range(300) if known[i].any()]
    gaps = []
    for i in judged:
        near = sorted((j for j in judged if j != i), key=lambda j: -unit[i] @ unit[j])[:10]
        there = known[near]
        gaps.append(abs(p[near][there].mean() - y[near][there].mean()))
    found = piece_of_neighbours(p, y, features, known)
    assert found == pytest.approx(np.mean(gaps), rel=1e-9)


@pytest.mark.parametrize("same", [1, 0], ids=["pictures", "twice the pictures"])
def test_the_order_of_pictures_does_not_matter_even_where_they_are_the_same(same, pictures):
    p, y, features, _ = pictures
    features = features if same else np.repeat(features[:100], 3, axis=0)
    order = np.random.default_rng(1).permutation(300)
    expected = piece_of_neighbours(p[order], y[order], features[order])
    assert piece_of_neighbours(p, y, features) == pytest.approx(expected, rel=1e-9)
    near = np.round(proximity(features), 6)
    assert piece(p, y, near) == pytest.approx(piece(p[order], y[order], near[order]), rel=1e-9)


def test_its_noise_can_be_told(pictures):
    p, y, features, _ = pictures
    near = proximity(features)
    floor = noise_floor(lambda p, y, known: piece(p, y, near, known), p)
    assert 0.5 * floor < piece(p, y, near) < 2 * floor


def test_nothing_known_or_nobody_near_is_undefined():
    nothing = np.full((3, 1), np.nan)
    assert np.isnan(piece(np.zeros((3, 1)), nothing, [1, 2, 3]))
    assert np.isnan(piece_of_neighbours(np.zeros((3, 1)), nothing, np.ones((3, 2))))
    assert np.isnan(piece_of_neighbours([[0.5]], [[1]], [[1.0, 0.0]]))


def test_what_does_not_fit_is_refused():
    p, y = [[0.5], [0.5]], [[0], [1]]
    with pytest.raises(InputError, match=r"proximity \(n\) has shape \(3,\)"):
        piece(p, y, [1, 2, 3])
    with pytest.raises(InputError, match=r"proximity must be finite numbers. Got 1"):
        piece(p, y, [1, np.nan])
    with pytest.raises(ConfigError, match=r"groups must be .* Got 0"):
        piece(p, y, [1, 2], groups=0)
    with pytest.raises(ConfigError, match=r"bins must be .* Got 0"):
        piece(p, y, [1, 2], bins=0)
    with pytest.raises(InputError, match=r"features \(n d\) has shape \(3, 2\)"):
        piece_of_neighbours(p, y, np.ones((3, 2)))
    with pytest.raises(InputError, match=r"probabilities must lie in \[0, 1\].*1\.3"):
        piece([[1.3], [0.5]], y, [1, 2])
