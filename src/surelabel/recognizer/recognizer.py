"""The object that people use: zero-shot or fitted, calibrated, saved and loaded whole."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from surelabel.backbones import Backbone, load_backbone
from surelabel.config import Choice, Run
from surelabel.data import FeatureCache, checked_names, default_folder
from surelabel.encoding import Progress, remembering
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.recognizer.calibrating import calibrated, check_level, restored, shipped
from surelabel.recognizer.fingerprints import fingerprint_of, purpose_of
from surelabel.recognizer.fitness import check_fits, check_patches
from surelabel.recognizer.fitting import (
    Examples,
    fitted,
    link_of,
    new_method,
    out_of_fold,
    resolved,
)
from surelabel.recognizer.labelfree import calibrated_without_labels
from surelabel.recognizer.learning import learnt_from
from surelabel.recognizer.notes import (
    note_few_steps,
    note_foreign,
    note_skipped,
    note_unlooked,
    note_untrained,
)
from surelabel.recognizer.places import places
from surelabel.recognizer.saving import (
    Parts,
    check_unchanged,
    give_weights,
    read_parts,
    write_parts,
)
from surelabel.recognizer.sources import Labelled, Source, aligned, encoded, of_pictures, source_of
from surelabel.records import (
    LOGIT_LIMIT,
    Array,
    Features,
    Images,
    LabelledImages,
    Predictions,
    Work,
)
from surelabel.training import Checkpoint, tensors


class Recognizer:
    """An encoder, a method and a calibration for some names.

    Args:
        run: Which of each, with which settings.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        device: Where the encoder runs.
        backbone: An encoder that is loaded already.
        cache: Where features are kept; by default the user's cache folder.

    Attributes:
        names: The labels, in the order of the columns.
        link: From the scores of a fitted head to log-odds; None for zero-shot.
        calibration: None until something calibrates.
        fitted: False while it must learn from pictures before it predicts.

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
        backbone: Backbone | None = None,
        cache: FeatureCache | None = None,
    ):
        self.run = run = resolved(run)
        self.names, self.aliases = checked_names(names)
        self.spellings = ["|".join(self.aliases[name]) for name in self.names]
        self.cache = cache or FeatureCache(default_folder())
        loaded = backbone or load_backbone(
            run.backbone.name, device=device, **run.backbone.settings
        )
        self.backbone = remembering(loaded, self.cache)
        self.method: Any = new_method(self.run, self.backbone, self.spellings)
        self.link: Any = None
        self.calibration = shipped(run, self.backbone)
        self.fitted = self.method.learns_from == "nothing"
        check_patches(run, self.method, self.backbone)
        if self.method.open_vocabulary or self.method.learns_from == "images":
            note_untrained(self.backbone, [o for spelt in self.aliases.values() for o in spelt])

    @classmethod
    def zero_shot(
        cls, model: str, names: Sequence[str], *, templates: str = "one", device: str = "cpu"
    ) -> "Recognizer":
        """A recognizer that needs no fitting: ready at once with an embedded encoder.

        Args:
            model: ``tiny-vit``, ``tiny-rn``, ``ViT-B-16/openai``, ``local-dir:FOLDER`` …
            names: What to look for.
            templates: ``one``, ``ensemble``, or a sentence with ``{}``.
            device: Where the encoder runs.
        """
        settings = {} if templates == "one" else {"templates": templates}
        run = Run(backbone=Choice(model), method=Choice("zero_shot", settings))
        return cls(run, names, device=device)

    def fit(
        self,
        source: Source,
        *,
        folds: int = 0,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "Recognizer":
        """Fit the method on pictures, from the start; an older calibration is dropped.

        A method that trains the encoder itself goes on from the encoder as it is. One that learns
        from images alone gives scores until something calibrates them.

        Args:
            source: Pictures with labels, or ready-made vectors with labels; for a method that
                learns from images pictures without any, their paths, or a folder: labels are not
                looked at.
            folds: 2 or more calibrate as well, with no other labels: as many methods are fitted,
                each without one part of the pictures, and the calibrator learns from what each
                says of the part it has not seen. The method that stays has seen all.
            checkpoint: A file in which an unfinished fit is kept after each pass, and from which
                the same fit goes on; it is removed at the end.
            progress: Called with pictures encoded and their total, then with passes and theirs.

        Raises:
            ConfigError: the method learns nothing, cannot be fitted by folds, or does not go with
                the encoder, the loss or the source; told before any picture is read.
            InputError: no label of ``source`` is one of ``names``, or there are too few pictures.
            DataError: ``checkpoint`` is damaged, or belongs to another run.
        """
        given = source_of(source)
        check_fits(self.run, self.method, self.backbone, self.spellings, given, folds)
        if self.method.learns_from == "images":
            return self._learn(given, checkpoint, progress)
        assert not isinstance(given, Images)  # which have no labels: it was checked
        examples = self._examples(given, progress)
        fold = examples.dealt(folds, self.run.seed) if folds else None
        self._forget()
        kept = checkpoint and Checkpoint(
            checkpoint, purpose=purpose_of(self.run, self.spellings, examples)
        )
        common = (self.run, self.backbone, self.spellings, examples)
        self.method = fitted(*common, checkpoint=kept or None, progress=progress)
        if "pixels" in self.method.needs:
            self.backbone = remembering(self.method.tuned(), self.cache)
        self.link, self.fitted = link_of(self.run), True
        if fold is not None:
            scores = out_of_fold(*common, fold=fold, progress=progress)
            self._calibrate(scores, examples, f"by {folds} folds of")
        if kept:
            kept.remove()
        return self

    def _learn(
        self, given: Images | Labelled, checkpoint: str | Path | None, progress: Progress | None
    ) -> "Recognizer":
        note_unlooked(self.run.method.name, given)
        note_few_steps(self.run, len(given))
        self._forget()
        self.method = learnt_from(
            given,
            self.run,
            self.backbone,
            self.spellings,
            cache=self.cache,
            checkpoint=checkpoint,
            progress=progress,
        )
        self.fitted = True
        return self

    def _forget(self) -> None:
        self.method = new_method(self.run, self.backbone, self.spellings)
        self.link = self.calibration = None
        self.fitted = False

    def calibrate(self, held_out: Source, *, progress: Progress | None = None) -> "Recognizer":
        """Fit the calibrator of the run on labelled pictures that fitting has not seen.

        Given pictures without labels, it is fitted to what parts of them show; ``calibrated_on``
        says so, and nobody has seen whether it is right.

        Raises:
            NotFitted: it has not been fitted.
            ConfigError: the calibrator cannot make log-odds of the scores.
            InputError: no known label is present, or none is absent.
        """
        self._check_fitted()
        of_labels = self.method.learns_from == "labels"
        scoring = self.run.loss.name if of_labels else self.run.method.name
        check_level(self.run, None if self.link else scoring)
        given = source_of(held_out)
        if isinstance(given, Images):
            return self._calibrate_alone(given, progress)
        examples = self._examples(given, progress)
        self._calibrate(self._scores(examples.features), examples, "on")
        return self

    def _calibrate_alone(self, given: Images, progress: Progress | None) -> "Recognizer":
        found = encoded(given, self.method, self.backbone, self.cache, progress=progress)
        note_skipped(found, "pictures")
        self.calibration = calibrated_without_labels(
            self.run,
            self.backbone,
            self.spellings,
            self.linked(self._scores(found.features)),
            [str(given.paths[r]) for r in found.rows],
            cache=self.cache,
            progress=progress,
        )
        return self

    def move_to(self, pictures: Source, *, progress: Progress | None = None) -> "Recognizer":
        """Fit the calibration to an archive without labels, where labels are rarer or more common.

        It holds where only the frequencies changed: a label looks as it did where it is present.

        Raises:
            NotFitted: the recognizer has not been calibrated, or on too few pictures to know how
                common labels were there.
        """
        if self.calibration is None:
            raise NotFitted("Only a calibrated recognizer can be moved: calibrate it first.")
        found = encoded(
            source_of(pictures), self.method, self.backbone, self.cache, progress=progress
        )
        note_skipped(found, "pictures")
        self.calibration = self.calibration.moved(self.linked(self._scores(found.features)))
        return self

    def _calibrate(self, scores: npt.NDArray[np.float32], examples: Examples, how: str) -> None:
        self.calibration = calibrated(
            self.run,
            self.linked(scores),
            examples.targets.numpy().astype(np.float64),
            examples.known.numpy(),
            how=how,
        )

    def with_names(self, names: Sequence[str]) -> "Recognizer":
        """The same recognizer for other names, with no retraining.

        What all labels share (the adapter, a shared calibration) stays; what belongs to single
        labels is dropped with one warning.

        Raises:
            ConfigError: the method has learnt its names by heart.
        """
        if not self.method.open_vocabulary:
            raise ConfigError(
                f"{self.run.method.name} knows only the names it was fitted on. "
                "Fit it anew, or use a method that takes new names, such as zero_shot or "
                "recover_match."
            )
        other = Recognizer(self.run, names, backbone=self.backbone, cache=self.cache)
        other.method.load_state_dict(self.method.state_dict())
        other.link, other.fitted = self.link, self.fitted
        other.calibration = self.calibration and self.calibration.for_other_names()
        return other

    def predict(
        self,
        source: Source,
        *,
        workers: int | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Predictions:
        """Scores, and log-odds where there is a link or a calibration, of every picture.

        Args:
            source: Pictures, labelled or not, their paths, or a folder; or ready-made vectors,
                labelled or an array ``(n, d)``.
            workers: Decoding processes; chosen by the number of pictures when left out.
            strict: An unreadable picture is an error instead of being skipped.
            progress: Called with pictures done and their total.
        """
        self._check_fitted()
        given = source_of(source)
        how = {"workers": workers, "strict": strict, "progress": progress}
        found = encoded(given, self.method, self.backbone, self.cache, **how)
        note_foreign(self.backbone, self.method, found.features.pooled)
        made = self._predictions([str(given.paths[r]) for r in found.rows], found.features)
        passes = int(found.passes.sum())
        work = Work(found.cached, found.decode_seconds, found.model_seconds, passes)
        return replace(made, skipped=found.skipped, work=work, hashes=found.hashes or None)

    def predict_pictures(self, pictures: Sequence[Image.Image]) -> Predictions:
        """The same for pictures in memory; nothing is cached."""
        self._check_fitted()
        if not pictures:
            raise InputError("There are no pictures to tag.")
        features = of_pictures(pictures, self.method, self.backbone).features
        note_foreign(self.backbone, self.method, features.pooled)
        return self._predictions([f"picture {i}" for i in range(len(pictures))], features)

    def before_calibration(self, predictions: Predictions) -> Array | None:
        """Log-odds of its own predictions before the calibrator, ``(n, c)``.

        None where nothing calibrates on held-out pictures, or where it is given raw scores.
        """
        if self.calibration is None or self.link is None:
            return None
        return self.linked(predictions.scores)

    def aligned(self, labelled: Labelled) -> LabelledImages:
        """The same pictures with the targets of ``names``, found by any of their spellings."""
        return aligned(labelled, self.names, self.aliases)

    def where(self, source: Source) -> tuple[list[str], Array]:
        """How strongly each label is seen in each patch.

        Returns:
            The paths that could be read, and raw scores of patches
            ``(n, c, down, across)``: only their order inside a picture means something.

        Raises:
            InputError: ``source`` is ready-made vectors.
            ConfigError: the encoder gives no patch vectors in the joint space.
        """
        found = places(source_of(source), self.method, self.backbone, self.cache)
        return found.paths, found.maps

    def save(self, folder: str | Path) -> None:
        """Write a folder that loads anywhere, with the network off.

        Raises:
            NotFitted: it learns from labels and has not been fitted.
            DataError: the folder cannot be written, or holds something else.
        """
        self._check_fitted()
        found = self.calibration
        write_parts(
            folder,
            Parts(
                run=self.run,
                spellings=self.spellings,
                backbone=self.backbone,
                link=self.run.loss.name if self.link else None,
                calibration=found.state() if found else None,
                record=found.record if found else None,
                weights=self.method.state_dict(),
                fingerprint=self.fingerprint,
            ),
        )

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "cpu") -> "Recognizer":
        """Read what ``save`` wrote; what it predicts is the same.

        Raises:
            DataError: a part is missing, damaged, or from a newer version.
        """
        parts = read_parts(folder, device=device)
        made = cls(parts.run, parts.spellings, backbone=parts.backbone)
        give_weights(made.method, parts.weights, folder)
        made.link = link_of(parts.run) if parts.link else None
        made.calibration, made.fitted = restored(parts.calibration, parts.record), True
        check_unchanged(folder, parts, made.fingerprint)
        return made

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes a prediction; an index keeps it."""
        return fingerprint_of(
            self.run, self.spellings, self.backbone, self.method, self.link, self.calibration
        )

    @property
    def calibrated_on(self) -> str | None:
        """What makes the log-odds trustworthy, in words; None when nothing does."""
        if self.calibration:
            return self.calibration.about
        return f"by its loss alone ({self.run.loss.name})" if self.link else None

    def _examples(self, source: Labelled, progress: Progress | None) -> Examples:
        labelled = self.aligned(source)
        found = encoded(source, self.method, self.backbone, self.cache, progress=progress)
        note_skipped(found)
        paths = [labelled.paths[r] for r in found.rows]
        targets, known = tensors(labelled.targets[found.rows], labelled.known[found.rows])
        return Examples(paths, found.features, targets, known)

    def _check_fitted(self) -> None:
        if not self.fitted:
            what = "labelled_pictures" if self.method.learns_from == "labels" else "pictures"
            raise NotFitted(
                f"{self.run.method.name} learns from {self.method.learns_from} and has not been "
                f"fitted yet: call fit({what}) first, or take zero_shot, which needs none."
            )

    @torch.no_grad()
    def _scores(self, features: Features) -> npt.NDArray[np.float32]:
        self._check_fitted()
        scores: Tensor = self.method(features)
        made: npt.NDArray[np.float32] = scores.cpu().numpy().astype(np.float32)
        return made

    def linked(self, scores: npt.NDArray[np.float32]) -> Array:
        """What a calibrator is given: log-odds where there is a link, else the scores."""
        raw: Array = scores.astype(np.float64)
        return self.link.logits(raw) if self.link else raw

    def _predictions(self, paths: list[str], features: Features) -> Predictions:
        scores, logits = self._scores(features), None
        if self.calibration:
            logits = self.calibration.logits(self.linked(scores))
        elif self.link:
            logits = self.linked(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)
        return Predictions(
            paths=paths,
            names=self.names,
            scores=scores,
            logits=None if logits is None else logits.astype(np.float32),
            calibration=self.calibrated_on,
            model=self.fingerprint,
            features=features.pooled.cpu().numpy().astype(np.float16),
        )
