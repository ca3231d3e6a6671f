"""Paste resized images onto another image, and merge their labels (sewing of TailorCLIP).

The *canvas* is the image onto which other images, the *overlays*, are pasted. Sewing has four
steps:

- :func:`sample_sewing_overlays` samples the number of overlays and their images.
- :func:`sample_sewing_overlay_boxes` samples the positions of the overlays.
- :func:`paste_sewing_overlays` pastes the overlays onto the canvas.
- :func:`blend_labels_of_sewing` computes the labels of the canvas with its overlays.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes
from surelabel.views.boxes import Box, check_boxes_inside, check_image_size_for_boxes

SewingVariant = Literal["paper", "code"]


def sewing_overlay_count_probabilities(
    *, max_overlays: int = 1, overlay_probability: float = 0.6, variant: SewingVariant = "code"
) -> list[float]:
    """Return the probabilities of 0, 1, … ``max_overlays`` overlays on a canvas.

        code:  P(n) = p · (1 - p)^(n - 1) for n = 1 … L - 1
        paper: P(n) = (1 - p) · p^n       for n = 0 … L - 1

    In these formulas, n is the number of overlays, p is ``overlay_probability``, and L is
    ``max_overlays``. In both variants, n = L has the remaining probability.

    Args:
        max_overlays: Largest number of overlays (L), >= 1.
        overlay_probability: Probability p in [0, 1]. In the variant "code", p is the probability
            that no further overlay follows; in the variant "paper", p is the probability that a
            further overlay follows.
        variant: "code" for the rule of the authors' code, "paper" for the rule of the paper.

    Returns:
        Probabilities of 0 to ``max_overlays`` overlays. In the variant "code", the probability of
        no overlay is 0.

    Raises:
        InputError: If a setting is out of range, or ``variant`` is unknown.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1.

    Differs:
        The default rule and the values L = 1 and p = 0.6 are those of the authors' code, in which a
        larger p gives fewer overlays. The paper does not state a value of L. The condition "at most
        L" in algorithm 1 permits L + 1 overlays. Here, L is the maximum, as in the text of the
        paper.

    Example:
        >>> sewing_overlay_count_probabilities(max_overlays=2)
        [0.0, 0.6, 0.4]
        >>> sewing_overlay_count_probabilities(max_overlays=2, variant="paper")
        [0.4, 0.24, 0.36]
    """
    p = overlay_probability
    if max_overlays < 1 or not 0 <= p <= 1:
        raise InputError(
            "max_overlays must be 1 or more and overlay_probability in [0, 1]; "
            f"got max_overlays={max_overlays}, overlay_probability={p}."
        )
    _check_sewing_variant(variant)
    if variant == "code":
        return [
            0.0,
            *(p * (1 - p) ** n for n in range(max_overlays - 1)),
            (1 - p) ** (max_overlays - 1),
        ]
    return [*((1 - p) * p**n for n in range(max_overlays)), p**max_overlays]


def sample_sewing_overlays(
    n_candidates: int,
    *,
    generator: torch.Generator,
    max_overlays: int = 1,
    overlay_probability: float = 0.6,
    variant: SewingVariant = "code",
) -> list[int]:
    """Sample the overlays of a canvas: their number, and the images that are pasted.

    Args:
        n_candidates: Number of images from which overlays are sampled (the patch set of
            TailorCLIP), at least 1.
        generator: Random number generator.
        max_overlays: Largest number of overlays (L); see
            :func:`sewing_overlay_count_probabilities`.
        overlay_probability: Probability p in [0, 1]; see
            :func:`sewing_overlay_count_probabilities`.
        variant: "code" for the rule of the authors' code, "paper" for the rule of the paper; see
            :func:`sewing_overlay_count_probabilities`.

    Returns:
        Indices of the sampled images, from 0 to ``n_candidates - 1``, sampled with replacement. The
        image of the canvas may also be sampled.

    Raises:
        InputError: If ``n_candidates`` is below 1, a setting is out of range, or ``variant`` is
            unknown.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 11-12.

    Example:
        >>> sample_sewing_overlays(100, max_overlays=3, generator=torch.Generator().manual_seed(1))
        [59]
    """
    if n_candidates < 1:
        raise InputError(
            f"n_candidates must be 1 or more; got {n_candidates}. Select at least one image for "
            "the overlays."
        )
    probabilities = torch.tensor(
        sewing_overlay_count_probabilities(
            max_overlays=max_overlays, overlay_probability=overlay_probability, variant=variant
        )
    )
    count = int(torch.multinomial(probabilities, 1, generator=generator))
    rows: list[int] = torch.randint(0, n_candidates, (count,), generator=generator).tolist()
    return rows


def sewing_overlay_size(
    canvas: tuple[int, int], overlay: tuple[int, int], scale: float
) -> tuple[int, int]:
    """Return the largest width and height of an overlay inside ``scale`` times the canvas.

    The aspect ratio of the overlay does not change, except by rounding.

    Args:
        canvas: Width and height of the canvas in pixels.
        overlay: Width and height of the overlay in pixels, before resizing.
        scale: Largest width of the resized overlay as a fraction of the canvas width, and largest
            height as a fraction of the canvas height, in (0, 1].

    Returns:
        Width and height of the resized overlay in whole pixels, rounded down, at least 1.

    Raises:
        InputError: If a width or height is below 1, or ``scale`` is outside (0, 1].

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1, as implemented in the authors' code.

    Differs:
        Each side is at least one pixel; the authors' code fails if a side is rounded to 0.

    Example:
        >>> sewing_overlay_size((50, 40), (101, 67), 0.65)
        (32, 21)
    """
    check_image_size_for_boxes(canvas)
    check_image_size_for_boxes(overlay)
    if not 0 < scale <= 1:
        raise InputError(f"scale must be a fraction of a side, in (0, 1]; got {scale}.")
    ratio = min(scale * canvas[0] / overlay[0], scale * canvas[1] / overlay[1])
    return max(int(overlay[0] * ratio), 1), max(int(overlay[1] * ratio), 1)


def sample_sewing_overlay_boxes(
    canvas: tuple[int, int],
    overlays: Sequence[tuple[int, int]],
    *,
    generator: torch.Generator,
    overlay_scale: float = 0.65,
    max_overlays: int = 1,
    variant: SewingVariant = "code",
) -> list[Box]:
    """Sample the boxes of overlays on a canvas; the boxes may overlap.

    Width and height of an overlay are at most ``scale`` times width and height of the canvas:

        code:  scale = sqrt(overlay_scale² / n)
        paper: scale = sqrt(overlay_scale² / max_overlays)

    In these formulas, n is the number of overlays.

    Args:
        canvas: Width and height of the canvas in pixels.
        overlays: Width and height of each overlay in pixels, before resizing.
        generator: Random number generator.
        overlay_scale: Upper limit of ``scale`` (q in TailorCLIP), in (0, 1].
        max_overlays: Largest number of overlays (L in TailorCLIP), >= 1. Only the variant "paper"
            uses this setting.
        variant: "code" for the rule of the authors' code, "paper" for the rule of the paper.

    Returns:
        One box inside the canvas for each overlay, in the order of ``overlays``.

    Raises:
        InputError: If a width or height is below 1, ``overlay_scale`` or ``max_overlays`` is out of
            range, or ``variant`` is unknown.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1.

    Differs:
        The defaults are those of the authors' code. Section 3.3.2 calls q a ratio of areas;
        algorithm 1 and the code square q, so here q is a ratio of sides. The paper uses q = 0.6.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> sample_sewing_overlay_boxes((50, 40), [(101, 67)], generator=generator)
        [Box(left=15, top=19, width=32, height=21, flipped=False)]
    """
    if max_overlays < 1 or not 0 < overlay_scale <= 1:
        raise InputError(
            "max_overlays must be 1 or more and overlay_scale in (0, 1]; "
            f"got max_overlays={max_overlays}, overlay_scale={overlay_scale}."
        )
    _check_sewing_variant(variant)
    n_shares = max(len(overlays), 1) if variant == "code" else max_overlays
    scale = math.sqrt(overlay_scale**2 / n_shares)
    sizes = [sewing_overlay_size(canvas, size, scale) for size in overlays]
    return [_sample_sewing_position(canvas, size, generator) for size in sizes]


def paste_sewing_overlays(
    image: Image.Image, overlays: Sequence[Image.Image], boxes: Sequence[Box]
) -> Image.Image:
    """Paste overlays, each resized to its box, onto a copy of an image, in the given order.

    Args:
        image: Canvas, an upright RGB image at its original size.
        overlays: Upright RGB images that are pasted.
        boxes: One box for each overlay, in pixels of ``image``.

    Returns:
        New image of the size of ``image``. If there are no overlays, the result is a copy of
        ``image``.

    Raises:
        InputError: If the number of boxes differs from the number of overlays, or a box is empty or
            extends beyond the image.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 12.

    Example:
        >>> canvas, dot = Image.new("RGB", (4, 4), "white"), Image.new("RGB", (9, 9), "black")
        >>> paste_sewing_overlays(canvas, [dot], [Box(1, 1, 2, 2)]).getpixel((1, 1))
        (0, 0, 0)
    """
    if len(overlays) != len(boxes):
        raise InputError(
            f"boxes must contain one box for each of {len(overlays)} overlays; got {len(boxes)}."
        )
    check_boxes_inside(boxes, image.size)
    canvas = image.copy()
    for overlay, box in zip(overlays, boxes, strict=True):
        patch = overlay.resize((box.width, box.height), Image.Resampling.BICUBIC)
        canvas.paste(patch, (box.left, box.top))
    return canvas


def blend_labels_of_sewing(logits: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return, for each canvas and label, the maximum log-odds over the images on the canvas.

    The gradient is propagated to the image with the maximum. If several images share the maximum,
    each receives an equal part of the gradient.

    Args:
        logits: Log-odds of all images, ``(n, c)``, for n images and c labels.
        rows: For each of ``b`` canvases, the row numbers in ``logits`` of the canvas image and of
            its overlays.

    Returns:
        Log-odds of the canvases with their overlays, ``(b, c)``.

    Raises:
        InputError: If there is no canvas, a canvas has no image, or a row number is out of range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 13, and section 3.5, eq. 18.

    Differs:
        The maximum includes the canvas image, as in the authors' code. The equations of the paper
        contain the overlays only, so that the labels of the canvas image would be lost. If several
        images share the maximum, the authors' code assigns the whole gradient to one of them.

    Example:
        >>> logits = torch.tensor([[2.0, -3.0], [-1.0, 4.0], [0.0, 0.0]])
        >>> blend_labels_of_sewing(logits, [[0, 1], [2]])
        tensor([[2., 4.],
                [0., 0.]])
    """
    check_shapes(logits=(logits, "n c"))
    if not rows or not all(rows):
        raise InputError(
            "rows must contain at least one canvas, and one row number or more for each canvas; "
            f"got {rows}. Remove canvases without images."
        )
    if any(not 0 <= row < len(logits) for canvas in rows for row in canvas):
        raise InputError(
            f"rows must contain row numbers of logits, 0 to {len(logits) - 1}; got {rows}."
        )
    return torch.stack([logits[list(canvas)].amax(dim=0) for canvas in rows])


def _check_sewing_variant(variant: str) -> None:
    if variant not in ("paper", "code"):
        raise InputError(f'variant must be "paper" or "code"; got {variant!r}.')


def _sample_sewing_position(
    canvas: tuple[int, int], size: tuple[int, int], generator: torch.Generator
) -> Box:
    left, top = (
        int(torch.randint(0, canvas_length - length + 1, (1,), generator=generator))
        for canvas_length, length in zip(canvas, size, strict=True)
    )
    return Box(left, top, *size)
