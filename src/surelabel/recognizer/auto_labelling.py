"""Accept predicted targets with a bound on the expected share of wrong targets."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.data.labels import csv
from surelabel.decisions import (
    accept_claims,
    benjamini_yekutieli,
    conformal_p_values,
    fewest_calibration_images,
)
from surelabel.errors import InputError
from surelabel.files import check_is_new_file
from surelabel.progress import Progress
from surelabel.recognizer.calibration_sample import (
    CalibrationSample,
    calibrated_logits,
    make_calibration_sample,
    predict_new_images,
)
from surelabel.recognizer.inputs import (
    LabelledInput,
    RecognizerInput,
    resolve_recognizer_input,
)
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.vector_normalization import row_noun
from surelabel.records import Images, LabelledImages, RowSelection
from surelabel.summaries import Summary

CHOSEN_BY = "auto_label"  # in the column chosen_by of accepted targets: no random rows
N_SUMMARY_ROWS = 20


@dataclass(frozen=True)
class AutoLabelCount:
    """Numbers of images with one predicted target of a label.

    Attributes:
        label: Label.
        target: Predicted target, 1 or 0.
        images: Number of new images with this predicted target.
        accepted: Number of these images whose predicted target was accepted.
        min_probability: Lowest probability of an accepted predicted target, in [0.5, 1]. If none
            was accepted, None.
        calibration_images: Number of calibration images with this predicted target and a known
            target.
        wrong: Number of these calibration images whose predicted target is wrong.
        more_images_needed: Number of further calibration images with this predicted target
            without which no target can be accepted; 0 if there are enough.
    """

    label: str
    target: int
    images: int
    accepted: int
    min_probability: float | None
    calibration_images: int
    wrong: int
    more_images_needed: int

    @property
    def share(self) -> float:
        """Return the share of images with an accepted target, in [0, 1], or 0 without images."""
        return self.accepted / max(self.images, 1)


@dataclass(frozen=True, eq=False)
class AutoLabels:
    """Result of :func:`auto_label`.

    Attributes:
        paths: Paths of n new images, or identifiers of vectors or scores.
        names: Labels, length c.
        targets: Accepted targets, ``(n, c)``: 1, 0, or NaN for a target that a person must decide.
        max_wrong: Bound of the expected share of wrong targets among the accepted ones.
        pooled: Whether the bound holds for all accepted targets together. If False, it holds for
            each label and predicted target.
        calibration_images: Number of calibration images.
        left_out: Number of images that were not labelled, because they are calibration images, or
            because the recognizer was fitted or calibrated on them.
        counts: Numbers for each label and predicted target.
        noun: Noun of a row in messages: ``image``, or ``row`` of vectors.
        has_files: Whether the paths are those of image files. If False, they are identifiers.
    """

    paths: Sequence[str]
    names: Sequence[str]
    targets: Array
    max_wrong: float
    pooled: bool
    calibration_images: int
    left_out: int
    counts: Sequence[AutoLabelCount]
    noun: str = "image"
    has_files: bool = True

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        """Return the numbers of images, of accepted targets and of targets for people."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def accepted(self) -> Flags:
        """Return the mask of the accepted targets, ``(n, c)``."""
        return ~np.isnan(self.targets)

    @property
    def guarantee(self) -> str:
        """Return sentences that state the bound for the accepted targets and its condition."""
        group = "all labels together" if self.pooled else "each label and predicted target"
        return (
            f"For {group}, the expected share of wrong targets among accepted targets is at most "
            f"{100 * self.max_wrong:g} %. The bound requires that the calibration {self.noun}s are "
            f"a random sample of the collection to label. The bound holds for all {len(self):,} "
            f"{self.noun}s together, not for a single {self.noun}."
        )

    def as_labelled_images(self) -> LabelledImages:
        """Return the accepted targets as annotated images, of which none is a random sample."""
        selection = RowSelection([CHOSEN_BY] * len(self), np.full(len(self), np.nan))
        return LabelledImages(self.paths, self.names, self.targets, row_selection=selection)

    def to_csv(self, path: str | Path) -> None:
        """Write the accepted targets as a CSV file; targets for people are empty cells.

        ``read_labels`` reads the file as a dataset with unknown targets. Its column ``chosen_by``
        states ``auto_label``, so that no calibration, evaluation or guarantee uses these targets.

        Args:
            path: Path of a new file. An existing file is not replaced, because people may have
                filled its cells.

        Raises:
            InputError: If a label cannot be the name of a column.
            DataError: If the file exists or cannot be written.
        """
        check_is_new_file(path)
        write = csv.write if self.has_files else csv.write_label_entries
        write(self.as_labelled_images(), path)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as a JSON object, without the targets of single images."""
        accepted = self.accepted
        return {
            "images": len(self),
            "labels": len(self.names),
            "accepted": int(accepted.sum()),
            "for_people": int((~accepted).sum()),
            "max_wrong": self.max_wrong,
            "pooled": self.pooled,
            "calibration_images": self.calibration_images,
            "left_out": self.left_out,
            "guarantee": self.guarantee,
            "by_label": [asdict(count) | {"share": count.share} for count in self.counts],
        }

    def _summary(self) -> Summary:
        n_accepted = int(self.accepted.sum())
        properties = {
            f"{self.noun}s": len(self),
            "labels": len(self.names),
            "accepted targets": n_accepted,
            "targets for people": self.targets.size - n_accepted,
            "max_wrong": self.max_wrong,
        }
        rows = [
            (c.label, *map(str, (c.target, c.images, c.accepted, c.calibration_images, c.wrong)))
            for c in self.counts[:N_SUMMARY_ROWS]
        ]
        header = ("label", "predicted", f"{self.noun}s", "accepted", "calibration", "wrong")
        return Summary("AutoLabels", properties, header, rows, len(self.counts))


def auto_label(
    recognizer: Recognizer,
    calibration: LabelledInput,
    images: RecognizerInput,
    *,
    max_wrong: float = 0.05,
    pooled: bool = False,
    progress: Progress | None = None,
) -> AutoLabels:
    """Accept predicted targets of new images such that few accepted targets are wrong.

    The predicted target of a label is 1 if its probability is at least 0.5, and otherwise 0.
    Predicted targets with a high probability are accepted; a person decides the other targets. For
    each label and predicted target, the expected share of wrong targets among the accepted ones is
    at most ``max_wrong``. The bound requires no calibrated probabilities, but few targets are
    accepted if the probabilities are not informative.

    The bound holds if the calibration images are a random sample of the images to label, and all
    images to label are given in one call. The bound is an expectation over random samples. It does
    not hold for a single image, nor for other images. Images of the fit are left out. If a strategy
    chose a large share of all images for the fit, the remaining images are no random sample, and
    the bound does not hold. In this case, sample the calibration images after the fit.

    Args:
        recognizer: Calibrated recognizer.
        calibration: Annotated random sample. Images that the recognizer was fitted or calibrated
            on, and rows that a strategy chose, are left out with a warning.
        images: Images, vectors or scores to label, as for ``Recognizer.predict``. Calibration
            images, and images of the fit, are left out; :attr:`AutoLabels.left_out` counts them.
        max_wrong: Bound of the expected share of wrong targets among the accepted ones, in (0, 1).
        pooled: Whether the bound holds for all accepted targets together instead of each label and
            predicted target. Many more calibration images are needed.
        progress: Function called with the number of encoded images and the total number of images,
            first of calibration images, then of new images.

    Raises:
        NotFitted: If the recognizer is not calibrated.
        ConfigError: If ``max_wrong`` is outside (0, 1).
        InputError: If too few calibration images remain to accept any target, if a target of a
            calibration image is neither 0 nor 1, or if no new image remains.
        DataError: If no image can be read.

    Source:
        Conformal labelling, arXiv:2510.14581, after Jin and Candès, Selection by Prediction with
        Conformal p-values, Journal of Machine Learning Research 24, 2023.

    Differs:
        The function was written without the code of the papers. The bound holds separately for each
        label and predicted target. If there are few calibration images for them, one test replaces
        Benjamini-Hochberg; see ``decisions.claim_selection``.

    Example:
        >>> import surelabel as sl
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(scale=4, size=(600, 1))
        >>> targets = rng.random((600, 1)) < expit(logits)
        >>> names = [f"{row}.jpg" for row in range(600)]
        >>> scores = sl.LabelledScores(
        ...     logits, "logits", columns=["dog"], targets=targets * 1.0, paths=names)
        >>> recognizer = sl.Recognizer.from_scores("logits", ["dog"])
        >>> new = scores.without_labels().take(range(300, 600))
        >>> result = sl.auto_label(recognizer, scores.take(range(300)), new)
        >>> [(count.target, count.images, count.accepted) for count in result.counts]
        [(1, 147, 89), (0, 153, 80)]
    """
    fewest = fewest_calibration_images(max_wrong)
    sample = make_calibration_sample(recognizer, calibration, progress=progress)
    _check_enough_calibration_images(sample, fewest, max_wrong)
    predictions, n_left_out = predict_new_images(recognizer, images, sample, progress=progress)
    logits = calibrated_logits(predictions)
    accept = _accept_pooled_targets if pooled else _accept_targets_of_groups
    accepted = accept(sample, logits, max_wrong)
    targets = np.where(accepted, logits >= 0, np.nan)
    return AutoLabels(
        predictions.paths,
        predictions.names,
        targets,
        max_wrong,
        pooled,
        len(sample),
        n_left_out,
        _auto_label_counts(sample, logits, accepted, max_wrong),
        row_noun(recognizer.encoder),
        isinstance(resolve_recognizer_input(images), Images | LabelledImages),
    )


def _accept_targets_of_groups(sample: CalibrationSample, logits: Array, level: float) -> Flags:
    """Return which predicted targets are accepted, for each label and predicted target."""
    accepted = np.zeros(logits.shape, dtype=bool)
    for rows, column, arguments in _groups_of_predicted_targets(sample, logits):
        accepted[rows, column] = accept_claims(*arguments, level=level)
    return accepted


def _accept_pooled_targets(sample: CalibrationSample, logits: Array, level: float) -> Flags:
    """Return which predicted targets are accepted, with one bound for all labels together."""
    p_values, accepted = np.ones(logits.shape), np.zeros(logits.shape, dtype=bool)
    for rows, column, arguments in _groups_of_predicted_targets(sample, logits):
        p_values[rows, column] = conformal_p_values(*arguments)
    is_annotated = sample.known.any(axis=0)
    values = p_values[:, is_annotated]
    rejected = benjamini_yekutieli(values.ravel(), level=level)
    accepted[:, is_annotated] = rejected.reshape(values.shape)
    return accepted


def _groups_of_predicted_targets(
    sample: CalibrationSample, logits: Array
) -> Iterator[tuple[Flags, int, tuple[Array, Array, Flags]]]:
    """Yield new images, column and claims of each label and predicted target.

    The claims are the probabilities of the predicted targets of new images and of calibration
    images, and a mask of the wrong predicted targets of calibration images.
    """
    for column, is_known in enumerate(sample.known.T):
        reference, is_positive = sample.logits[:, column], sample.is_positive[:, column]
        for target in (True, False):
            known = is_known & ((reference >= 0) == target)
            rows = (logits[:, column] >= 0) == target
            confidences = expit(np.abs(logits[rows, column]))
            calibration = expit(np.abs(reference[known]))
            yield rows, column, (confidences, calibration, is_positive[known] != target)


def _calibration_counts(sample: CalibrationSample) -> tuple[Array, Array]:
    """Return the numbers of calibration images and of wrong predicted targets, both ``(c, 2)``.

    The first column belongs to the predicted target 1, the second one to 0.
    """
    is_predicted = sample.logits >= 0
    groups = [sample.known & (is_predicted == target) for target in (True, False)]
    is_wrong = is_predicted != sample.is_positive
    images = np.stack([group.sum(axis=0) for group in groups], axis=1)
    return images, np.stack([(group & is_wrong).sum(axis=0) for group in groups], axis=1)


def _check_enough_calibration_images(
    sample: CalibrationSample, fewest: int, max_wrong: float
) -> None:
    """Check that a target of at least one label can be accepted, before new images are encoded.

    Raises:
        InputError: If each label has too few calibration images.
    """
    most = int(_calibration_counts(sample)[0].max())
    if most < fewest:
        raise InputError(
            f"max_wrong {max_wrong:g} requires at least "
            f"{format_count(fewest, 'calibration image')} with the same predicted target for one "
            f"label; got at most {most}. Annotate more random images, or increase max_wrong."
        )


def _auto_label_counts(
    sample: CalibrationSample, logits: Array, accepted: Flags, level: float
) -> list[AutoLabelCount]:
    """Return the numbers of images of each label and predicted target."""
    calibration_images, wrong = _calibration_counts(sample)
    counts = []
    for column, label in enumerate(sample.predictions.names):
        for index, target in enumerate((1, 0)):
            rows = (logits[:, column] >= 0) == bool(target)
            values = np.abs(logits[rows & accepted[:, column], column])
            n_images = int(calibration_images[column, index])
            fewest = fewest_calibration_images(level, max(int(rows.sum()), 1))
            counts.append(
                AutoLabelCount(
                    label,
                    target,
                    int(rows.sum()),
                    len(values),
                    float(expit(values.min())) if len(values) else None,
                    n_images,
                    int(wrong[column, index]),
                    max(fewest - n_images, 0),
                )
            )
    return counts
