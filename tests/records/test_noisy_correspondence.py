import json
from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import noisy_caption_rows

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/vacsr_noise.json").read_text())


def test_the_permutation_equals_the_released_code():
    rows = noisy_caption_rows(GOLDEN["length"], GOLDEN["ratio"], seed=0)
    assert rows.tolist() == GOLDEN["caption_index_map"]
    assert (rows == np.arange(20)).sum() == GOLDEN["fixed_points_among_all"]
    assert (rows // 5 != np.arange(20) // 5).sum() == GOLDEN["pairs_with_wrong_image"]


@pytest.mark.parametrize("ratio", [0.2, 0.5])
def test_the_fraction_of_wrong_images_equals_the_released_code_on_coco(ratio):
    rows = noisy_caption_rows(GOLDEN["coco_length"], ratio, seed=0)
    is_wrong = rows // 5 != np.arange(len(rows)) // 5
    assert is_wrong.mean() == pytest.approx(GOLDEN["wrong_image_fraction"][str(ratio)], abs=1e-15)


@pytest.mark.parametrize(("ratio", "n_selected"), [(0.0, 0), (0.29, 2), (0.5, 5), (1.0, 10)])
def test_at_most_the_floor_of_the_ratio_is_permuted(ratio, n_selected):
    largest = 0
    for seed in range(30):
        rows = noisy_caption_rows(10, ratio, seed=seed)
        assert sorted(rows) == list(range(10))
        largest = max(largest, int((rows != np.arange(10)).sum()))
    assert largest == n_selected


def test_the_random_numbers_of_the_caller_do_not_change():
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    first = noisy_caption_rows(50, 0.5, seed=3)
    assert np.random.rand() == expected
    assert noisy_caption_rows(50, 0.5, seed=3).tolist() == first.tolist()
    assert noisy_caption_rows(50, 0.5, seed=4).tolist() != first.tolist()


@pytest.mark.parametrize("ratio", [-0.1, 1.01, np.nan])
def test_a_ratio_is_in_the_unit_interval(ratio):
    with pytest.raises(InputError, match=r"ratio of noisy captions must be in \[0, 1\]; got"):
        noisy_caption_rows(10, ratio, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_has_32_bits(seed):
    with pytest.raises(InputError, match=r"seed must be at least 0 and below 2\*\*32; got"):
        noisy_caption_rows(10, 0.5, seed=seed)
