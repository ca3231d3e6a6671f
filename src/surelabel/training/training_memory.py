"""Compute the number of training images in a forward pass from the free memory of a GPU."""

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from surelabel.features.gpu_memory import (
    PROBED_IMAGES,
    batch_size_of_free_memory,
    free_gpu_memory,
    measure_gpu_memory,
)
from surelabel.training.batches import Batch
from surelabel.training.training_processes import select_training_batch_rows

STATES_PER_PARAMETER = 2  # tensors that the first step of AdamW allocates for each parameter


def images_of_free_gpu_memory(
    forward: Callable[[Batch], Tensor],
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> int:
    """Return the number of images of a batch that fit into the free memory of a GPU.

    The memory of forward and backward passes of 4 and 8 images is measured. The gradients of the
    parameters are deleted. If the optimizer has no state yet, the memory of the state is subtracted
    from the free memory. A batch with fewer than 8 images is assumed to fit. If 8 images do not
    fit, the number is 1.

    Args:
        forward: Function of a batch that returns its scores.
        batch: Batch of training images.
        optimizer: Optimizer of the parameters.
        device: Device of the parameters, of type ``cuda``.
    """
    n_images = len(batch.targets)
    if n_images < 2 * PROBED_IMAGES:
        return n_images

    def compute(n_probed: int) -> None:
        optimizer.zero_grad()
        rows = torch.arange(n_probed, device=batch.targets.device)
        forward(select_training_batch_rows(batch, rows)).sum().backward()

    images = 1  # if 8 images do not fit
    with suppress(torch.OutOfMemoryError):
        use = measure_gpu_memory(compute, device)
        optimizer.zero_grad()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        states = 0 if optimizer.state else STATES_PER_PARAMETER * sum(p.nbytes for p in parameters)
        free = free_gpu_memory(device) - states
        images = batch_size_of_free_memory(free, use, max_images=n_images)
    return images
