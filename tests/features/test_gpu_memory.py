import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from surelabel.errors import InputError
from surelabel.features.gpu_memory import (
    FREE_MEMORY_SHARE,
    PROBED_IMAGES,
    GpuMemoryUse,
    batch_size_of_free_memory,
    free_gpu_memory,
    measure_gpu_memory,
    memory_use_of_batches,
)

BYTES = st.integers(0, 2**40)
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def largest_fitting_batch(free, fixed, per_image, max_images):
    """Try the sizes one by one."""
    sizes = [2**i for i in range(20) if 2**i < max_images] + [max_images]
    limit = FREE_MEMORY_SHARE * free
    return max([1, *(n for n in sizes if n * per_image <= limit - fixed)])


@given(BYTES, BYTES, BYTES, st.integers(1, 1000))
def test_the_batch_size_is_the_largest_that_fits(free, fixed, per_image, max_images):
    use = GpuMemoryUse(fixed, per_image)
    size = batch_size_of_free_memory(free, use, max_images=max_images)
    assert size == largest_fitting_batch(free, fixed, per_image, max_images)


@given(BYTES, BYTES, BYTES, BYTES)
def test_more_free_memory_never_makes_batches_smaller(free, more, fixed, per_image):
    use = GpuMemoryUse(fixed, per_image)
    sizes = [batch_size_of_free_memory(f, use, max_images=256) for f in (free, free + more)]
    assert sizes[0] <= sizes[1]


@given(BYTES, st.integers(0, 2**30))
def test_the_memory_of_batches_is_linear_in_the_number_of_images(fixed, per_image):
    smaller, larger = (fixed + n * PROBED_IMAGES * per_image for n in (1, 2))
    assert memory_use_of_batches(smaller, larger) == GpuMemoryUse(fixed, per_image)


@given(BYTES, BYTES)
def test_the_memory_of_the_larger_batch_is_never_underestimated(smaller, larger):
    use = memory_use_of_batches(smaller, larger)
    total = use.fixed_bytes + 2 * PROBED_IMAGES * use.bytes_per_image
    assert min(use.fixed_bytes, use.bytes_per_image) >= 0
    assert total >= larger * (1 - 1e-12)


def test_a_batch_has_at_least_one_image():
    with pytest.raises(InputError, match="max_images must be at least 1; got 0"):
        batch_size_of_free_memory(1, GpuMemoryUse(0, 1), max_images=0)


@NEEDS_GPU
def test_the_measured_memory_of_an_array_is_its_size():
    device = torch.device("cuda")
    use = measure_gpu_memory(lambda n: torch.zeros(n, 2**20, device=device), device)
    assert use.bytes_per_image == pytest.approx(4 * 2**20, rel=0.01)
    assert use.fixed_bytes <= 2**20
    assert free_gpu_memory(device) > 0
