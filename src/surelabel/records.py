"""Immutable records of images, features, targets and predictions, validated on construction.

Axes of arrays: ``n`` images, ``c`` classes, ``d`` feature width, ``w`` tower width, ``p`` patches,
``t`` views.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from torch import Tensor

from surelabel.arrays import Array, Flags, validate_target_arrays
from surelabel.errors import InputError, NotFitted
from surelabel.shapes import check_shapes


@dataclass(frozen=True)
class Features:
    """Output of an image encoder for a batch of images.

    ``pooled``, ``patches`` and ``views`` are unit vectors if the encoder has a joint space of
    images and texts.

    Attributes:
        pooled: Pooled vectors of n images, ``(n, d)``.
        patches: Vectors of p patches of each image, ``(n, p, d)``, in row-major order of the
            patch grid.
        grid: Numbers of rows and columns of the patch grid.
        attention: Attention weights of each patch over all patches, ``(n, p, p)``; rows sum to 1.
        views: Vectors of t separately encoded parts of each image, ``(n, t, d)``.
        layers: Tokens after selected layers of the tower, each ``(n, p, w)``, by layer index; the
            index -1 is the last layer. In features of the kind ``ladder``, the class token precedes
            the patch tokens, ``(n, 1 + p, w)``.
        pixels: Preprocessed images, ``(n, 3, height, width)``, for methods that train the encoder.
        self_aware_sum: Sum of the outputs of self-aware attention over selected lower blocks,
            ``(n, p, w)``; see ``Encoder.encode_ladder_features``.
    """

    pooled: Tensor
    patches: Tensor | None = None
    grid: tuple[int, int] | None = None
    attention: Tensor | None = None
    views: Tensor | None = None
    layers: dict[int, Tensor] | None = None
    pixels: Tensor | None = None
    self_aware_sum: Tensor | None = None


@dataclass(frozen=True)
class TrainingStep:
    """Tensors of a training step for regularizers; gradients flow through scores and logits.

    Attributes:
        scores: Output scores of the method, ``(n, c)``.
        logits: Log-odds of the scores, not clipped, ``(n, c)``. If the loss has no link that is
            strictly increasing everywhere (focal, asymmetric, set losses), the value is None.
        targets: Targets in [0, 1] with 1 = positive, ``(n, c)``. If a target is unknown, the value
            is 0.
        known: Boolean mask of known targets, ``(n, c)``.
        texts: Unit vectors of the labels from the frozen text encoder, ``(c, d)``. If there is no
            text encoder, the value is None.
        features: Image vectors of the step, ``(n, d)``. If the step has no image vectors, the
            value is None.
    """

    scores: Tensor
    logits: Tensor | None
    targets: Tensor
    known: Tensor
    texts: Tensor | None = None
    features: Tensor | None = None


@dataclass(frozen=True)
class Images:
    """Images without labels.

    Attributes:
        paths: Paths of the images, length n.
    """

    paths: Sequence[str]

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class LabelledImages:
    """Images with labels (annotated images).

    Attributes:
        paths: Paths of the images, length n.
        names: Labels of the c classes, length c.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. Unknown
            targets are stored as 0.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.

    Raises:
        InputError: If the shapes of ``targets`` and ``known`` do not match the numbers of paths and
            names, or if a known target is outside [0, 1].
    """

    paths: Sequence[str]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # set in __post_init__

    def __post_init__(self) -> None:
        targets, known = validate_target_arrays(self.targets, self.known)
        if targets.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"targets must have one row per image and one column per label, "
                f"({len(self.paths)}, {len(self.names)}); got {targets.shape}."
            )
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "known", known)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> "LabelledImages":
        """Return the annotated images at the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        paths = [self.paths[r] for r in rows]
        return LabelledImages(paths, self.names, self.targets[rows], self.known[rows])


@dataclass(frozen=True)
class LabelledFeatures:
    """Precomputed image features with labels, in place of image files.

    Attributes:
        features: Finite, nonzero feature vectors of n images, ``(n, d)``.
        names: Labels of the c classes, length c.
        targets: Targets in [0, 1], 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``. Unknown
            targets are stored as 0.
        known: Boolean mask of known targets, ``(n, c)``. If None, all targets except NaN are
            known.
        paths: Identifiers of the rows, length n. If empty, the identifiers are ``row 0``,
            ``row 1`` and so on.

    Raises:
        InputError: If the shapes and lengths do not match, if a feature is not finite, or if a
            known target is outside [0, 1].
    """

    features: npt.NDArray[np.float32]
    names: Sequence[str]
    targets: Array
    known: Flags = None  # type: ignore[assignment]  # set in __post_init__
    paths: Sequence[str] = ()

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):  # overflow gives infinity, an error below
            features = np.asarray(self.features, dtype=np.float32)
        targets, known = validate_target_arrays(self.targets, self.known)
        check_shapes(features=(features, "n d"), targets=(targets, "n c"))
        if targets.shape[1] != len(self.names):
            raise InputError(
                f"targets must have one column per label, {len(self.names)}; "
                f"got {targets.shape[1]}."
            )
        if not np.isfinite(features).all():
            raise InputError(
                f"features must be finite; got {(~np.isfinite(features)).sum()} values that are "
                "not finite. Remove the rows with these values."
            )
        paths = list(self.paths) or [f"row {i}" for i in range(len(features))]
        if len(paths) != len(features):
            raise InputError(
                f"paths must have one entry per row, {len(features)}; got {len(paths)}."
            )
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
        """Return features and labels at the given row indices, in the order of the indices."""
        rows = np.asarray(rows, dtype=int)
        return LabelledFeatures(
            self.features[rows],
            self.names,
            self.targets[rows],
            self.known[rows],
            [self.paths[r] for r in rows],
        )


@dataclass(frozen=True)
class SkippedImage:
    """Image that could not be read, with the reason.

    Attributes:
        path: Path of the image.
        reason: Short description of the failure.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class EncodingStats:
    """Computing time and number of encoder inputs for several images.

    Attributes:
        n_cached: Number of images whose features were read from the cache.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds.
        encoder_passes: Number of encoder inputs: images and their views, including those whose
            features were read from the cache.
    """

    n_cached: int
    decode_seconds: float
    model_seconds: float
    encoder_passes: int = 0


@dataclass(frozen=True)
class Predictions:
    """Scores and logits of c labels for n images.

    Attributes:
        paths: Paths of the images, length n.
        names: Labels of the c classes, length c.
        scores: Ranking scores, ``(n, c)``. Only the order of the scores has a meaning. If two
            logits are equal, the scores determine the order.
        logits: Log-odds in [-40, 40], ``(n, c)``. If the recognizer has no link, the value is
            None.
        calibration: Description of the calibration. If the logits are uncalibrated, the value is
            None.
        model: Fingerprint of the recognizer.
        features: Image vectors in fp16 for search by sentence, ``(n, d)``, or None if image
            vectors are not available.
        skipped: Images that could not be read, each with the reason.
        encoding_stats: Computing time of the encoding. If no image was encoded, the value is None.
        hashes: Content hashes of the image files, length n. If the hashes are unknown, the value
            is None.

    Raises:
        InputError: If the shapes and lengths do not match.
    """

    paths: Sequence[str]
    names: Sequence[str]
    scores: npt.NDArray[np.float32]
    logits: npt.NDArray[np.float32] | None = None
    calibration: str | None = None
    model: str = ""
    features: npt.NDArray[np.float16] | None = None
    skipped: Sequence[SkippedImage] = field(default=())
    encoding_stats: EncodingStats | None = None
    hashes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_shapes(
            scores=(self.scores, "n c"),
            logits=(self.logits, "n c"),
            features=(self.features, "n d"),
        )
        if self.scores.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"scores must have one row per path and one column per label, "
                f"({len(self.paths)}, {len(self.names)}); got {self.scores.shape}."
            )
        if self.hashes is not None and len(self.hashes) != len(self.paths):
            raise InputError(
                f"hashes must have one entry per path, {len(self.paths)}; got {len(self.hashes)}."
            )

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def probabilities(self) -> Array:
        """Return the calibrated probabilities, the sigmoid of the logits, ``(n, c)``.

        Raises:
            NotFitted: If the predictions are uncalibrated.
        """
        if self.logits is None or self.calibration is None:
            raise NotFitted(
                "Probabilities need a calibrated recognizer; these predictions are uncalibrated. "
                "Calibrate the recognizer on annotated images (`surelabel calibrate`, or "
                "`recognizer.calibrate(held_out)`) and predict again, or use the scores."
            )
        probabilities: Array = expit(self.logits.astype(np.float64))
        return probabilities
