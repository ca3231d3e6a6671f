"""Define the fitted calibration of a recognizer: calibrator, label shift, validation record."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import LOGIT_LIMIT, Array
from surelabel.calibration import (
    CALIBRATORS,
    Calibrator,
    HasLabelParameters,
    LabelTexts,
    UsesLabelTexts,
    are_selection_log_losses,
    calibrator_for_images,
    estimate_label_shift,
)
from surelabel.config import Run
from surelabel.counts import format_count
from surelabel.decisions import ValidationRecord
from surelabel.encoders import Encoder, embedded_calibration
from surelabel.errors import DataError, InputError, NotFitted
from surelabel.recognizer.label_tree_projection import LabelTreeProjection
from surelabel.recognizer.recalibration_map import RecalibrationMap
from surelabel.records.calibration_description import RECALIBRATION_SUFFIX, SHIFT_SUFFIX

PRIOR_PSEUDO_COUNT = 100.0  # weight of the previous label frequencies, in images
NEW_LABELS = ", new labels with shared parameters"  # in the description after with_names
ANY_SHIFT_SUFFIX = re.compile(  # of the last change; "moved to": folders of 0.1.0
    f"(?s), (?:adapted|moved) to (?!.*{RECALIBRATION_SUFFIX}).*"
)


@dataclass(frozen=True)
class CalibrationRecord:
    """Fitted map from scores to calibrated log-odds.

    The calibrator is applied first, then the recalibration, then the label shift. If the labels
    have a tree, the log-odds are projected to the tree after each of these steps, so that the
    record and a label shift refer to the probabilities of the predictions.

    Attributes:
        name: Key of the calibrator in ``CALIBRATORS``.
        calibrator: Fitted calibrator.
        description: Text that names the calibrator and the calibration data.
        record: Validation record of the cross-fitted probabilities on the calibration images,
            without the label shift. If the images have no labels, the record contains expected
            counts. If there were too few images, the record is None. After a recalibration, the
            record describes the images of the recalibration.
        shift: One constant per label that is added to the log-odds, to adapt the calibration to
            another image collection. If the tuple is empty, there is no shift.
        uses_labels: Whether the calibrator was computed from labels. Without a recalibration, the
            record was then computed from labels too.
        fit_labels: Labels of the calibration images, if the calibrator computes parameters of other
            labels from text vectors; otherwise empty. Aliases are separated by ``|``.
        log_losses: Cross-validated log loss in nats of the calibrators among which this calibrator
            was selected, by key. If there was no selection, the mapping is empty.
        recalibration: Scale and shift of the calibrated log-odds that a recalibration fitted on
            few annotated images. If None, there was no recalibration.
        tree: Projection of the log-odds to a tree of labels. If None, there is no tree.
    """

    name: str
    calibrator: Calibrator
    description: str
    record: ValidationRecord | None = None
    shift: tuple[float, ...] = ()
    uses_labels: bool = True
    fit_labels: tuple[str, ...] = ()
    log_losses: Mapping[str, float] = field(default_factory=dict)
    recalibration: RecalibrationMap | None = None
    tree: LabelTreeProjection | None = None

    @property
    def record_uses_labels(self) -> bool:
        """Return whether the record was computed from labels, which guarantees require."""
        return self.uses_labels or self.recalibration is not None

    @property
    def selection_text(self) -> str | None:
        """Return a sentence with the log losses of the selection, or None without a selection."""
        if not self.log_losses:
            return None
        losses = ", ".join(f"{name} {loss:.4f}" for name, loss in self.log_losses.items())
        return f"Cross-validated log loss of the calibrators: {losses}."

    def logits(self, raw: npt.ArrayLike, vectors: npt.NDArray[np.floating] | None = None) -> Array:
        """Return calibrated log-odds in [-40, 40], ``(n, c)``, for n images and c labels.

        Args:
            raw: Log-odds, or raw scores if there is no link, ``(n, c)``.
            vectors: Vectors of the images, ``(n, d)``. If None, there are no vectors.

        Raises:
            ConfigError: If the calibrator requires vectors and ``vectors`` is None.
        """
        logits = self._logits_without_shift(raw, vectors)
        if not self.shift:
            return logits
        return self._project((logits + self.shift).clip(-LOGIT_LIMIT, LOGIT_LIMIT))

    def _logits_without_shift(
        self, raw: npt.ArrayLike, vectors: npt.NDArray[np.floating] | None
    ) -> Array:
        logits = self._project(calibrator_for_images(self.calibrator, vectors).logits(raw))
        if self.recalibration is None:
            return logits
        recalibrated = self.recalibration.logits(logits)
        return self._project(recalibrated.clip(-LOGIT_LIMIT, LOGIT_LIMIT))

    def _project(self, logits: Array) -> Array:
        return self.tree.logits(logits) if self.tree else logits

    def state(self) -> dict[str, Any]:
        """Return the calibration as a JSON object, without the validation record."""
        state: dict[str, Any] = {"calibrator": self.name, "state": self.calibrator.state()}
        state["about"] = self.description
        if self.shift:
            state["shift"] = list(self.shift)
        if not self.uses_labels:
            state["labelled"] = False
        if self.fit_labels:
            state["labels"] = list(self.fit_labels)
        if self.log_losses:
            state["log_losses"] = dict(self.log_losses)
        if self.recalibration:
            state["recalibration"] = self.recalibration.state()
        if self.tree:
            state["label_tree"] = self.tree.state()
        return state

    def for_new_names(
        self,
        texts: tuple[LabelTexts, LabelTexts] | None = None,
        columns: Sequence[int | None] = (),
    ) -> "CalibrationRecord | None":
        """Return a calibration for other labels, without a projection to a tree of labels.

        Labels of this calibration keep their parameters if the calibrator is a
        ``HasLabelParameters`` and there is no label shift. Labels without own parameters use the
        shared parameters, and one warning is emitted. If the labels share no parameters, return
        None. The scale and the shift of a recalibration are kept, because all labels share them.

        Args:
            texts: Text vectors of ``fit_labels`` and of the other labels, for calibrators that use
                text vectors. If None, only the shared parameters of the calibrator are kept.
            columns: Index of each of the c other labels among the labels of this calibration, or
                None for a new label, length c. If empty, all labels are new.
        """
        has_label_shift = bool(self.shift or (self.recalibration or _NO_CHANGE).label_shifts)
        shared, keeps_all = self.calibrator.shared_calibrator(), self.calibrator.shares_parameters
        if texts and isinstance(self.calibrator, UsesLabelTexts):
            shared, keeps_all = self.calibrator.with_label_texts(*texts), True
        if shared and keeps_all and not has_label_shift:
            return replace(self, calibrator=shared, record=None, tree=None)
        calibrator, is_known = self.calibrator, [column is not None for column in columns]
        if any(is_known) and isinstance(calibrator, HasLabelParameters) and not has_label_shift:
            other = replace(
                self, calibrator=calibrator.with_labels(columns), record=None, tree=None
            )
            if all(is_known):
                return other
            description = f"{self.description.removesuffix(NEW_LABELS)}{NEW_LABELS}"
            warnings.warn(
                f"The calibration ({self.name}) has parameters per label. For new labels, the "
                f"calibration uses only the shared parameters ({calibrator_key(shared)}).",
                stacklevel=4,
            )
            return replace(other, description=description)
        name = calibrator_key(shared)
        title = f"{self.name}, adapted to a label shift" if has_label_shift else self.name
        consequence = (
            f"For new labels, the calibration uses only the shared parameters ({name})."
            if name
            else (
                "The calibration is dropped. To obtain probabilities, calibrate again with the new "
                "labels."
            )
        )
        warnings.warn(
            f"The calibration ({title}) has parameters per label. {consequence}", stacklevel=4
        )
        if shared is None or name is None:
            return None
        description = f"{self._description_without_shift}, shared parameters only"
        return CalibrationRecord(
            name,
            shared,
            description,
            uses_labels=self.uses_labels,
            fit_labels=self.fit_labels if isinstance(shared, UsesLabelTexts) else (),
            recalibration=self.recalibration and replace(self.recalibration, label_shifts=()),
        )

    def with_tree(self, tree: LabelTreeProjection | None) -> "CalibrationRecord":
        """Return the calibration with another projection to a tree of labels, or without one.

        If the projection changes, the validation record is dropped.
        """
        columns, old_columns = (t and t.parent_columns for t in (tree, self.tree))
        return self if columns == old_columns else replace(self, tree=tree, record=None)

    def adapt_to_shift(
        self, raw: npt.ArrayLike, vectors: npt.NDArray[np.floating] | None = None
    ) -> "CalibrationRecord":
        """Return the calibration, adapted to an image collection with other label frequencies.

        The reference frequency of a label is the mean calibrated probability on the calibration
        images, not the fraction of positives. With the fraction of positives, the calibration error
        of a label would be mistaken for a label shift. An earlier label shift is replaced, unless a
        recalibration followed it. A label without a known target in the calibration images has a
        shift of 0.

        Args:
            raw: Log-odds, or raw scores if there is no link, ``(n, c)``, of n unlabelled images and
                c labels.
            vectors: Vectors of the images, ``(n, d)``. If None, there are no vectors.

        Raises:
            NotFitted: If the calibration has no validation record.
            ConfigError: If the calibrator requires vectors and ``vectors`` is None.
            InputError: If the estimate of the label frequencies does not converge.
        """
        if self.record is None:
            raise NotFitted(
                "adapt_to_shift requires a validation record with the label frequencies of the "
                "calibration images; this calibration has no validation record. Calibrate on 20 or "
                "more images first."
            )
        known = self.record.predicted_positives[:, 0]
        prior = (self.record.expected_true_positives[:, 0] + 0.5) / (known + 1)
        estimate = estimate_label_shift(
            self._logits_without_shift(raw, vectors),
            prior,
            pseudo_count=PRIOR_PSEUDO_COUNT,
        )
        if not estimate.converged:
            raise InputError(
                "The estimated label frequencies of these images must converge; they did not "
                f"converge in {estimate.steps} steps. Give more images."
            )
        shift = np.where(known > 0, estimate.logit_shift, 0.0)
        n_images = len(np.asarray(raw))
        description = f"{self._description_without_shift}{SHIFT_SUFFIX}{n_images} other images"
        return replace(
            self,
            description=description,
            shift=tuple(shift.tolist()),
            tree=self.tree and self.tree.without_metrics(),
        )

    def recalibrated(
        self, scale: float, shift: float, record: ValidationRecord, *, noun: str = "image"
    ) -> "CalibrationRecord":
        """Return the calibration, followed by a scale and a shift of the log-odds of all labels.

        A label shift becomes a part of the recalibration. The earlier validation record is
        replaced, because the images of the recalibration contradict it.

        Args:
            scale: Factor of the log-odds, above 0.
            shift: Constant that is added to the scaled log-odds.
            record: Validation record of the cross-fitted log-odds of the annotated images.
            noun: Noun of the images in the description of the calibration.
        """
        return replace(
            self,
            description=f"{self.description}{RECALIBRATION_SUFFIX}"
            f"{format_count(record.images, f'random {noun}')}",
            record=record,
            shift=(),
            tree=self.tree and self.tree.without_metrics(),
            recalibration=(self.recalibration or _NO_CHANGE).followed_by(scale, shift, self.shift),
        )

    @property
    def _description_without_shift(self) -> str:
        return ANY_SHIFT_SUFFIX.sub("", self.description)


_NO_CHANGE = RecalibrationMap()


def restore_calibration_record(
    state: dict[str, Any] | None, record: ValidationRecord | None = None
) -> CalibrationRecord | None:
    """Return the calibration of a ``state`` from JSON, or None if ``state`` is None.

    Raises:
        DataError: If ``state`` does not describe a calibrator of this version of surelabel, or a
            value is invalid.
    """
    if state is None:
        return None
    name, description = state.get("calibrator"), state.get("about")
    shift, uses_labels = state.get("shift", []), state.get("labelled", True)
    fit_labels, log_losses = state.get("labels", []), state.get("log_losses", {})
    if name not in list(CALIBRATORS) or "state" not in state or not isinstance(description, str):
        raise DataError(
            "calibration.json must contain a calibrator with state and description; got the "
            f"calibrator {name!r} and the description {description!r}. The known calibrators are "
            f"{', '.join(CALIBRATORS)}. Calibrate again, or install the version of surelabel that "
            "saved the file."
        )
    if not isinstance(shift, list) or not all(
        _is_calibration_record_shift(value) for value in shift
    ):
        raise DataError(
            f"shift in calibration.json must be a list of numbers in [-1000, 1000]; got {shift}. "
            "Calibrate again."
        )
    if not isinstance(uses_labels, bool):
        raise DataError(
            f"labelled in calibration.json must be true or false; got {uses_labels!r}. "
            "Calibrate again."
        )
    if not isinstance(fit_labels, list) or not all(isinstance(label, str) for label in fit_labels):
        raise DataError(
            f"labels in calibration.json must be a list of strings; got {fit_labels!r}. Calibrate "
            "again."
        )
    if not are_selection_log_losses(log_losses):
        raise DataError(
            "log_losses in calibration.json must contain a finite number for each calibrator; got "
            f"{log_losses!r}. Calibrate again."
        )
    calibrator = CALIBRATORS[name]().restore(state["state"])
    recalibration, tree = state.get("recalibration"), state.get("label_tree")
    return CalibrationRecord(
        name,
        calibrator,
        description,
        record,
        tuple(shift),
        uses_labels,
        tuple(fit_labels),
        log_losses,
        None if recalibration is None else RecalibrationMap.restore(recalibration),
        None if tree is None else LabelTreeProjection.restore(tree),
    )


def calibrator_key(calibrator: Calibrator | None) -> str | None:
    """Return the key of a calibrator in ``CALIBRATORS``, or None if there is no such key."""
    return next((name for name, entry in CALIBRATORS.items() if entry is type(calibrator)), None)


def shipped_calibration_record(run: Run, encoder: Encoder) -> CalibrationRecord | None:
    """Return the calibration of zero-shot scores that is shipped with an embedded encoder.

    If the method is not zero-shot with default settings, or if the package contains no calibration
    for the encoder and the prompt templates, return None.
    """
    if run.method.name != "zero_shot" or run.method.settings.keys() - {"templates"}:
        return None
    return restore_calibration_record(embedded_calibration(encoder, **run.method.settings))


def _is_calibration_record_shift(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1000  # False for NaN
