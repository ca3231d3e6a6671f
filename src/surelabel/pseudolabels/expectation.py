"""The two losses of learning labels and student in turn."""

from torch import Tensor

from surelabel.losses import binary
from surelabel.shapes import check_shapes


def expectation(blended: Tensor, student: Tensor) -> Tensor:
    """Charge the labels for differing from the student; no gradient reaches the student.

        L_E = -s log S(z) - (1 - s) log(1 - S(z)),   s = S(u) held fixed

    Args:
        blended: Labels of sewn pictures, log-odds z, ``(n, c)``; their gradient goes back to the
            rows that they came from.
        student: Scores u of the student for the same pictures, ``(n, c)``.

    Returns:
        The loss of every element, ``(n, c)``, in nats. Nothing is summed.

    Raises:
        InputError: ``blended`` and ``student`` differ in shape.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 19.

    Differs:
        The paper weighs it 1, its code 0.5; Adam takes the same step for either.

    Example:
        >>> import torch
        >>> expectation(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 2.0]])).round(decimals=4)
        tensor([[0.6931, 0.3653]])
    """
    check_shapes(blended=(blended, "n c"), student=(student, "n c"))
    return binary(blended, student.detach().sigmoid())


def maximization(student: Tensor, blended: Tensor) -> Tensor:
    """Charge the student for differing from the labels; no gradient reaches the labels.

        L_M = -t log S(u) - (1 - t) log(1 - S(u)),   t = S(z) held fixed

    Args:
        student: Scores u of the student for sewn pictures, ``(n, c)``.
        blended: Labels of the same pictures, log-odds z, ``(n, c)``.

    Returns:
        The loss of every element, ``(n, c)``, in nats. Nothing is summed.

    Raises:
        InputError: ``student`` and ``blended`` differ in shape.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, eq. 20.

    Differs:
        The authors' code adds 0.7 times the same loss of a strongly changed view, which the paper
        has not: call it twice.

    Example:
        >>> import torch
        >>> maximization(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 2.0]])).round(decimals=4)
        tensor([[0.8133, 0.3653]])
    """
    check_shapes(student=(student, "n c"), blended=(blended, "n c"))
    return binary(student, blended.detach().sigmoid())
