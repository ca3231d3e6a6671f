"""Split the images of a forward pass into batches."""

import torch
from torch import Tensor


def inference_batches(values: Tensor, count: int) -> tuple[Tensor, ...]:
    """Return batches of at most ``count`` images, ``(m, …)``.

    While ``torch.export`` records the computation, all images are one batch, because the recorded
    computation must not depend on the number of images.

    Args:
        values: Values of n images, ``(n, …)``.
        count: Largest number of images of a batch, >= 1.

    Example:
        >>> [len(batch) for batch in inference_batches(torch.zeros(5, 2), 3)]
        [3, 2]
    """
    return (values,) if torch.compiler.is_exporting() else values.split(count)
