"""Compute the two losses of expectation-maximization training of labels and student."""

from torch import Tensor

from surelabel.losses import binary
from surelabel.shapes import check_shapes


def em_expectation_loss(blended: Tensor, student: Tensor) -> Tensor:
    """Return the cross-entropy of the labels, without a gradient for the student.

        L_E = -s log S(z) - (1 - s) log(1 - S(z)),   s = S(u) held fixed

    S is the sigmoid, z are the log-odds of the labels, and u the scores of the student.

    Args:
        blended: Log-odds z of the labels of canvases, ``(n, c)``. The gradient of the log-odds is
            propagated to the labels of the images on each canvas.
        student: Scores u of the student for the same canvases, ``(n, c)``.

    Returns:
        Loss of every element in nats, not reduced, ``(n, c)``.

    Raises:
        InputError: If ``blended`` and ``student`` differ in shape.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 19.

    Differs:
        The weight of this loss is 1 in the paper and 0.5 in the authors' code. With Adam, the
        weight has almost no effect on the size of the steps.

    Example:
        >>> import torch
        >>> student = torch.tensor([[1.0, 2.0]])
        >>> em_expectation_loss(torch.tensor([[0.0, 2.0]]), student).round(decimals=4)
        tensor([[0.6931, 0.3653]])
    """
    check_shapes(blended=(blended, "n c"), student=(student, "n c"))
    return binary(blended, student.detach().sigmoid())


def em_maximization_loss(student: Tensor, blended: Tensor) -> Tensor:
    """Return the cross-entropy of the student, without a gradient for the labels.

        L_M = -t log S(u) - (1 - t) log(1 - S(u)),   t = S(z) held fixed

    S is the sigmoid, z are the log-odds of the labels, and u the scores of the student.

    Args:
        student: Scores u of the student for canvases, ``(n, c)``.
        blended: Log-odds z of the labels of the same canvases, ``(n, c)``.

    Returns:
        Loss of every element in nats, not reduced, ``(n, c)``.

    Raises:
        InputError: If ``student`` and ``blended`` differ in shape.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 20.

    Differs:
        The authors' code adds 0.7 times the loss of a strongly augmented view, which is not in the
        paper. To compute the sum, call this function once for each view.

    Example:
        >>> import torch
        >>> blended = torch.tensor([[0.0, 2.0]])
        >>> em_maximization_loss(torch.tensor([[1.0, 2.0]]), blended).round(decimals=4)
        tensor([[0.8133, 0.3653]])
    """
    check_shapes(student=(student, "n c"), blended=(blended, "n c"))
    return binary(student, blended.detach().sigmoid())
