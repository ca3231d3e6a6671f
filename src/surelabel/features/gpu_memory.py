"""Compute the batch size that fits into the free memory of a GPU, from measurements of batches."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from surelabel.errors import InputError

FREE_MEMORY_SHARE = 0.8  # the rest of the free memory is for fragments and other programs
PROBED_IMAGES = 4  # images of the smaller measured batch; the larger batch has twice as many


@dataclass(frozen=True)
class GpuMemoryUse:
    """Memory that a forward pass needs, including gradients if they are computed.

    Attributes:
        fixed_bytes: Bytes that do not depend on the number of images, >= 0.
        bytes_per_image: Additional bytes of each image, >= 0.
    """

    fixed_bytes: float
    bytes_per_image: float


def batch_size_of_free_memory(free_bytes: float, use: GpuMemoryUse, *, max_images: int) -> int:
    """Return the largest power of two whose batch needs at most 80 % of the free memory.

    The result is at least 1, even if one image needs more memory.

    Args:
        free_bytes: Free memory in bytes.
        use: Memory of a batch.
        max_images: Largest result, >= 1. Every smaller result is a power of two.

    Raises:
        InputError: If ``max_images`` is below 1.

    Example:
        >>> batch_size_of_free_memory(1000, GpuMemoryUse(100, 50), max_images=64)
        8
    """
    if max_images < 1:
        raise InputError(f"max_images must be at least 1; got {max_images}.")
    available = FREE_MEMORY_SHARE * free_bytes - use.fixed_bytes
    if available >= max_images * use.bytes_per_image:
        return max_images
    size = 1
    while 2 * size <= max_images and 2 * size * use.bytes_per_image <= available:
        size *= 2
    return size


def memory_use_of_batches(smaller_bytes: float, larger_bytes: float) -> GpuMemoryUse:
    """Return the memory use of batches, given the memory of a batch of 4 and a batch of 8 images.

    Example:
        >>> memory_use_of_batches(300, 500)
        GpuMemoryUse(fixed_bytes=100.0, bytes_per_image=50.0)
    """
    per_image = max(larger_bytes - smaller_bytes, 0) / PROBED_IMAGES
    return GpuMemoryUse(max(larger_bytes - 2 * PROBED_IMAGES * per_image, 0.0), per_image)


def measure_gpu_memory(compute: Callable[[int], object], device: torch.device) -> GpuMemoryUse:
    """Measure the memory of a computation with 4 and with 8 images on a GPU.

    Args:
        compute: Function of a number of images. It is called once more before the measurement,
            because libraries allocate memory at their first use.
        device: Device of the computation, of type ``cuda``.

    Raises:
        torch.OutOfMemoryError: If 8 images do not fit.
    """
    peaks = []
    for n_images in (PROBED_IMAGES, PROBED_IMAGES, 2 * PROBED_IMAGES):
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        start = torch.cuda.memory_allocated(device)
        compute(n_images)
        torch.cuda.synchronize(device)
        peaks.append(torch.cuda.max_memory_allocated(device) - start)
    return memory_use_of_batches(*peaks[1:])


def free_gpu_memory(device: torch.device) -> int:
    """Return the free memory of a GPU in bytes, including unused memory reserved by PyTorch."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
