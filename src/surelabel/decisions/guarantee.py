"""One threshold for all labels, and what is promised of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surelabel.records import Flags


@dataclass(frozen=True)
class Guarantee:
    """From which probability on labels are shown, so that a risk stays small.

    The promise is about the mean risk of pictures like the labelled ones.

    Attributes:
        threshold: A probability in [0, 1]; 1, where nothing is shown, when nothing can be promised.
        risk: What was seen at the threshold in the labelled pictures; NaN when nothing can be.
        level: What the mean risk is promised to be at most.
        confidence: The probability, over draws of the labelled pictures, that the promise is
            kept; None where it is kept as a mean over such draws too.
        pictures: Labelled pictures that it rests on.
        reached: Whether it can be promised.
        needed: About how many labelled pictures would do; None when it is reached, or when more
            of the same would not help.
        sentence: All of that in words.
    """

    threshold: float
    risk: float
    level: float
    confidence: float | None
    pictures: int
    reached: bool
    needed: int | None
    sentence: str

    def shown(self, probabilities: npt.ArrayLike) -> Flags:
        """Which of these probabilities to show, of the same shape."""
        p = np.asarray(probabilities, dtype=np.float64)
        flags: Flags = (p >= self.threshold) & (self.threshold < 1)
        return flags


def promised(
    goal: str, threshold: float, risk: float, level: float, confidence: float | None, pictures: int
) -> Guarantee:
    """A guarantee that holds. ``goal`` goes on after "at most 10 % of "."""
    sentence = (
        f"Show {_from(threshold)}: at most {percent(level)} of {goal}{_sure(confidence)}, "
        f"on average over pictures like these {pictures} labelled ones. Seen in them: "
        f"{percent(risk)}."
    )
    return Guarantee(threshold, risk, level, confidence, pictures, True, None, sentence)


def not_promised(
    goal: str, level: float, confidence: float | None, pictures: int, needed: int | None, why: str
) -> Guarantee:
    """A guarantee that cannot be given; ``why`` stands where more pictures would not help."""
    remedy = f"label about {needed}" if needed else f"{why}; calibrate again or allow more"
    sentence = (
        f"It cannot be promised{_sure(confidence)} that at most {percent(level)} of {goal}: "
        f"{pictures} such labelled pictures do not prove it; {remedy}."
    )
    return Guarantee(1.0, np.nan, level, confidence, pictures, False, needed, sentence)


def percent(share: float) -> str:
    """A share as people write it.

    Example:
        >>> percent(0.1), percent(0.0625)
        ('10 %', '6.25 %')
    """
    return f"{100 * share:.3g} %"


def _from(threshold: float) -> str:
    digits = 3 if threshold < 0.99 else 5  # 0.9997 is not 1, where nothing is shown
    return (
        f"labels of probability {threshold:.{digits}g} and more" if threshold > 0 else "every label"
    )


def _sure(confidence: float | None) -> str:
    return f" with {percent(confidence)} confidence" if confidence else ""
