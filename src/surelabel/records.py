"""The frozen dataclasses that travel between the rooms. Checked once, when they are made.

Axes: ``n`` images, ``c`` classes, ``d`` feature width, ``w`` tower width, ``p`` patches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from torch import Tensor

from surelabel.errors import InputError, NotFitted
from surelabel.shapes import check_shapes

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
LOGIT_LIMIT = (
    40.0  # logits are kept inside [-40, 40], where a float64 sigmoid still tells them apart
)


@dataclass(frozen=True)
class Features:
    """What a backbone saw in a batch of pictures; unit vectors where the space is joint.

    Attributes:
        pooled: One vector a picture, ``(n, d)``.
        patches: One vector a patch, ``(n, p, d)``, row by row of the grid.
        grid: Patches down and across.
        attention: How much each patch looks at each, rows of sum 1, ``(n, p, p)``.
        views: One vector for each part of a picture that its method looks at, ``(n, t, d)``.
        layers: Tokens after chosen layers of the tower, each ``(n, p, w)``; -1 is the last. Those
            of ``ladder`` have the class token first, ``(n, 1 + p, w)``.
        pixels: The prepared pictures, ``(n, 3, h, w)``, where a trainable part needs them.
        beside: What self-aware attention of chosen lower blocks adds up to, ``(n, p, w)``.
    """

    pooled: Tensor
    patches: Tensor | None = None
    grid: tuple[int, int] | None = None
    attention: Tensor | None = None
    views: Tensor | None = None
    layers: dict[int, Tensor] | None = None
    pixels: Tensor | None = None
    beside: Tensor | None = None


@dataclass(frozen=True)
class Step:
    """One training step, as a regularizer sees it. Gradients flow through scores and logits.

    Attributes:
        scores: What the head gave, ``(n, c)``.
        logits: Their log-odds, not clipped, ``(n, c)``; None where the loss has no link that rises
            with a slope everywhere (focal, asymmetric, set losses): take the scores there.
        targets: In [0, 1], 1 = present, ``(n, c)``; 0 where unknown.
        known: True where the target is known, ``(n, c)``.
        texts: Unit vectors of the names from the frozen encoder, ``(c, d)``; None without any.
        features: What the pictures gave, ``(n, d)``; None where the step has none.
    """

    scores: Tensor
    logits: Tensor | None
    targets: Tensor
    known: Tensor
    texts: Tensor | None = None
    features: Tensor | None = None


@dataclass(frozen=True)
class Images:
    """Pictures without labels.

    Attributes:
        paths: One file each.
    """

    paths: Sequence[str]

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class LabelledImages:
    """Pictures with labels.

    Attributes:
        paths: One file each.
        names: The labels.
        targets: 1 where present, 0 where absent, in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
    """

    paths: Sequence[str]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # filled below; never None afterwards

    def __post_init__(self) -> None:
        targets, known = checked_targets(self.targets, self.known)
        if targets.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"targets must have one row a picture and one column a name, "
                f"({len(self.paths)}, {len(self.names)}). Got {targets.shape}."
            )
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "known", known)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledImages":
        """Only the pictures with these row numbers, in this order."""
        rows = np.asarray(rows, dtype=int)
        paths = [self.paths[r] for r in rows]
        return LabelledImages(paths, self.names, self.targets[rows], self.known[rows])


@dataclass(frozen=True)
class LabelledFeatures:
    """Ready-made vectors with labels, for those who have arrays and no pictures.

    Attributes:
        features: One vector a row, any length but zero, ``(n, d)``.
        names: The labels.
        targets: 1 where present, 0 where absent, in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``; all of them when left out.
        paths: What each row is called; ``row 0``, ``row 1`` … when left out.
    """

    features: npt.NDArray[np.float32]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # filled below; never None afterwards
    paths: Sequence[str] = ()

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):  # what is too large becomes infinite and is refused below
            features = np.asarray(self.features, dtype=np.float32)
        targets, known = checked_targets(self.targets, self.known)
        check_shapes(features=(features, "n d"), targets=(targets, "n c"))
        if targets.shape[1] != len(self.names):
            raise InputError(
                f"targets must have one column a name, {len(self.names)}. Got {targets.shape[1]}."
            )
        if not np.isfinite(features).all():
            raise InputError(
                f"features must be finite numbers. Got {(~np.isfinite(features)).sum()} that are "
                "not; drop those rows."
            )
        paths = list(self.paths) or [f"row {i}" for i in range(len(features))]
        if len(paths) != len(features):
            raise InputError(f"paths must be one a row, {len(features)}. Got {len(paths)}.")
        for name, value in (
            ("features", features),
            ("targets", targets),
            ("known", known),
            ("paths", paths),
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledFeatures":
        """Only these rows, in this order."""
        rows = np.asarray(rows, dtype=int)
        return LabelledFeatures(
            self.features[rows],
            self.names,
            self.targets[rows],
            self.known[rows],
            [self.paths[r] for r in rows],
        )


@dataclass(frozen=True)
class Skipped:
    """A picture that could not be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Work:
    """What it took to encode pictures.

    Attributes:
        cached: How many came from the cache.
        decode_seconds: Spent decoding, summed over workers.
        model_seconds: Spent in the encoder.
        passes: How often the encoder looks at a picture or a part of one, in all; what came from
            the cache counts too.
    """

    cached: int
    decode_seconds: float
    model_seconds: float
    passes: int = 0


@dataclass(frozen=True)
class Predictions:
    """What a recognizer says of a set of pictures.

    Attributes:
        paths: One file each.
        names: The labels.
        scores: Only their order means something; they break ties between logits, ``(n, c)``.
        logits: Log-odds in [-40, 40], ``(n, c)``; None when nothing gives log-odds.
        calibration: What made the logits trustworthy, in words; None when nothing did.
        model: Fingerprint of the recognizer that made them.
        features: Image vectors for search by sentence, ``(n, d)`` fp16, or None.
        skipped: Pictures that could not be read.
        work: What it took, or None where nothing was encoded.
        hashes: Of what each file held when it was read, or None where that is not known.
    """

    paths: Sequence[str]
    names: Sequence[str]
    scores: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32] | None = None
    calibration: str | None = None
    model: str = ""
    features: npt.NDArray[np.float16] | None = None
    skipped: Sequence[Skipped] = field(default=())
    work: Work | None = None
    hashes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_shapes(
            scores=(self.scores, "n c"),
            logits=(self.logits, "n c"),
            features=(self.features, "n d"),
        )
        if self.scores.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"scores must be ({len(self.paths)}, {len(self.names)}), one row a path and one "
                f"column a name. Got {self.scores.shape}."
            )
        if self.hashes is not None and len(self.hashes) != len(self.paths):
            raise InputError(
                f"hashes must be one a path, {len(self.paths)}. Got {len(self.hashes)}."
            )

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def probabilities(self) -> Array:
        """Sigmoid of the logits, ``(n, c)``.

        Raises:
            NotFitted: nothing calibrated these predictions.
        """
        if self.logits is None or self.calibration is None:
            raise NotFitted(
                "These predictions have scores but no probabilities: nothing calibrated them. "
                "Calibrate the recognizer on labelled pictures (`surelabel calibrate`, or "
                "`recognizer.calibrate(held_out)`) and predict again, or use the scores."
            )
        probabilities: Array = expit(self.logits.astype(np.float64))
        return probabilities


def checked_targets(targets: npt.ArrayLike, known: npt.ArrayLike | None) -> tuple[Array, Flags]:
    """Targets as float64 in [0, 1] and what is known of them; NaN counts as unknown.

    Returns:
        ``targets`` ``(n, c)`` with 0 at unknown places, and ``known`` ``(n, c)``.

    Raises:
        InputError: a known target lies outside [0, 1], or the shapes differ.
    """
    wanted = np.array(targets, dtype=np.float64)
    given = ~np.isnan(wanted)
    if known is not None:
        flags = np.asarray(known)
        if not np.isin(flags, (0, 1)).all():
            raise InputError("known must be True or False for each target. Got other values.")
        given = given & flags.astype(bool)
    check_shapes(targets=(wanted, "n c"), known=(given, "n c"))
    if not given.all():
        wanted[~given] = 0
    if wanted.size and (wanted.min() < 0 or wanted.max() > 1):
        bad = wanted[(wanted < 0) | (wanted > 1)][0]
        raise InputError(
            f"targets must lie in [0, 1], 1 = present; NaN, or known=False, means unknown. "
            f"Got {bad}."
        )
    return wanted, given
