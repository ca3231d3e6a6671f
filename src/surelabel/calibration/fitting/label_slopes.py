"""Fit a slope and a shift for each label, with a Gaussian prior."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.mapped_arrays import CACHED_BYTES, row_blocks

Element = TypeVar("Element", bound=np.generic)

MIN_SLOPE = 1e-3  # lower bound of the slope of a label, relative to the shared slope
MAX_LOGIT_STEP = 1.5  # largest change of a logit in one Newton step; below 1.79 the loss decreases
MAX_STEPS, TOLERANCE = 200, 1e-8
LABELS_PER_BLOCK = 16  # labels fitted at a time, so that their logits fit into the CPU cache


def rows_of_labels(array: npt.NDArray[Element], labels: Flags) -> npt.NDArray[Element]:
    """Return the columns of some labels as rows, ``(b, n)``.

    Args:
        array: Array of n images and c labels, ``(n, c)``.
        labels: Mask of b labels, ``(c,)``.
    """
    rows = np.empty((int(labels.sum()), len(array)), array.dtype)
    for images in row_blocks(array, n_bytes=CACHED_BYTES):
        rows[:, images] = array[images, labels].T
    return rows


def fit_label_slopes(
    z: Array, y: Array, weight: Array | Flags, *, start: Array, mean: Array, precision: Array
) -> Array:
    """Return the slope and the shift of each label that minimize the penalized log loss.

        logit_c = u_c · z + v_c,   u_c > 0
        log loss of label c + (u_c - m_u, v_c - m_v) · P · (u_c - m_u, v_c - m_v) / 2

    The minimum is found by damped Newton steps. The step length is limited so that the loss, which
    is convex, decreases in each step.

    Args:
        z: Logits of c labels and n images, ``(c, n)``.
        y: Targets in [0, 1], ``(c, n)``. The value of an unknown target has no influence.
        weight: 1 or True for known targets, otherwise 0 or False, ``(c, n)``.
        start: Slopes and shifts of the first step, ``(c, 2)``.
        mean: Mean slope m_u and mean shift m_v of the prior, ``(2,)``.
        precision: Matrix P of the penalty, positive definite, ``(2, 2)``.

    Returns:
        Slopes u, at least 0.001, and shifts v, ``(c, 2)``.
    """
    lines = np.empty_like(start)
    for first in range(0, len(z), LABELS_PER_BLOCK):
        block = slice(first, first + LABELS_PER_BLOCK)
        lines[block] = _fit_label_line_block(
            z[block], y[block], np.asarray(weight[block], float), start[block], mean, precision
        )
    return lines


def label_line_derivatives(
    z: Array, y: Array, weight: Array | Flags, lines: Array
) -> tuple[Array, Array]:
    """Return the gradient ``(c, 2)`` and the Hessian ``(c, 2, 2)`` of the log loss of each label.

    The arguments z, y and weight are those of ``fit_label_slopes``. The array ``lines``
    contains slopes and shifts, ``(c, 2)``.
    """
    blocks = [
        slice(first, first + LABELS_PER_BLOCK) for first in range(0, len(z), LABELS_PER_BLOCK)
    ]
    gradients, hessians = zip(
        *(
            _label_line_block_derivatives(z[b], y[b], np.asarray(weight[b], float), lines[b])
            for b in blocks
        ),
        strict=True,
    )
    return np.concatenate(gradients), np.concatenate(hessians)


def _label_line_block_derivatives(
    z: Array, y: Array, weight: Array, lines: Array
) -> tuple[Array, Array]:
    """Return the gradient and the Hessian of a few labels; see ``label_line_derivatives``."""
    p = expit(lines[:, :1] * z + lines[:, 1:])
    residual, curvature = weight * (p - y), weight * p * (1 - p)
    weighted_z = curvature * z
    gradient = np.stack([np.einsum("cn,cn->c", residual, z), residual.sum(axis=1)], axis=1)
    h_slope, h_both = np.einsum("cn,cn->c", weighted_z, z), weighted_z.sum(axis=1)
    hessian = np.stack([h_slope, h_both, h_both, curvature.sum(axis=1)], axis=1)
    return gradient, hessian.reshape(-1, 2, 2)


def _fit_label_line_block(
    z: Array, y: Array, weight: Array, start: Array, mean: Array, precision: Array
) -> Array:
    """Return the slopes and the shifts of a few labels; see ``fit_label_slopes``."""
    lines, largest = start.copy(), np.abs(z).max(axis=1)
    for _ in range(MAX_STEPS):
        gradient, hessian = label_line_derivatives(z, y, weight, lines)
        g_slope, g_shift = (gradient + (lines - mean) @ precision).T
        hessian += precision
        h_slope, h_both, h_shift = hessian[:, 0, 0], hessian[:, 0, 1], hessian[:, 1, 1]
        determinant = h_slope * h_shift - h_both**2
        slope_step = (h_both * g_shift - h_shift * g_slope) / determinant
        shift_step = (h_both * g_slope - h_slope * g_shift) / determinant
        at_bound = (lines[:, 0] <= MIN_SLOPE) & (slope_step < 0)
        slope_step = np.where(at_bound, 0.0, slope_step)
        shift_step = np.where(at_bound, -g_shift / h_shift, shift_step)
        logit_step = np.abs(slope_step) * largest + np.abs(shift_step)
        damping = np.minimum(1, MAX_LOGIT_STEP / np.maximum(logit_step, TOLERANCE))
        lines += (damping * np.stack([slope_step, shift_step])).T
        lines[:, 0] = np.maximum(lines[:, 0], MIN_SLOPE)
        if logit_step.max() < TOLERANCE:
            break
    return lines
