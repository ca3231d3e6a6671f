"""What the regions of one picture say of its labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from surelabel.records import Array


@dataclass(frozen=True)
class Regions:
    """Which region of a picture speaks for which label.

    All arrays are ``(down, across)``, row by row of the picture; the encoder's own view may lie on
    another grid than the method's.

    Attributes:
        maps: Label → how strongly each region speaks for it; only their order means something.
        owners: Of all labels that were asked for, the one that each region speaks for most.
        cover: What the regions cover: the ``whole`` picture, its ``middle``, or it ``padded``.
        presence: How much each region counts, sum 1; None where the method counts all alike.
        before: Label → cosines of the regions as the frozen encoder has them; empty where ``maps``
            is just that.
        after: Label → cosines of the regions as the method has made them, where it makes any.
    """

    maps: Mapping[str, Array]
    owners: npt.NDArray[np.str_]
    cover: str = "whole"
    presence: Array | None = None
    before: Mapping[str, Array] = field(default_factory=dict)
    after: Mapping[str, Array] = field(default_factory=dict)
