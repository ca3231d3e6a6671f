"""Sew shrunken pictures onto another: a picture of many objects, with labels known by construction.

Four steps: how many pictures and which (:func:`overlay_rows`), where they lie
(:func:`overlay_boxes`), the canvas (:func:`sewn`), its labels (:func:`blended`).
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from surelabel.errors import InputError
from surelabel.shapes import check_shapes
from surelabel.views.boxes import Box, check_inside, check_size

Variant = Literal["paper", "code"]


def overlay_chances(
    *, most: int = 1, chance: float = 0.6, variant: Variant = "code"
) -> list[float]:
    """How probable 0, 1, … ``most`` overlays are.

        code:  P(n) = chance · (1 - chance)^(n - 1) for n = 1 … most, the last takes what is left
        paper: P(n) = (1 - chance) · chance^n       for n = 0 … most, the last takes what is left

    Args:
        most: Greatest number of overlays (L), at least 1.
        chance: p, in [0, 1]: that this overlay is the last (code), that one more comes (paper).
        variant: Whose rule.

    Returns:
        ``most + 1`` probabilities; that of none is 0 in the code.

    Raises:
        InputError: a setting is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1.

    Differs:
        The default is the authors' code, where a greater p means fewer overlays, by its defaults
        L = 1 and p = 0.6; the paper never says its L. Taken literally the condition of algorithm
        1, "at most L", lets in one overlay more; its text calls L the maximum, and so it is here.

    Example:
        >>> overlay_chances(most=2), overlay_chances(most=2, variant="paper")
        ([0.0, 0.6, 0.4], [0.4, 0.24, 0.36])
    """
    if most < 1 or not 0 <= chance <= 1:
        raise InputError(
            f"most must be 1 or more and chance in [0, 1]. Got most={most}, chance={chance}."
        )
    if variant == "code":
        return [
            0.0,
            *(chance * (1 - chance) ** n for n in range(most - 1)),
            (1 - chance) ** (most - 1),
        ]
    return [*((1 - chance) * chance**n for n in range(most)), chance**most]


def overlay_rows(
    pictures: int,
    *,
    generator: torch.Generator,
    most: int = 1,
    chance: float = 0.6,
    variant: Variant = "code",
) -> list[int]:
    """Draw which pictures of the patch set are sewn on.

    Args:
        pictures: Size of the patch set, at least 1.
        generator: Where chance comes from.
        most: See :func:`overlay_chances`.
        chance: See :func:`overlay_chances`.
        variant: See :func:`overlay_chances`.

    Returns:
        Row numbers in the patch set, with replacement; the canvas itself may be among them.

    Raises:
        InputError: the patch set is empty, or a setting is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 11-12.

    Example:
        >>> overlay_rows(100, most=3, generator=torch.Generator().manual_seed(1))
        [59]
    """
    if pictures < 1:
        raise InputError("The patch set is empty; select at least one picture to sew.")
    chances = torch.tensor(overlay_chances(most=most, chance=chance, variant=variant))
    count = int(torch.multinomial(chances, 1, generator=generator))
    rows: list[int] = torch.randint(0, pictures, (count,), generator=generator).tolist()
    return rows


def overlay_size(
    canvas: tuple[int, int], overlay: tuple[int, int], scale: float
) -> tuple[int, int]:
    """Width and height of an overlay that fits into ``scale`` times the canvas, aspect kept.

    Args:
        canvas: Width and height of the picture that is sewn on, in pixels.
        overlay: Width and height of the picture that is sewn, in pixels.
        scale: Part of either side of the canvas, in (0, 1].

    Returns:
        Whole pixels, rounded down, at least 1.

    Raises:
        InputError: a size is empty, or ``scale`` is outside (0, 1].

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1, as the authors' code has it.

    Differs:
        At least one pixel; a side that rounds to nothing stops the authors' code.

    Example:
        >>> overlay_size((50, 40), (101, 67), 0.65)
        (32, 21)
    """
    check_size(canvas)
    check_size(overlay)
    if not 0 < scale <= 1:
        raise InputError(f"scale must be in (0, 1], a part of a side. Got {scale}.")
    ratio = min(scale * canvas[0] / overlay[0], scale * canvas[1] / overlay[1])
    return max(int(overlay[0] * ratio), 1), max(int(overlay[1] * ratio), 1)


def overlay_boxes(
    canvas: tuple[int, int],
    overlays: Sequence[tuple[int, int]],
    *,
    generator: torch.Generator,
    side: float = 0.65,
    most: int = 1,
    variant: Variant = "code",
) -> list[Box]:
    """Draw where overlays lie: anywhere on the canvas, also over each other.

    Together they have at most the area of one box of ``side`` times the canvas:

        scale = sqrt(side² / overlays that are there)        paper: sqrt(side² / most)

    Args:
        canvas: Width and height of the picture that is sewn on, in pixels.
        overlays: Width and height of each picture that is sewn, in pixels.
        generator: Where chance comes from.
        side: q, part of a side of the canvas, in (0, 1].
        most: Greatest number of overlays (L); only the paper's rule looks at it.
        variant: Whose rule.

    Returns:
        One box for each overlay, inside the canvas, in the order they are sewn.

    Raises:
        InputError: a size is empty, or ``side`` or ``most`` is out of its range.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.5, algorithm 1.

    Differs:
        The default is the authors' code. Section 3.3.2 calls q a ratio of areas; algorithm 1 and
        the code square it, so it is one of sides. The paper's value is 0.6.

    Example:
        >>> overlay_boxes((50, 40), [(101, 67)], generator=torch.Generator().manual_seed(0))
        [Box(left=15, top=19, width=32, height=21, flipped=False)]
    """
    if most < 1 or not 0 < side <= 1:
        raise InputError(
            f"most must be 1 or more and side in (0, 1]. Got most={most}, side={side}."
        )
    parts = max(len(overlays), 1) if variant == "code" else most
    sizes = [overlay_size(canvas, size, math.sqrt(side**2 / parts)) for size in overlays]
    return [_placed(canvas, size, generator) for size in sizes]


def sewn(
    picture: Image.Image, overlays: Sequence[Image.Image], boxes: Sequence[Box]
) -> Image.Image:
    """The canvas: each overlay resized to its box and laid on, later ones over earlier ones.

    Args:
        picture: What is sewn on, upright, in RGB, at its own size.
        overlays: What is sewn, upright, in RGB.
        boxes: Where, one for each overlay, in pixels of ``picture``.

    Returns:
        A new picture of the size of ``picture``; with no overlays a copy of it.

    Raises:
        InputError: there is not one box for each overlay, or a box reaches out of the picture.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 12.

    Example:
        >>> canvas, dot = Image.new("RGB", (4, 4), "white"), Image.new("RGB", (9, 9), "black")
        >>> sewn(canvas, [dot], [Box(1, 1, 2, 2)]).getpixel((1, 1))
        (0, 0, 0)
    """
    if len(overlays) != len(boxes):
        raise InputError(f"boxes must be one for each overlay, {len(overlays)}. Got {len(boxes)}.")
    check_inside(boxes, picture.size)
    canvas = picture.copy()
    for overlay, box in zip(overlays, boxes, strict=True):
        patch = overlay.resize((box.width, box.height), Image.Resampling.BICUBIC)
        canvas.paste(patch, (box.left, box.top))
    return canvas


def blended(logits: Tensor, rows: Sequence[Sequence[int]]) -> Tensor:
    """Labels of canvases: for each name the greatest of the pictures that are on it.

    Gradients go back to the picture that the label came from; where several have the same
    greatest log-odds, each takes an equal part.

    Args:
        logits: Log-odds of all pictures, ``(n, c)``.
        rows: For each of b canvases the row numbers of the picture sewn on and of its overlays.

    Returns:
        ``(b, c)``.

    Raises:
        InputError: there are no canvases, one has no picture, or a row number is not there.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.3.2, eq. 13, and section 3.5, eq. 18.

    Differs:
        The picture sewn on counts, as in the authors' code; the equations name the overlays only,
        so that its own labels would be lost. The code gives one of several tied overlays the whole
        gradient.

    Example:
        >>> blended(torch.tensor([[2.0, -3.0], [-1.0, 4.0], [0.0, 0.0]]), [[0, 1], [2]])
        tensor([[2., 4.],
                [0., 0.]])
    """
    check_shapes(logits=(logits, "n c"))
    if not rows or not all(rows):
        raise InputError("Every canvas must name the row of its picture; one or all name none.")
    if any(not 0 <= row < len(logits) for canvas in rows for row in canvas):
        raise InputError(f"rows must be row numbers of logits, 0 to {len(logits) - 1}. Got {rows}.")
    return torch.stack([logits[list(canvas)].amax(dim=0) for canvas in rows])


def _placed(canvas: tuple[int, int], size: tuple[int, int], generator: torch.Generator) -> Box:
    left, top = (
        int(torch.randint(0, room - length + 1, (1,), generator=generator))
        for room, length in zip(canvas, size, strict=True)
    )
    return Box(left, top, *size)
