"""This module defines predictions of labels, which can be shown as a summary or a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.errors import InputError, MissingPart, NotFitted
from surelabel.records.images import SkippedImage
from surelabel.shapes import check_shapes
from surelabel.summaries import Summary, shorten_text

if TYPE_CHECKING:
    import pandas

N_SUMMARY_IMAGES = 5  # images in the HTML summary of predictions
N_SUMMARY_LABELS = 5  # labels of each image in the HTML summary
UNCERTAINTY_KINDS = ("bernoulli_variance", "residual_error", "match_variance")


@dataclass(frozen=True)
class EncodingStats:
    """Computing time and number of encoder inputs for several images.

    Attributes:
        n_cached: Number of images whose features were read from the cache.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds.
        encoder_passes: Number of encoder inputs: images and their views, including inputs whose
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
        uncertainty: Uncertainty of each label, >= 0, ``(n, c)``, or None if no uncertainty was
            requested. ``bernoulli_variance`` and ``residual_error`` are in [0, 1].
        uncertainty_kind: Kind of the uncertainty, one of ``UNCERTAINTY_KINDS``, or None without
            uncertainty; see ``Recognizer.predict``.
        shown: Boolean mask of the labels that are shown, ``(n, c)``, for example labels that reach
            the thresholds of an operating point. If no labels were selected, the value is None.
        thresholds: Minimum probability at which each label is shown, ``(c,)``; a label with the
            threshold 1 is never shown. If no thresholds were used, the value is None.
        engine: Engine and number format that computed the features of the images, such as
            ``openvino bf16``. For ``torch fp32``, and for scores or vectors of another program, the
            value is None.
        row_noun: Noun for an input in messages: ``image``, or ``row`` for precomputed vectors.
            Prediction files do not contain this noun.

    Raises:
        InputError: If the shapes and lengths do not match, if ``uncertainty_kind`` is unknown, or
            if only one of ``uncertainty`` and ``uncertainty_kind`` is given.
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
    uncertainty: npt.NDArray[np.float32] | None = None
    uncertainty_kind: str | None = None
    shown: Flags | None = None
    thresholds: Array | None = None
    engine: str | None = None
    row_noun: str = "image"

    def __post_init__(self) -> None:
        check_shapes(
            scores=(self.scores, "n c"),
            logits=(self.logits, "n c"),
            features=(self.features, "n d"),
            uncertainty=(self.uncertainty, "n c"),
            shown=(self.shown, "n c"),
            thresholds=(self.thresholds, "c"),
        )
        if self.scores.shape != (len(self.paths), len(self.names)):
            raise InputError(
                f"scores must have one row per path and one column per label, with shape "
                f"({len(self.paths)}, {len(self.names)}); got shape {self.scores.shape}."
            )
        if self.hashes is not None and len(self.hashes) != len(self.paths):
            raise InputError(
                f"hashes must have one entry per path, {len(self.paths)}; got {len(self.hashes)}."
            )
        if (self.uncertainty is None) != (self.uncertainty_kind is None):
            raise InputError(
                "uncertainty and uncertainty_kind must be given together; got uncertainty_kind "
                f"{self.uncertainty_kind!r} with{'out' * (self.uncertainty is None)} uncertainty "
                "values. Give both or neither."
            )
        if self.uncertainty_kind is not None:
            check_uncertainty_kind(self.uncertainty_kind)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        """Return the numbers of images and labels, the calibration and the recognizer."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        """Return the summary as HTML, with the highest-ranked labels of the first images."""
        first = self._first(N_SUMMARY_IMAGES)
        kind, values = first._probabilities_or_scores()
        order = np.lexsort((-first.scores, -values))[:, :N_SUMMARY_LABELS]
        rows = [
            (path, *(f"{shorten_text(self.names[c], max_length=40)} {row[c]:.3g}" for c in columns))
            for path, row, columns in zip(first.paths, values, order, strict=True)
        ]
        header = (self.row_noun, *(f"rank {rank + 1}" for rank in range(order.shape[1])))
        summary = self._summary()
        properties = {**summary.properties, "values": kind}
        return Summary(summary.title, properties, header, rows, len(self)).as_markup()

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
        probabilities = self.logits.astype(np.float64)
        return np.asarray(expit(probabilities, out=probabilities))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the predictions as a pandas table with one row per image.

        The index ``path`` contains the paths of the images, and each column contains the values of
        one label: probabilities if the predictions are calibrated, otherwise scores. The table is a
        copy, and does not contain the skipped images.

        Returns:
            Table of shape ``(n, c)``. Its ``attrs`` contain ``values``, which is "probabilities" or
            "scores", ``calibration`` and ``model``.

        Raises:
            MissingPart: If pandas is not installed.

        Example:
            >>> logits = np.array([[0.0, -2.0]], np.float32)
            >>> table = Predictions(["a.jpg"], ["dog", "cat"], logits, logits, "platt").to_pandas()
            >>> table.attrs["values"], table.loc["a.jpg"].round(2).to_dict()
            ('probabilities', {'dog': 0.5, 'cat': 0.12})
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingPart(
                "Predictions.to_pandas needs the package pandas, which is not installed. "
                "Run pip install 'surelabel[pandas]'."
            ) from error
        kind, values = self._probabilities_or_scores()
        table = pandas.DataFrame(
            values,
            index=pandas.Index(list(self.paths), dtype=object, name="path"),
            columns=pandas.Index(list(self.names), dtype=object, name="label"),
            copy=True,
        )
        table.attrs = {"values": kind, "calibration": self.calibration, "model": self.model}
        return table

    def _probabilities_or_scores(self) -> tuple[str, npt.NDArray[np.floating]]:
        """Return the name and the values of the probabilities, or of the scores if uncalibrated."""
        if self.logits is None or self.calibration is None:
            return "scores", self.scores
        return "probabilities", self.probabilities

    def _first(self, n: int) -> "Predictions":
        """Return the predictions of the first n images, without image vectors and hashes."""
        return replace(
            self,
            paths=self.paths[:n],
            scores=self.scores[:n],
            logits=None if self.logits is None else self.logits[:n],
            features=None,
            hashes=None,
            uncertainty=None if self.uncertainty is None else self.uncertainty[:n],
            shown=None if self.shown is None else self.shown[:n],
        )

    def _summary(self) -> Summary:
        properties = {
            f"{self.row_noun}s": len(self),
            "labels": len(self.names),
            "calibration": self.calibration,
            "skipped": len(self.skipped),
            "model": self.model,
        }
        if self.uncertainty_kind is not None:
            properties["uncertainty"] = self.uncertainty_kind
        return Summary("Predictions", properties)


def check_uncertainty_kind(kind: str) -> None:
    """Check that a kind of uncertainty exists.

    Raises:
        InputError: If ``kind`` is not one of ``UNCERTAINTY_KINDS``.
    """
    if kind not in UNCERTAINTY_KINDS:
        raise InputError(
            f"uncertainty must be one of {', '.join(UNCERTAINTY_KINDS)}; got {kind!r}. Give one of "
            "these kinds, or None."
        )
