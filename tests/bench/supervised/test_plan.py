import numpy as np
import pytest

from surelabel.bench.supervised.plan import FULL, QUICK, SUPERVISED_METHODS
from surelabel.methods import METHODS


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_image_counts_ascend_and_every_method_has_the_smallest(plan):
    assert list(plan.image_counts) == sorted(plan.image_counts)
    for method in plan.methods:
        assert plan.image_counts_of_method(method)[0] == plan.image_counts[0]


def test_methods_with_patches_have_no_large_samples():
    assert FULL.image_counts_of_method("dense_regions") == (25, 100, 500, 1500)
    for method in ("linear", "zero_shot", "multiple_instance_tiles"):
        assert FULL.image_counts_of_method(method) == FULL.image_counts


def test_the_number_of_fits_counts_the_seeds_of_each_method_and_sample_size():
    n_with_patches = sum(bool(set(METHODS[m].needs) - {"views"}) for m in SUPERVISED_METHODS)
    n_others = len(SUPERVISED_METHODS) - n_with_patches
    assert FULL.n_fits == n_with_patches * 4 * 5 + n_others * 6 * 5 - 8
    assert QUICK.n_fits == len(QUICK.methods) * 4 * 2


def test_larger_samples_contain_the_smaller_ones_of_the_same_seed():
    small, large = (FULL.sampled_rows(50, n, seed=1) for n in (5, 20))
    assert set(small) < set(large)
    assert len(set(large)) == 20
    assert list(large) == sorted(large)
    assert not np.array_equal(small, FULL.sampled_rows(50, 5, seed=2))
