"""Define the recognizer, which is zero-shot or fitted, and can be calibrated and saved."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array, Flags
from surelabel.config import Choice, Run
from surelabel.data import parse_label_names
from surelabel.encoders import Encoder, load_encoder
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.encoders.image_only.precomputed_scores import PrecomputedScores
from surelabel.errors import InputError, NotFitted
from surelabel.evaluation.recalibration import Recalibration, evaluate_recalibration
from surelabel.features import (
    FeatureCache,
    SentenceFeatures,
    add_text_feature_cache,
    default_feature_cache_folder,
    without_text_feature_cache,
)
from surelabel.files import read_replaceable_folder
from surelabel.label_aliases import join_label_aliases
from surelabel.links import Link
from surelabel.mapped_arrays import to_mapped_array
from surelabel.methods import (
    TrainsEncoder,
    UsesFitLabels,
    copy_method_fit,
    method_is_student,
)
from surelabel.migration import RECOGNIZER
from surelabel.progress import Progress
from surelabel.recognizer.calibrating import (
    check_recognizer_calibrator,
    fit_recognizer_calibration,
    fit_recognizer_calibration_without_labels,
)
from surelabel.recognizer.calibration_record import (
    restore_calibration_record,
    shipped_calibration_record,
)
from surelabel.recognizer.compatibility import (
    check_encoder_is_not_quantized,
    check_encoder_method_compatibility,
    check_fit_compatibility,
    check_text_fit_compatibility,
)
from surelabel.recognizer.dtype_check import (
    DtypeCheck,
    compare_dtypes,
    resolve_auto_dtype,
    rows_of_dtype_check,
)
from surelabel.recognizer.fingerprints import checkpoint_of_fit, recognizer_fingerprint
from surelabel.recognizer.fitting import (
    FittingData,
    check_fit_devices,
    fit_recognizer_method,
    fitting_out_of_fold_scores,
    make_link_for_fitting,
    make_method_for_fitting,
    model_link_of_method,
    parse_names_of_run,
    resolve_run_for_fitting,
)
from surelabel.recognizer.fitting_data import encode_fitting_data, encode_text_fitting_data
from surelabel.recognizer.inputs import (
    LabelledInput,
    RecognizerInput,
    ResolvedInput,
    align_recognizer_input_labels,
    check_parents_are_annotated,
    resolve_recognizer_files,
    resolve_recognizer_input,
    resolve_recognizer_targets,
)
from surelabel.recognizer.label_tree_projection import LabelTreeProjection, label_tree_of_encoder
from surelabel.recognizer.loading import (
    check_saved_recognizer_fingerprint,
    load_saved_recognizer_weights,
    read_saved_recognizer,
)
from surelabel.recognizer.localization import compute_localization_maps
from surelabel.recognizer.method_selection_record import MethodSelection
from surelabel.recognizer.pair_fitting import (
    PairSource,
    check_pair_fit_compatibility,
    encode_pair_data,
    fit_recognizer_method_on_pairs,
)
from surelabel.recognizer.prediction_blocks import (
    ImageScores,
    check_prediction_count,
    encode_prediction_blocks,
    half_precision_image_vectors,
    images_per_prediction_block,
    score_images_in_blocks,
)
from surelabel.recognizer.prediction_joining import join_prediction_blocks
from surelabel.recognizer.random_rows import (
    random_sample_rows,
    random_sample_targets,
    take_random_rows,
)
from surelabel.recognizer.recalibrating import (
    recalibrated_calibration,
    select_recalibration_data,
)
from surelabel.recognizer.saving import saved_recognizer_contents, write_saved_recognizer
from surelabel.recognizer.scikit_learn import ScikitLearnInterface
from surelabel.recognizer.score_calibration import (
    CrossFittedScoreRows,
    check_labelled_score_rows,
    cross_fit_score_rows,
    encoder_with_log_odds_of_cosines,
    needs_log_odds_of_cosines,
    score_row_keys,
)
from surelabel.recognizer.score_conversion import ScoreConversion, predict_encoded_blocks
from surelabel.recognizer.uncertainty import (
    available_uncertainty_kinds,
    check_uncertainty_is_available,
)
from surelabel.recognizer.unlabelled_fitting import fit_unlabelled
from surelabel.recognizer.used_rows import Keys, UsedRows, labelled_row_keys
from surelabel.recognizer.user_warnings import (
    warn_skipped_images,
    warn_untrained_labels,
)
from surelabel.recognizer.vector_normalization import (
    encoder_of_method,
    encoder_with_fitted_normalization,
    row_noun,
    vector_normalization_description,
)
from surelabel.recognizer.vocabulary_change import (
    calibration_after_vocabulary_change,
    check_vocabulary_can_change,
)
from surelabel.records import (
    Images,
    LabelledImages,
    LabelledTexts,
    LabelTree,
    Predictions,
)
from surelabel.records.calibration_description import LOSS_ALONE, MODEL
from surelabel.summaries import Summary


class Recognizer(ScikitLearnInterface):
    """Multi-label image recognizer: an encoder, a method and a calibration for a set of labels.

    Args:
        run: Run with the encoder, the method, the loss, the calibrator and their settings.
        names: Labels, length c; ``sofa|couch`` is one label with two aliases.
        device: PyTorch device of the encoder.
        encoder: Loaded encoder. If None, the encoder of the run is loaded.
        cache: Cache of features. If None, features are cached in the default cache folder.
        label_tree: Tree of the labels. If None, the tree of an exported file, if any, or no tree.
            See the attribute.

    Attributes:
        names: Labels in the order of the columns of scores and targets, length c.
        link: Function that converts scores to log-odds, for a method fitted with a loss, or for
            zero-shot scores of an encoder with a bias. If None, scores are not converted.
        calibration: Fitted calibration. If None, the recognizer is not calibrated.
        is_fitted: Whether the recognizer can predict. If the method has to be fitted first, the
            value is False.
        selection: Results of the model selection that selected the method; see ``select_method``.
            If the method was given, the value is None.
        used_rows: Hashes of the annotated images that the recognizer was fitted or calibrated on.
            If an earlier version of surelabel saved the recognizer, the value is None.
        dtype_checks: Changes of the probabilities in bf16; see ``check_dtype``.

    Example:
        >>> import surelabel as sl
        >>> test = sl.collection("scenes-80", split="test").take(range(3))
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar"])
        >>> recognizer.predict(test).probabilities.shape
        (3, 2)
    """

    def __init__(
        self,
        run: Run,
        names: Sequence[str],
        *,
        device: str = "cpu",
        encoder: Encoder | None = None,
        cache: FeatureCache | None = None,
        label_tree: LabelTree | None = None,
    ):
        arguments = {
            "run": run,
            "names": names,
            "device": device,
            "encoder": encoder,
            "cache": cache,
            "label_tree": label_tree,
        }
        self.run = run = resolve_run_for_fitting(run)
        self.names, self.aliases = parse_names_of_run(run, names)
        self.names_with_aliases = [join_label_aliases(self.aliases[name]) for name in self.names]
        self.cache = cache or FeatureCache(default_feature_cache_folder())
        loaded = encoder or load_encoder(run.encoder.name, device=device, **run.encoder.settings)
        self.encoder = add_text_feature_cache(loaded, self.cache)
        self._set_parameters(arguments, shared={"encoder": self.encoder, "cache": self.cache})
        self.method = make_method_for_fitting(self.run, self.encoder, self.names_with_aliases)
        self.encoder = encoder_of_method(self.encoder, self.method.learns_from)
        self.link: Link | None = model_link_of_method(self.method)
        self.calibration = shipped_calibration_record(run, self.encoder)
        self.is_fitted = self.method.learns_from == "nothing"
        self.selection: MethodSelection | None = None
        self._checkpoint: Path | None = None  # checkpoint of a fit that is not saved
        self._cross_fitted: CrossFittedScoreRows | None = None  # only for precomputed scores
        self.used_rows: UsedRows | None = UsedRows()
        self.dtype_checks: tuple[DtypeCheck, ...] = ()
        self.label_tree = label_tree or label_tree_of_encoder(self.encoder, self.names)
        check_encoder_method_compatibility(run, self.method, self.encoder)
        if self.names and (self.method.open_vocabulary or self.method.learns_from == "images"):
            all_aliases = [alias for aliases in self.aliases.values() for alias in aliases]
            warn_untrained_labels(self.encoder, all_aliases)

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    def _summary(self) -> Summary:
        properties = {
            "encoder": self.encoder.name,
            "method": self.run.method.name,
            "labels": ", ".join(self.names),
            "is_fitted": self.is_fitted,
            "calibrated_on": self.calibrated_on,
        }
        vectors = vector_normalization_description(self.encoder)
        return Summary("Recognizer", properties | ({"vectors": vectors} if vectors else {}))

    if not TYPE_CHECKING:  # so that type checkers report unknown attributes

        def __getattr__(self, name: str) -> Any:
            current = RECOGNIZER.get(name)
            hint = f"; it is now {current!r}" if current else ""
            raise AttributeError(f"'Recognizer' object has no attribute {name!r}{hint}")

    @classmethod
    def zero_shot(
        cls, model: str, names: Sequence[str], *, templates: str = "one", device: str = "cpu"
    ) -> "Recognizer":
        """Return a zero-shot recognizer, which needs no fitting.

        If the encoder is ``tiny-vit`` or ``tiny-rn`` and ``templates`` is ``one`` or ``ensemble``,
        the recognizer is already calibrated. If the encoder has a scale and a bias of the sigmoid
        loss, such as SigLIP, the probabilities are computed with this scale and bias
        (``calibrated_on`` is ``model``).

        Args:
            model: Name of an encoder, such as ``tiny-vit``, ``tiny-rn``, ``ViT-B-16/openai`` or
                ``local-dir:FOLDER``.
            names: Labels, length c.
            templates: Prompt templates: ``one``, ``ensemble``, or a sentence in which ``{}`` is
                replaced by the label.
            device: PyTorch device of the encoder.

        Raises:
            UnknownName: If the encoder is unknown.
            InputError: If the labels are invalid; see :func:`surelabel.data.parse_label_names`.
            ConfigError: If the encoder has no text encoder.
        """
        settings = {} if templates == "one" else {"templates": templates}
        run = Run(encoder=Choice(model), method=Choice("zero_shot", settings))
        return cls(run, names, device=device)

    @classmethod
    def from_scores(cls, kind: str, names: Sequence[str], *, views: int = 1) -> "Recognizer":
        """Return a recognizer of scores that another program computed, without an encoder.

        Logits and probabilities are used without calibration until ``calibrate`` is called
        (``calibrated_on`` is ``model``). Cosines require ``calibrate``, which first fits a slope
        and a shift that all labels share.

        Args:
            kind: Kind of the scores: ``logits``, ``probabilities`` or ``cosines``.
            names: Labels of the columns of the scores, length c.
            views: Number of views of each image, >= 1. The log-odds or cosines of the views are
                averaged.

        Raises:
            ConfigError: If the kind is unknown, or ``views`` is below 1.
            InputError: If a label occurs twice.

        Example:
            >>> import surelabel as sl
            >>> scores = sl.LabelledScores([[0.5, 0.9]], "probabilities", columns=["dog", "cat"])
            >>> recognizer = sl.Recognizer.from_scores("probabilities", ["dog", "cat"])
            >>> recognizer.predict(scores).probabilities.round(2).tolist()
            [[0.5, 0.9]]
        """
        settings = {"columns": list(names), "views": views}
        method = Choice("zero_shot", {"domain": "cosine"} if kind == "cosines" else {})
        return cls(Run(encoder=Choice(f"scores:{kind}", settings), method=method), names)

    def fit(
        self,
        source: RecognizerInput | LabelledTexts | PairSource,
        targets: npt.ArrayLike | None = None,
        *,
        folds: int = 0,
        devices: int | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "Recognizer":
        """Fit the method on images from its initial weights, and drop an earlier calibration.

        A method that trains the encoder starts from the current weights of the encoder. A method
        that is fitted without labels returns uncalibrated scores until ``calibrate`` is called.

        Args:
            source: Images or precomputed features with labels. A method that is fitted on
                unlabelled images also accepts paths or a folder, and ignores labels. A method that
                is fitted on texts accepts only ``LabelledTexts``, to which sentences of prompt
                templates are added. A method that is fitted on images with captions accepts only
                ``Pairs``, or ``PairFeatures`` if the vectors are precomputed.
            targets: Targets of n images and c labels, 1 = positive, 0 = negative, NaN = unknown,
                ``(n, c)``, if ``source`` contains only paths or vectors ``(n, d)``.
            folds: Number of cross-validation folds, at least 2, to calibrate on the images of
                ``source``. If 0, the recognizer is not calibrated. For each fold, another copy of
                the method is fitted on the other folds, and the calibrator is fitted on the scores
                of these copies. The final method is fitted on all images. If ``source`` states how
                its rows were chosen, the calibrator is fitted on the random rows only.
            devices: Number of processes that train together, >= 1, for methods that are trained by
                gradient descent. With the device ``cuda``, there is one process for each GPU;
                otherwise, all processes use the CPU. Each batch is divided among the processes. The
                result equals that of one process up to rounding errors. If None, only this process
                trains.
            checkpoint: File that stores the fit after each epoch and after every hundredth
                optimizer step. A fit of the same run and data resumes from the checkpoint. With
                ``folds``, there is one more file for each fold. Only ``save`` deletes these files,
                so that the fit is not lost if the recognizer cannot be saved.
            progress: Function called with the number of finished items and the total number of
                items. The items are first encoded images or sentences, then training epochs, then
                folds. For self-training, the items are training images of an epoch, not epochs.

        Raises:
            ConfigError: If the method has no parameters to fit, does not support ``folds``, or is
                not compatible with the encoder, the loss, ``source`` or ``devices``. The error is
                raised before any image is read.
            MissingPart: If Lightning Fabric is not installed, and ``devices`` is given.
            InputError: If ``source`` has no labels, no known target of a label of the recognizer,
                or too few images for ``folds``.
            DataError: If no image can be read, or if a positive label has a negative ancestor in an
                image. Also if ``checkpoint`` is damaged or belongs to another run.
        """
        check_encoder_is_not_quantized(self.encoder, "fitted")
        check_fit_devices(self.run, self.method, devices, self.encoder.device)
        if isinstance(source, PairSource) or self.method.learns_from == "pairs":
            return self._fit_pairs(source, targets, folds, devices, checkpoint, progress)
        encoder, used = self.encoder, UsedRows()
        if isinstance(source, LabelledTexts) or self.method.learns_from == "texts":
            data = self._encode_texts(source, targets, folds, progress)
        else:
            resolved = resolve_recognizer_targets(source, targets, self.names)
            check_fit_compatibility(
                self.run, self.method, self.encoder, self.names_with_aliases, resolved, folds
            )
            if self.method.learns_from == "images":
                return self._fit_unlabelled(resolved, checkpoint, progress)
            assert not isinstance(resolved, Images)  # checked above: these have no labels
            labelled = self.align_labels(resolved)
            check_parents_are_annotated(labelled, self.label_tree)
            encoder = encoder_with_fitted_normalization(encoder, resolved)
            data = encode_fitting_data(
                resolved,
                labelled,
                self.method,
                encoder,
                self.cache,
                progress=progress,
            )
            used = UsedRows(labelled_row_keys(encoder, resolved))
        fold = random_rows = None
        if folds:
            assert not isinstance(resolved, Images)  # these have no labels
            fold = data.assign_folds(folds, self.run.seed)
            random_rows = random_sample_rows(resolved, "The calibration")
        self._reset_fit()
        self.encoder = encoder
        saved_state = checkpoint_of_fit(checkpoint, self.run, self.names_with_aliases, data)
        arguments = (self.run, self.encoder, self.names_with_aliases, data)
        self.method = fit_recognizer_method(
            *arguments, devices=devices, checkpoint=saved_state, progress=progress
        )
        self._checkpoint = saved_state.path.absolute() if saved_state else None
        if isinstance(self.method, TrainsEncoder):
            self.encoder = add_text_feature_cache(self.method.finetuned_encoder(), self.cache)
        self.link, self.is_fitted = make_link_for_fitting(self.run), True
        self.used_rows = used
        if fold is not None:
            scores = fitting_out_of_fold_scores(
                *arguments, fold=fold, devices=devices, checkpoint=saved_state, progress=progress
            )
            targets = to_mapped_array(data.targets.numpy(), dtype=np.float64)
            assert not isinstance(data.features, SentenceFeatures)  # folds are refused for texts
            vectors = half_precision_image_vectors(data.features)
            known = data.known.numpy()
            assert data.rows is not None  # of images
            assert not isinstance(resolved, Images)  # checked above, as are the random rows
            assert random_rows is not None
            is_used = np.isin(data.rows, random_rows)
            labels = self.names, self.aliases, self.label_tree
            targets, known = random_sample_targets(resolved, labels, data.rows, targets, known)
            self._fit_calibration(
                resolved.take(data.rows[is_used]),
                scores[is_used],
                vectors[is_used],
                targets[is_used],
                known[is_used],
                folds=folds,
            )
        return self

    def _encode_texts(
        self,
        source: RecognizerInput | LabelledTexts | PairSource,
        targets: npt.ArrayLike | None,
        folds: int,
        progress: Progress | None,
    ) -> FittingData:
        """Return the training data of a fit on texts."""
        check_text_fit_compatibility(
            self.run, self.method, self.encoder, self.names_with_aliases, source, folds
        )
        assert isinstance(source, LabelledTexts)  # checked above
        if targets is not None:
            raise InputError(
                "Targets must be given once; got LabelledTexts, which have targets, and a separate "
                "array. Leave out the array."
            )
        return encode_text_fitting_data(
            source, self.names, self.aliases, self.encoder, progress=progress
        )

    def _fit_pairs(
        self,
        source: object,
        targets: npt.ArrayLike | None,
        folds: int,
        devices: int | None,
        checkpoint: str | Path | None,
        progress: Progress | None,
    ) -> "Recognizer":
        """Fit the method on images with captions."""
        check_pair_fit_compatibility(self.run, self.method, source, folds)
        assert isinstance(source, PairSource)  # checked above
        if targets is not None:
            raise InputError(
                "Images with captions must be given without targets; got targets. Leave out the "
                "targets."
            )
        encoder = encoder_with_fitted_normalization(self.encoder, source)
        data = encode_pair_data(source, self.method, encoder, self.cache, progress=progress)
        self._reset_fit()
        self.encoder = encoder
        saved_state = checkpoint_of_fit(checkpoint, self.run, self.names_with_aliases, data)
        self.method = fit_recognizer_method_on_pairs(
            self.run,
            self.encoder,
            self.names_with_aliases,
            data,
            devices=devices,
            checkpoint=saved_state,
            progress=progress,
        )
        self._checkpoint = saved_state.path.absolute() if saved_state else None
        self.link, self.is_fitted = make_link_for_fitting(self.run), True
        self.used_rows = UsedRows(labelled_row_keys(self.encoder, source))
        return self

    def _fit_unlabelled(
        self,
        source: Images | LabelledInput,
        checkpoint: str | Path | None,
        progress: Progress | None,
    ) -> "Recognizer":
        self._reset_fit()
        self.method = fit_unlabelled(
            source,
            self.run,
            self.encoder,
            self.names_with_aliases,
            cache=self.cache,
            checkpoint=checkpoint,
            progress=progress,
        )
        if checkpoint and method_is_student(type(self.method)):
            self._checkpoint = Path(checkpoint).absolute()
        self.is_fitted = True
        return self

    def _reset_fit(self) -> None:
        """Restore the initial method, and remove the link and the calibration."""
        self.method = make_method_for_fitting(self.run, self.encoder, self.names_with_aliases)
        self.link = self.calibration = self.selection = self._checkpoint = None
        self._cross_fitted, self.used_rows, self.dtype_checks = None, UsedRows(), ()
        self.is_fitted = False

    def calibrate(
        self,
        held_out: RecognizerInput,
        targets: npt.ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> "Recognizer":
        """Fit the calibrator of the run on held-out annotated images.

        For images without labels, the calibrator is fitted on pseudo-labels, which the encoder
        computes. The attribute ``calibrated_on`` then mentions the pseudo-labels. If the labels
        have a tree, the last step of the calibration changes the log-odds by the smallest sum of
        squares after which no label is more probable than its parent.

        Args:
            held_out: Annotated images that were not used by ``fit``, or images without labels. If
                the dataset states how its rows were chosen, only the random rows are used.
            targets: Targets, ``(n, c)``, as for ``fit``.
            progress: Function called with the number of encoded images and the total number of
                images.

        Raises:
            NotFitted: If the method has to be fitted first.
            ConfigError: If the calibrator requires log-odds, and the scores are not log-odds.
            InputError: If no known target of the labels of the recognizer is positive, or if none
                is negative. Also if fewer than 20 rows of precomputed scores have a known target.
            DataError: If no image can be read, or if a positive label has a negative ancestor in an
                image.
        """
        self.check_fitted()
        uses_loss = self.method.learns_from in ("labels", "texts", "pairs")
        score_entry = self.run.loss.name if uses_loss else self.run.method.name
        fits_line = needs_log_odds_of_cosines(self.encoder, self.method)
        check_recognizer_calibrator(self.run, None if self.link or fits_line else score_entry)
        resolved = resolve_recognizer_targets(held_out, targets, self.names)
        if isinstance(resolved, Images):
            return self._calibrate_without_labels(resolved, progress)
        resolved = take_random_rows(resolved, "The calibration")
        labelled = self.align_labels(resolved)
        check_parents_are_annotated(labelled, self.label_tree)
        check_labelled_score_rows(self.encoder, self.names, labelled.known)
        images = self._score_images(resolved, progress)
        warn_skipped_images(images.skipped, len(resolved))
        targets, known = (
            to_mapped_array(array[images.rows]) for array in (labelled.targets, labelled.known)
        )
        if fits_line:
            encoder = encoder_with_log_odds_of_cosines(self.encoder, images.scores, targets, known)
            self.encoder = encoder
            self.method = make_method_for_fitting(self.run, encoder, self.names_with_aliases)
            self.link = model_link_of_method(self.method)
            images = self._score_images(resolved, progress)
        self._fit_calibration(resolved, images.scores, images.vectors, targets, known)
        return self

    def _calibrate_without_labels(self, images: Images, progress: Progress | None) -> "Recognizer":
        """Fit the calibrator on pseudo-labels of unlabelled images."""
        scored = self._score_images(images, progress)
        warn_skipped_images(scored.skipped, len(images), "images")
        self.calibration = fit_recognizer_calibration_without_labels(
            self.run,
            self.encoder,
            self.names_with_aliases,
            self.logits_of(scored.scores),
            [str(images.paths[row]) for row in scored.rows],
            image_vectors=scored.vectors,
            cache=self.cache,
            progress=progress,
            tree=self._tree_projection,
        )
        self._store_used_rows(images)
        return self

    def adapt_to_shift(
        self, images: RecognizerInput, *, progress: Progress | None = None
    ) -> "Recognizer":
        """Adapt the calibration to an unlabelled image collection with other label frequencies.

        The adaptation assumes label shift: label frequencies change, but for a given target of a
        label, the distribution of images is unchanged.

        Args:
            images: Images of the new collection; labels are ignored.
            progress: Function called with the number of encoded images and the total number of
                images.

        Raises:
            NotFitted: If the recognizer is not calibrated, or if its calibration has no validation
                record, which requires at least 20 calibration images.
            InputError: If the estimate of the label frequencies does not converge.
            DataError: If no image can be read.
        """
        if self.calibration is None:
            raise NotFitted(
                "adapt_to_shift requires a calibrated recognizer; got a recognizer without "
                "calibration. Call calibrate first."
            )
        resolved = resolve_recognizer_input(images)
        scored = self._score_images(resolved, progress)
        warn_skipped_images(scored.skipped, len(resolved), "images")
        raw = self.logits_of(scored.scores)
        self.calibration = self.calibration.adapt_to_shift(raw, scored.vectors)
        self.dtype_checks = ()
        self._cross_fitted = None
        return self

    def recalibrate(
        self,
        source: RecognizerInput,
        targets: npt.ArrayLike | None = None,
        *,
        progress: Progress | None = None,
    ) -> Recalibration:
        """Adjust the calibration with a scale and a shift, if this improves the log loss.

        A recalibration needs 20 to 500 annotated images, sampled at random from the images on which
        the probabilities are used. All labels share the scale and the shift. The calibration is
        changed only if the 95 % interval of the change of the cross-fitted log loss is below 0, and
        the current probabilities are rejected by a test of calibration. Then thresholds and
        guarantees are computed from these images, instead of the earlier calibration images.

        Args:
            source: Annotated random images, vectors or scores. If the dataset states how its rows
                were chosen, only the random rows are used. Images of the fit are left out.
            targets: Targets, ``(n, c)``, as for ``fit``.
            progress: Function called with the number of encoded images and the total number of
                images.

        Returns:
            Scale, shift, and metrics before and after. The attribute ``is_improvement`` states
            whether the calibration was changed.

        Raises:
            NotFitted: If the method has to be fitted first, or if the recognizer is not calibrated.
            InputError: If fewer than 20 images are annotated, or if the images have no labels.
            DataError: If no image can be read.
        """
        self.check_fitted()
        if self.calibrated_on is None:
            raise NotFitted(
                "recalibrate requires a calibrated recognizer; got a recognizer without "
                "calibration. Call calibrate first."
            )
        resolved = resolve_recognizer_targets(source, targets, self.names)
        if isinstance(resolved, Images):
            raise InputError(
                "recalibrate requires annotated images; got images without labels. Give targets, "
                "or call adapt_to_shift."
            )
        resolved = take_random_rows(resolved, "The recalibration")
        predictions = self.predict(resolved, progress=progress)
        warn_skipped_images(predictions.skipped, len(resolved))
        data = select_recalibration_data(
            self.encoder, self.used_rows, resolved, self.align_labels(resolved), predictions
        )
        result = evaluate_recalibration(data.logits, data.targets, data.known, seed=self.run.seed)
        if result.is_improvement:
            self.apply_recalibration(
                result.scale,
                result.shift,
                result.cross_fitted_logits,
                data.targets,
                data.known,
                keys=data.keys,
            )
        return result

    def apply_recalibration(
        self,
        scale: float,
        shift: float,
        cross_fitted_logits: Array,
        targets: Array,
        known: Flags,
        *,
        keys: Keys,
    ) -> None:
        """Multiply the calibrated log-odds by a scale, and add a shift; see ``recalibrate``.

        Args:
            scale: Factor of the log-odds, above 0.
            shift: Constant that is added to the scaled log-odds of all labels.
            cross_fitted_logits: Cross-fitted log-odds of the n annotated images, ``(n, c)``.
            targets: Targets in [0, 1], ``(n, c)``.
            known: True where the target is known, ``(n, c)``.
            keys: Hash of the content of each annotated image, ``(n,)``.

        Raises:
            NotFitted: If the recognizer is not calibrated.
        """
        if self.calibrated_on is None:
            raise NotFitted(
                "apply_recalibration requires a calibrated recognizer; got a recognizer without "
                "calibration. Call calibrate first."
            )
        self.dtype_checks = ()
        self.calibration = recalibrated_calibration(
            self.calibration,
            self.calibrated_on,
            self.encoder,
            scale,
            shift,
            cross_fitted_logits,
            targets,
            known,
            self._tree_projection,
        )
        if isinstance(self.encoder, PrecomputedScores):
            rows = CrossFittedScoreRows(keys, cross_fitted_logits.astype(np.float32))
            earlier = self._cross_fitted
            self._cross_fitted = earlier.recalibrated(scale, shift, rows) if earlier else rows
        if self.used_rows is None and self.method.learns_from == "nothing":
            self.used_rows = UsedRows()
        if self.used_rows is not None:
            self.used_rows = self.used_rows.with_recalibration(keys)

    def _score_images(self, source: ResolvedInput, progress: Progress | None) -> ImageScores:
        return score_images_in_blocks(
            source, self.method, self.encoder, self.cache, progress=progress
        )

    def _fit_calibration(
        self,
        source: ResolvedInput | LabelledTexts | PairSource,
        scores: npt.NDArray[np.float32],
        vectors: npt.NDArray[np.float16],
        targets: Array,
        known: Flags,
        *,
        folds: int = 0,
    ) -> None:
        """Fit the calibrator on scores ``(n, c)`` and vectors ``(n, d)`` of images, and on targets.

        If the scores are out-of-fold scores, ``folds`` is the number of folds; otherwise, 0.
        """
        raw = to_mapped_array(self.logits_of(scores))
        self.calibration = fit_recognizer_calibration(
            self.run,
            raw,
            targets,
            known,
            vectors=vectors,
            names_with_aliases=self.names_with_aliases,
            folds=folds,
            noun=row_noun(self.encoder),
            tree=self._tree_projection,
        )
        self.store_cross_fitted_scores(source, raw, vectors, targets, known)

    def store_cross_fitted_scores(
        self,
        source: object,
        raw: Array,
        vectors: npt.NDArray[np.float16],
        targets: Array,
        known: Flags,
    ) -> None:
        """Store the cross-fitted log-odds of calibration rows, if they are precomputed scores.

        Args:
            source: Calibration data of n rows.
            raw: Log-odds before calibration, or raw scores, ``(n, c)``.
            vectors: Vectors of the rows, ``(n, d)``.
            targets: Targets in [0, 1], ``(n, c)``.
            known: True where the target is known, ``(n, c)``.
        """
        assert self.calibration is not None  # fitted on the same rows
        self._cross_fitted = cross_fit_score_rows(
            self.run,
            self.encoder,
            source,
            raw,
            targets,
            known,
            vectors,
            self.calibration.tree,
        )
        self._store_used_rows(source)

    def _store_used_rows(self, source: object) -> None:
        """Store the hashes of calibration images, unless the hashes of the fit are unknown."""
        self.dtype_checks = ()
        if self.used_rows is None and self.method.learns_from == "nothing":
            self.used_rows = UsedRows()
        if self.used_rows is not None:
            keys = labelled_row_keys(self.encoder, source)
            self.used_rows = self.used_rows.with_calibration(keys)

    def cross_fitted_predictions(
        self, source: RecognizerInput, predictions: Predictions
    ) -> Predictions:
        """Return predictions in which calibration rows have cross-fitted probabilities.

        A calibration row is a row of precomputed scores with the name and the scores of a row that
        the recognizer was calibrated on. Its probabilities come from a calibrator that was fitted
        on other rows. The description of the calibration states the number of calibration rows. For
        images and vectors, the predictions are returned unchanged.

        Args:
            source: Data of the predictions.
            predictions: Result of ``predict`` for ``source``.
        """
        if self._cross_fitted is None:
            return predictions
        keys = score_row_keys(self.encoder, resolve_recognizer_input(source))
        return predictions if keys is None else self._cross_fitted.predictions(predictions, keys)

    def with_names(self, names: Sequence[str]) -> "Recognizer":
        """Return a recognizer for other labels, without training.

        Parameters that all labels share are kept. The calibrators ``hierarchical`` and ``vector``
        keep the parameters of earlier labels; new labels use the shared parameters, with a warning.
        The calibrator ``dac`` computes the parameters of each label from its text vector. Other
        parameters per label, and those of a label shift, are dropped with a warning. The validation
        record of the calibration is dropped, unless the labels are the same in the same order.

        If scores of a label depend on the other labels, as with ``dense_regions``, the whole
        calibration is dropped with a warning. Otherwise, the scores of earlier labels do not
        change.

        Args:
            names: Labels, length c; ``sofa|couch`` is one label with two aliases.

        Raises:
            ConfigError: If the method supports only the labels that it was fitted on.
            InputError: If the labels are invalid; see :func:`surelabel.data.parse_label_names`.
        """
        check_vocabulary_can_change(self.run.method.name, self.method)
        tree = self.label_tree and self.label_tree.restricted_to(parse_label_names(names)[0])
        other = Recognizer(self.run, names, encoder=self.encoder, cache=self.cache, label_tree=tree)
        copy_method_fit(self.method, other.method, self.encoder)
        other.link, other.is_fitted = self.link, self.is_fitted
        other.used_rows = self.used_rows
        other.calibration = calibration_after_vocabulary_change(
            self.calibration,
            self.run.method.name,
            self.method,
            self.names_with_aliases,
            other.names_with_aliases,
            self.encoder,
        )
        other.label_tree = tree  # also for the new calibration
        return other

    def with_engine(self, engine: str = "torch", dtype: str = "fp32") -> "Recognizer":
        """Return the recognizer with another engine, which computes the features of images.

        The weights, the fingerprint and the calibration are the same. Features of each engine and
        number format are cached separately. Saved files do not contain the engine.

        Args:
            engine: ``torch``, ``onnx`` (onnxruntime) or ``openvino``; a key of ``ENGINES``.
            dtype: Number format of the computation: ``fp32``, or ``bf16`` with ``torch`` or
                ``openvino``. If the processor has no instructions for bf16, a warning states that
                the computation uses fp32. ``auto`` is ``bf16`` if ``check_dtype`` measured small
                changes of the probabilities; otherwise ``fp32``, and a warning states the reason.
                ``int8`` with ``openvino`` is accepted only for a recognizer that was quantized,
                which has no other engine.

        Raises:
            UnknownName: If the engine is unknown.
            ConfigError: If the engine does not support the number format or the device, or if the
                encoder has no PyTorch network.
        """
        if dtype == "auto" and self.encoder.engine.dtype != "int8":
            dtype = resolve_auto_dtype(engine, self.dtype_checks, self.encoder.device)
        encoder = encoder_with_engine(without_text_feature_cache(self.encoder), engine, dtype)
        other = copy.copy(self)
        other.encoder = add_text_feature_cache(encoder, self.cache)
        shared = self._shared_arguments | {"encoder": other.encoder}
        other._set_parameters(self._arguments, shared=shared)
        return other

    def check_dtype(
        self,
        held_out: RecognizerInput,
        targets: npt.ArrayLike | None = None,
        *,
        engine: str = "torch",
        progress: Progress | None = None,
    ) -> DtypeCheck:
        """Measure how much probabilities change in bf16, for ``with_engine(engine, "auto")``.

        The result is stored, and ``save`` writes it. A new calibration removes it.

        Args:
            held_out: Annotated images, of which at most 1,000 are encoded.
            targets: Targets, ``(n, c)``, as for ``fit``.
            engine: ``torch`` or ``openvino``.
            progress: Function called with the number of encoded images and the total number of
                images.

        Raises:
            NotFitted: If the recognizer is not calibrated.
            ConfigError: If the engine does not support bf16 or the encoder.
            InputError: If the images have no labels.
            DataError: If no image can be read.
        """
        resolved = resolve_recognizer_targets(held_out, targets, self.names)
        if isinstance(resolved, Images):
            raise InputError(
                "check_dtype requires annotated images; got images without labels. Give targets."
            )
        sample = resolved.take(rows_of_dtype_check(len(resolved)))
        with_bf16 = self.with_engine(engine, "bf16")  # an error is raised before images are encoded
        before = self.with_engine(engine).predict(sample, progress=progress)
        after = with_bf16.predict(sample, progress=progress)
        skipped = {image.path for image in before.skipped}
        is_read = np.array([str(path) not in skipped for path in sample.paths])
        labelled = self.align_labels(sample)
        check = compare_dtypes(
            engine,
            "bf16",
            before,
            after,
            labelled.targets[is_read],
            labelled.known[is_read],
        )
        others = (c for c in self.dtype_checks if c.engine != engine)
        self.dtype_checks = (*others, check)
        return check

    def predict(
        self,
        source: RecognizerInput,
        *,
        uncertainty: str | None = None,
        workers: int | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Predictions:
        """Return the scores of each image and label, and log-odds with a link or calibration.

        Args:
            source: Images, with or without labels, or precomputed features:

                - one or many paths of image files, or a folder;
                - one or many PIL images, or contents of image files as bytes;
                - RGB pixels, uint8, ``(h, w, 3)`` or ``(n, h, w, 3)``;
                - ``LabelledImages``, ``LabelledFeatures``, or vectors as floats, ``(n, d)``;
                - ``LabelledScores``, or scores as floats, ``(n, c)``, for ``from_scores``.

                Images in memory have the paths ``image 0``, ``image 1`` and so on.
            uncertainty: Kind of uncertainty of each label that the predictions contain:

                - ``bernoulli_variance``: 4p(1 - p) of the calibrated probability p, in [0, 1];
                - ``residual_error``: learned expectation of the squared error of p, in [0, 1];
                - ``match_variance``: learned variance of the latent similarity, above 0. A lower
                  variance means a more reliable match. Compare only variances of accepted labels.

                ``residual_error`` and ``match_variance`` require a method that estimates them. If
                None, there is no uncertainty.
            workers: Number of worker processes that decode images. If None, there are no worker
                processes for fewer than 64 images, and one per CPU core, at most 8, for more
                images.
            strict: Whether to raise an error if an image cannot be read. If False, unreadable
                images are left out.
            progress: Function called with the number of encoded images and the total number of
                images.

        Raises:
            NotFitted: If the method has to be fitted first, or if ``bernoulli_variance`` is
                requested of an uncalibrated recognizer.
            ConfigError: If the method does not estimate the requested uncertainty. Also if the
                method needs patches or views, and ``source`` contains precomputed features.
            DataError: If no image can be read, or if ``strict`` is True and any image cannot be
                read.
            InputError: If ``source`` is empty, has another type, or mixes files and images in
                memory. Also if an array contains neither vectors nor pixels, or vectors of another
                width. Also if ``workers`` is not an integer >= 0, or if the kind of uncertainty is
                unknown.
        """
        self.check_fitted()
        check_prediction_count("workers", workers, minimum=0)
        resolved = resolve_recognizer_input(source)
        blocks = self._predict_blocks(
            resolved,
            images_per_prediction_block(self.method),
            uncertainty,
            workers=workers,
            strict=strict,
            progress=progress,
        )
        return join_prediction_blocks(blocks, n_images=len(resolved), folder=self.cache.folder)

    def predict_blocks(
        self,
        source: RecognizerInput,
        *,
        block_size: int | None = None,
        uncertainty: str | None = None,
        workers: int | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[Predictions]:
        """Return an iterator over the predictions of blocks of images, in the order of the images.

        Only the features and the predictions of one block are in memory. The other arguments are
        those of ``predict``, and the joined predictions of all blocks equal the result of
        ``predict``. If no image of a block can be read, the predictions of the block have no rows.

        Args:
            source: Images, with or without labels, or precomputed features. Images in memory are
                one block.
            block_size: Number of images per block, >= 1. If None, there are 4096 images, 1024
                images if the method uses views, or 256 images if the method uses patch features.
            uncertainty: Kind of uncertainty that the predictions contain, as for ``predict``.
            workers: Number of worker processes that decode images.
            strict: Whether to raise an error if an image cannot be read.
            progress: Function called with the number of encoded images and the total number of
                images.

        Raises:
            NotFitted: If the method has to be fitted first, or for the reasons of ``predict``.
            ConfigError: If the method does not estimate the requested uncertainty.
            InputError: If ``block_size`` is not an integer >= 1, or for the reasons of ``predict``.
            DataError: While iterating, for the reasons of ``predict``.
        """
        self.check_fitted()
        check_prediction_count("block_size", block_size, minimum=1)
        check_prediction_count("workers", workers, minimum=0)
        return self._predict_blocks(
            resolve_recognizer_input(source),
            block_size or images_per_prediction_block(self.method),
            uncertainty,
            workers=workers,
            strict=strict,
            progress=progress,
        )

    def _predict_blocks(
        self, source: ResolvedInput, block_size: int, uncertainty: str | None, **options: Any
    ) -> Iterator[Predictions]:
        if not self.names:
            raise InputError(
                f"Predictions require labels; {self.run.method.name} was fitted on images with "
                "captions, without labels. Give labels (--labels, or Recognizer.with_names in "
                "Python), or evaluate the recognizer on images with captions (--captions)."
            )
        if uncertainty is not None:
            self.check_uncertainty(uncertainty)
        blocks = encode_prediction_blocks(
            source, self.method, self.encoder, self.cache, block_size=block_size, **options
        )
        return predict_encoded_blocks(
            blocks,
            self.names,
            self.method,
            self.encoder,
            self._score_conversion,
            self.fingerprint,
            uncertainty,
        )

    @property
    def uncertainty_kinds(self) -> list[str]:
        """Return the kinds of uncertainty that ``predict`` can return."""
        return available_uncertainty_kinds(
            self.method, is_calibrated=self.calibrated_on is not None
        )

    def check_uncertainty(self, kind: str) -> None:
        """Check that ``predict`` can return a kind of uncertainty, before an image is read.

        Raises:
            InputError, NotFitted, ConfigError: If the kind is unknown, or if the recognizer cannot
                estimate it; see ``predict``.
        """
        check_uncertainty_is_available(
            kind,
            self.method,
            self.run.method.name,
            is_calibrated=self.calibrated_on is not None,
        )

    def predict_proba(self, source: RecognizerInput) -> Array:
        """Return the calibrated probability of each label in each image, ``(n, c)``.

        Args:
            source: Images or features, as for ``predict``. Every image must be readable, so that
                each image has a row.

        Raises:
            NotFitted: If the method has to be fitted first, or if the recognizer is not calibrated.
            DataError: If an image cannot be read.
        """
        return self.predict(source, strict=True).probabilities

    def uncalibrated_logits(self, predictions: Predictions) -> Array | None:
        """Return the log-odds of predictions before calibration, ``(n, c)``.

        If the recognizer is not calibrated, or has no link from scores to log-odds, return None.
        """
        if self.calibration is None or self.link is None:
            return None
        return to_mapped_array(self.logits_of(predictions.scores))

    def align_labels(self, labelled: LabelledInput) -> LabelledImages:
        """Return the labelled images with one target column per label of the recognizer.

        A label of the images matches a label of the recognizer if they share an alias. Targets that
        follow from the tree of the labels are added to a label if its frequency is then distorted
        less; see ``LabelTree.extend_targets``. A warning lists the labels without a known target.

        Raises:
            InputError: If the images have no labels, or if a label of the images matches two labels
                of the recognizer.
            DataError: If a positive label has a negative ancestor in an image.
        """
        return align_recognizer_input_labels(labelled, self.names, self.aliases, self.label_tree)

    def localize(self, source: RecognizerInput) -> tuple[list[str], Array]:
        """Return heat maps, that is, the score of each label in each region of each image.

        Returns:
            Paths of the n readable images, and raw scores ``(n, c, down, across)`` of c labels in a
            grid of ``down`` rows and ``across`` columns of regions. Only the order of the scores
            within an image is meaningful.

        Raises:
            InputError: If ``source`` contains precomputed features.
            ConfigError: If the method has no heat maps, and the encoder has no patch features in
                the joint space of images and texts.
            DataError: If no image can be read.
        """
        heat_maps = compute_localization_maps(
            resolve_recognizer_files(source), self.method, self.encoder, self.cache
        )
        return heat_maps.paths, heat_maps.maps

    def save(self, folder: str | Path) -> None:
        """Write the recognizer to a folder, which can be loaded without network access.

        An existing recognizer is replaced only when all new files are complete. Then the checkpoint
        of the fit is deleted.

        Raises:
            NotFitted: If the method has to be fitted first.
            DataError: If the folder cannot be written, or contains other files. An existing
                recognizer and the checkpoint remain unchanged.
        """
        self.check_fitted()
        contents = saved_recognizer_contents(
            self.run,
            self.names_with_aliases,
            self.encoder,
            self.method,
            self.link,
            self.calibration,
            self.selection,
            self._cross_fitted,
            self.used_rows,
            self.fingerprint,
            self.dtype_checks,
            self.label_tree,
        )
        write_saved_recognizer(folder, contents, checkpoint=self._checkpoint)
        self._checkpoint = None

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "cpu") -> "Recognizer":
        """Load a recognizer that was written by ``save``.

        The predictions equal those before saving. If another process replaces the folder during
        loading, the new recognizer is loaded.

        Raises:
            DataError: If a file is missing or damaged, or if a newer version of surelabel wrote the
                folder.
        """
        return read_replaceable_folder(folder, lambda: cls._load(folder, device))

    @classmethod
    def _load(cls, folder: str | Path, device: str) -> "Recognizer":
        saved = read_saved_recognizer(folder, device=device)
        recognizer = cls(
            saved.run,
            saved.names_with_aliases,
            encoder=saved.encoder,
            label_tree=saved.label_tree,
        )
        load_saved_recognizer_weights(recognizer.method, saved.weights, folder)
        if isinstance(recognizer.method, UsesFitLabels):
            recognizer.method.use_fit_labels(recognizer.encoder, saved.fit_names)
        if saved.link != MODEL:
            recognizer.link = make_link_for_fitting(saved.run) if saved.link else None
        recognizer.calibration = restore_calibration_record(saved.calibration, saved.record)
        recognizer.selection = saved.selection
        recognizer._cross_fitted = saved.cross_fitted
        recognizer.used_rows = saved.used_rows
        recognizer.dtype_checks = saved.dtype_checks
        recognizer.is_fitted = True
        check_saved_recognizer_fingerprint(folder, saved, recognizer.fingerprint)
        return recognizer

    @property
    def fingerprint(self) -> str:
        """Return a hash of all weights and settings that determine the predictions."""
        return recognizer_fingerprint(
            self.run,
            self.names_with_aliases,
            self.encoder,
            self.method,
            self.link,
            self.calibration,
            self._tree_projection,
        )

    @property
    def calibrated_on(self) -> str | None:
        """Return a description of the calibrator and the calibration data.

        Without a calibration, the text names the loss that the method was fitted with. If the
        log-odds are computed with the scale and the bias of a pretrained encoder, such as SigLIP,
        the text is ``model``. For an exported file with logits, the text is the description of the
        calibration of the exported recognizer. If there is no calibration and no link to log-odds,
        the value is None.
        """
        return self._score_conversion.description

    @property
    def label_tree(self) -> LabelTree | None:
        """Tree of the labels, or None.

        In the annotations for ``fit``, ``calibrate`` and evaluations, the parent of a positive
        label becomes positive, and the children of a negative label become negative, if the
        frequency of the label is then distorted less; see ``LabelTree.extend_targets``. In
        predicted probabilities, no label is more probable than its parent. Scores are not changed.
        If a tree is set after ``calibrate``, the validation record is dropped; call ``calibrate``
        again to obtain another one.

        Raises:
            InputError: If a label of the tree that is set is not a label of the recognizer.
        """
        return self._label_tree

    @label_tree.setter
    def label_tree(self, tree: LabelTree | None) -> None:
        projection = LabelTreeProjection.of_labels(tree, self.names)
        if self.calibration is not None:
            self.calibration = self.calibration.with_tree(projection)
        self._label_tree, self._arguments = tree, self._arguments | {"label_tree": tree}

    @property
    def default_thresholds(self) -> Array | None:
        """Return the minimum probability of each label that an exported file stores, ``(c,)``.

        If the recognizer is not an exported file, the value is None. It is also None after another
        calibration, because the thresholds apply to the probabilities of the file.
        """
        if self.calibration is not None or not isinstance(self.encoder, ExportedModel):
            return None
        return self.encoder.thresholds_of_labels(self.names)

    @property
    def _score_conversion(self) -> ScoreConversion:
        suffixes = {"texts": " on texts", "pairs": " on pairs"}
        suffix = suffixes.get(self.method.learns_from, "")
        is_fitted_by_loss = self.method.learns_from != "nothing"
        description = f"{LOSS_ALONE} ({self.run.loss.name}{suffix})" if is_fitted_by_loss else MODEL
        if isinstance(self.encoder, ExportedModel):
            description = self.encoder.metadata.calibrated_on or MODEL
        return ScoreConversion(description, self.link, self.calibration, self._tree_projection)

    @property
    def _tree_projection(self) -> LabelTreeProjection | None:
        return LabelTreeProjection.of_labels(self.label_tree, self.names)

    def check_fitted(self) -> None:
        """Check that the method is fitted.

        Raises:
            NotFitted: If the method has to be fitted first.
        """
        if not self.is_fitted:
            arguments = {"labels": "labelled_images", "texts": "labelled_texts", "pairs": "pairs"}
            argument = arguments.get(self.method.learns_from, "images")
            raise NotFitted(
                f"{self.run.method.name} must be fitted on {self.method.learns_from} first; the "
                f"method is not fitted yet. Call fit({argument}), or use zero_shot."
            )

    def logits_of(self, scores: npt.NDArray[np.float32]) -> Array:
        """Convert scores ``(n, c)`` of n images and c labels to the input of the calibrator.

        If there is a link, the input is log-odds; otherwise, the scores are not changed.
        """
        return self._score_conversion.calibrator_input(scores)
