"""This module defines a placeholder for the program that computed scores of images."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.counts import format_count
from surelabel.encoders.image_only.precomputed_features import (
    MAX_WIDTH,
    SAVE_AGAIN,
    PrecomputedFeatures,
    read_saved_normalization,
)
from surelabel.encoders.image_only.vector_normalization import (
    VectorNormalization,
    fit_vector_normalization,
)
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.label_aliases import comparable_spelling, list_labels, split_label_aliases
from surelabel.records import SCORE_KINDS, LabelledFeatures, LabelledScores


class PrecomputedScores(PrecomputedFeatures):
    """Placeholder for the program that computed scores of images, with the labels of the columns.

    The vector of an image contains its log-odds or cosines, and the vector of a label selects its
    column. If vectors are not normalized, the method ``zero_shot`` therefore returns slope · x for
    a log-odds or cosine x. With several views of an image, x is the mean over the views.

    Args:
        kind: Meaning of the scores: ``logits``, ``probabilities`` or ``cosines``.
        columns: Labels of the columns, length k.
        views: Number of views of each image, >= 1.
        slope, level: Parameters of the log-odds slope · x + level of a cosine x, shared by all
            labels, with slope > 0. If ``level`` is None, cosines have no log-odds. Logits and
            probabilities do not need these parameters.
        images: Fitted normalization of the vectors. If None, vectors are not normalized.

    Attributes:
        scale: The slope, divided by the square root of the number of views.
        logit_bias: The level; 0 for logits and probabilities.
    """

    _manifest_kind = "scores"

    def __init__(
        self,
        kind: str,
        columns: Sequence[str],
        *,
        views: int = 1,
        slope: float = 1.0,
        level: float | None = None,
        images: VectorNormalization | None = None,
    ):
        super().__init__(
            len(columns) * views,
            normalize="standardize",
            images=images or VectorNormalization("none"),
        )
        self.name, self.kind, self.columns, self.views = f"scores:{kind}", kind, columns, views
        self.slope, self.level = slope, level if kind == "cosines" else 0.0
        self.scale, self.logit_bias = slope / math.sqrt(views), self.level
        settings = repr((kind, list(columns), views, self.slope, self.level, self.fingerprint))
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()[:16]
        self._column_of = {
            comparable_spelling(spelling): number
            for number, column in enumerate(columns)
            for spelling in split_label_aliases(column)
        }

    def vectors(self, source: LabelledFeatures) -> npt.NDArray[np.float32]:
        """Return the log-odds or cosines of images in the order of the columns, ``(n, d)``.

        Args:
            source: Scores with the kind, columns and number of views of this placeholder, with the
                columns in any order. In ``LabelledFeatures``, the columns must be in order.

        Raises:
            ConfigError: If the kind, the number of views or the columns differ.
            InputError: If a score is not valid for the kind.
        """
        if not isinstance(source, LabelledScores):
            if source.features.shape[1] != self.width:
                raise ConfigError(
                    f"{self.name} needs scores of {self._description}; got vectors of width "
                    f"{source.features.shape[1]}. Give the scores of these columns."
                )
            shape = (len(source), self.views, len(self.columns))
            return LabelledScores(
                source.features.reshape(shape), self.kind, columns=self.columns
            ).features
        if (source.kind, source.views) != (self.kind, self.views):
            raise ConfigError(
                f"{self.name} needs {self.kind} of {format_count(self.views, 'view')} of each "
                f"image; got {source.kind} of {format_count(source.views, 'view')}. Compute the "
                "scores with the program that was used for the calibration."
            )
        self._check_columns(source.columns)
        number_of = {column: number for number, column in enumerate(source.columns)}
        order = [number_of[column] for column in self.columns]
        by_view = source.features.reshape(len(source), self.views, len(order))
        return by_view[:, :, order].reshape(len(source), -1)

    def with_log_odds(self, slope: float, level: float) -> "PrecomputedScores":
        """Return the placeholder with the log-odds slope · x + level of a cosine x."""
        return PrecomputedScores(
            self.kind, self.columns, views=self.views, slope=slope, level=level, images=self.images
        )

    def with_normalization(self, images: VectorNormalization | None) -> "PrecomputedScores":
        """Return the placeholder with another normalization of the vectors.

        If ``images`` is None, vectors are not normalized.
        """
        return PrecomputedScores(
            self.kind,
            self.columns,
            views=self.views,
            slope=self.slope,
            level=self.level,
            images=images,
        )

    def fit_normalization(
        self, images: npt.NDArray[np.floating], texts: npt.NDArray[np.floating] | None = None
    ) -> "PrecomputedScores":
        """Return a placeholder that standardizes the scores by the statistics of training images.

        Args:
            images: Scores of the training images, ``(n, d)``, in the order of the columns.
            texts: Not used, because scores have no captions.

        Raises:
            InputError: If there is only one image.
        """
        return self.with_normalization(fit_vector_normalization(images, "standardize"))

    def encode_labels(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Return a unit vector for each of ``c`` labels, which selects its column, ``(c, d)``.

        Args:
            names: Labels. Each label must be a spelling of a column; case is not considered.
            templates: Prompt templates. This argument has no effect.

        Raises:
            ConfigError: If a label has no column.
        """
        unknown = [name for name in names if comparable_spelling(name) not in self._column_of]
        if unknown:
            raise ConfigError(
                f"{self.name} has no column for {list_labels(unknown[:5])}"
                f"{' …' if len(unknown) > 5 else ''}. Columns: {list_labels(self.columns[:10])}. "
                "Rename the labels or the columns, or fit the labels on the scores of all columns "
                "(`surelabel fit`)."
            )
        vectors = torch.zeros(len(names), self.views, len(self.columns))
        columns = [self._column_of[comparable_spelling(name)] for name in names]
        vectors[torch.arange(len(names)), :, torch.tensor(columns)] = 1 / math.sqrt(self.views)
        return vectors.flatten(1)

    @property
    def _manifest_source(self) -> int | str:
        return self.kind

    @property
    def _manifest_fields(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "views": self.views,
            "slope": self.slope,
            "level": self.level,
        }

    @property
    def _description(self) -> str:
        views = f" and {self.views} views" if self.views > 1 else ""
        ellipsis = " …" if len(self.columns) > 5 else ""
        columns = f"{format_count(len(self.columns), 'column')}{views}"
        return f"{columns} ({list_labels(self.columns[:5])}{ellipsis})"

    def _check_columns(self, columns: Sequence[str]) -> None:
        """Check that the columns are equal to the columns of the calibration, in any order.

        Raises:
            ConfigError: If a column is missing or not expected.
        """
        missing = [column for column in self.columns if column not in set(columns)]
        extra = [column for column in columns if column not in set(self.columns)]
        parts = [
            f"{what}: {list_labels(found[:5])}{' …' if len(found) > 5 else ''}"
            for what, found in (("missing", missing), ("not expected", extra))
            if found
        ]
        if parts:
            raise ConfigError(
                f"The columns of the scores must be the {len(self.columns)} columns of the "
                f"calibration, in any order; got {len(columns)} columns ({'; '.join(parts)}). "
                "Rename, add or remove these columns."
            )

    def _no_images_error(self) -> ConfigError:
        return ConfigError(
            f"{self.name} needs scores of images, which another program computed; got image files. "
            "Give scores:FILE (in Python LabelledScores), or use a recognizer with an encoder."
        )


def precomputed_scores_of_kind(
    kind: str, device: str, *, columns: Sequence[str] = (), views: int = 1
) -> PrecomputedScores:
    """Return the placeholder for the program that computed scores of a kind.

    Args:
        kind: Meaning of the scores: ``logits``, ``probabilities`` or ``cosines``.
        device: Name of a device. This argument has no effect.
        columns: Labels of the columns of the scores, at least one.
        views: Number of views of each image, >= 1.

    Raises:
        ConfigError: If the kind is unknown, if there is no column, if a column occurs twice, if
            ``views`` is below 1, or if an image has more than 1,048,576 scores.

    Example:
        >>> precomputed_scores_of_kind("logits", "cpu", columns=["dog", "cat"]).width
        2
    """
    if kind not in SCORE_KINDS:
        raise ConfigError(
            f"KIND in scores:KIND must be one of {', '.join(SCORE_KINDS)}; got {kind!r}. For a "
            "file of scores, run `surelabel calibrate scores:FILE DATASET --as KIND --out FOLDER`."
        )
    is_list = isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)
    if not is_list or not columns or len(set(columns)) < len(columns):
        raise ConfigError(
            f"encoder.columns must be a list of at least one label, without duplicates; got "
            f"{columns!r}. Give the label of each column of the scores."
        )
    if type(views) is not int or not 1 <= views * len(columns) <= MAX_WIDTH:
        raise ConfigError(
            f"encoder.views must be a whole number of at least 1, with at most {MAX_WIDTH:,} "
            f"scores per image; got {views!r}. Give the number of views of each image."
        )
    return PrecomputedScores(kind, list(columns), views=views)


def load_saved_precomputed_scores(
    folder: Path, manifest: dict[str, Any], device: str
) -> PrecomputedScores:
    """Return the placeholder that is described in the manifest of a saved encoder.

    Args:
        folder: Folder of the manifest.
        manifest: Content of the manifest. The value of the key ``scores`` is the kind.
        device: Name of a device. This argument has no effect.

    Raises:
        DataError: If a value is missing or invalid.
    """
    try:
        encoder = precomputed_scores_of_kind(
            manifest["scores"], device, columns=manifest["columns"], views=manifest["views"]
        )
        slope, level = manifest["slope"], manifest["level"]
        is_valid = slope > 0 and math.isfinite(slope) and (level is None or math.isfinite(level))
        if not is_valid:
            raise ValueError(f"slope {slope} and level {level}")
        images = read_saved_normalization(folder, manifest, "images", encoder.width)
    except (ConfigError, InputError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{folder} must contain a valid description of scores; got {str(manifest)[:300]} "
            f"({error}). {SAVE_AGAIN}"
        ) from error
    return PrecomputedScores(
        encoder.kind,
        encoder.columns,
        views=encoder.views,
        slope=float(slope),
        level=level,
        images=images,
    )
