"""Which pairs of labels a step holds, and what each weighs."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from surelabel.records import Step
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class Pairs:
    """One present and one absent label of the same picture make a pair.

    Attributes:
        values: Log-odds where the step has them, scores where not, float32 at least, ``(n, c)``;
            0 where the target is unknown.
        present: Weight of each label as the present one, the target y, ``(n, c)``.
        absent: Weight as the absent one, 1 - y; both are 0 where the target is unknown.
        share: What the sum over the pairs of a picture is multiplied with, float64, ``(n,)``.
    """

    values: Tensor
    present: Tensor
    absent: Tensor
    share: Tensor

    @classmethod
    def of(cls, step: Step) -> Self:
        """The pairs of one training step.

        A picture with T known labels has the share 2 / (T · (T - 1)), divided by the number of
        pictures with two known labels or more; the others have no share and are not counted.

        Raises:
            InputError: the parts of the step differ in shape.
        """
        given = step.scores if step.logits is None else step.logits
        check_shapes(
            scores=(step.scores, "n c"),
            logits=(step.logits, "n c"),
            targets=(step.targets, "n c"),
            known=(step.known, "n c"),
        )
        values = given.to(torch.promote_types(given.dtype, torch.float32))
        values = torch.where(step.known, values, 0.0)
        present = torch.where(step.known, step.targets.to(values.dtype), 0.0)
        absent = torch.where(step.known, 1 - present, 0.0)
        labels = step.known.sum(dim=1).double()
        rows = (labels >= 2).sum().clip(min=1)
        share = torch.where(labels >= 2, 2 / (labels * (labels - 1) * rows).clip(min=1), 0.0)
        return cls(values, present, absent, share)
