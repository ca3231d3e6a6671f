"""The object that people use: zero-shot or fitted, calibrated, saved and loaded whole."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from surelabel.backbones import (
    TEMPLATES,
    Backbone,
    load_backbone,
    prompt_templates,
    shared_calibration,
)
from surelabel.config import Choice, Run
from surelabel.data import FeatureCache, align, checked_names, default_folder, upright
from surelabel.encoding import Encoded, Progress, encode, ready_made, remembering
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.methods import of_patches
from surelabel.recognizer.calibrating import Calibration, calibrated, check_level, restored
from surelabel.recognizer.fitness import check_fits, check_patches
from surelabel.recognizer.fitting import (
    Examples,
    fitted,
    link_of,
    new_method,
    out_of_fold,
)
from surelabel.recognizer.notes import (
    note_foreign,
    note_skipped,
    note_unheard,
    note_untrained,
)
from surelabel.recognizer.saving import RECORD, Parts, read_parts, write_parts
from surelabel.records import (
    LOGIT_LIMIT,
    Array,
    Features,
    Images,
    LabelledFeatures,
    LabelledImages,
    Predictions,
    Work,
)
from surelabel.training import Checkpoint, tensors

Labelled = LabelledImages | LabelledFeatures
Source = Images | Labelled | Sequence[str | Path]


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
        self.run = run = _resolved(run)
        self.names, self.aliases = checked_names(names)
        self.spellings = ["|".join(self.aliases[name]) for name in self.names]
        self.cache = cache or FeatureCache(default_folder())
        loaded = backbone or load_backbone(
            run.backbone.name, device=device, **run.backbone.settings
        )
        self.backbone = remembering(loaded, self.cache)
        self.method: Any = self._new_method()
        self.link: Any = None
        self.calibration = self._shared()
        self._fitted = self.method.learns_from == "nothing"
        check_patches(run, self.method, self.backbone)
        if self.method.open_vocabulary:
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
        source: Labelled,
        *,
        folds: int = 0,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> "Recognizer":
        """Fit the method on labelled pictures, from the start; an older calibration is dropped.

        A method that trains the encoder itself goes on from the encoder as it is.

        Args:
            source: Pictures with labels, or ready-made vectors with labels.
            folds: 2 or more calibrate as well, with no other labels: as many methods are fitted,
                each without one part of the pictures, and the calibrator learns from what each
                says of the part it has not seen. The method that stays has seen all.
            checkpoint: A file in which an unfinished fit is kept after each pass, and from which
                the same fit goes on; it is removed at the end.
            progress: Called with pictures encoded and their total, then with passes and theirs.

        Raises:
            ConfigError: the method learns nothing from labels, cannot be fitted by folds, or
                does not go with the encoder or the loss; told before any picture is read.
            InputError: no label of ``source`` is one of ``names``, or there are too few pictures.
            DataError: ``checkpoint`` is damaged, or belongs to another run.
        """
        check_fits(self.run, self.method, self.backbone, self.spellings, source, folds)
        examples = self._examples(source, progress)
        fold = examples.dealt(folds, self.run.seed) if folds else None
        self.method, self.link, self.calibration = self._new_method(), None, None
        self._fitted = False
        kept = checkpoint and Checkpoint(checkpoint, purpose=self._purpose(examples))
        common = (self.run, self.backbone, self.spellings, examples)
        self.method = fitted(*common, checkpoint=kept or None, progress=progress)
        if "pixels" in self.method.needs:
            self.backbone = remembering(self.method.tuned(), self.cache)
        self.link, self._fitted = link_of(self.run), True
        if fold is not None:
            scores = out_of_fold(*common, fold=fold, progress=progress)
            self._calibrate(scores, examples, f"by {folds} folds of")
        if kept:
            kept.remove()
        return self

    def calibrate(self, held_out: Labelled, *, progress: Progress | None = None) -> "Recognizer":
        """Fit the calibrator of the run on labelled pictures that fitting has not seen.

        Raises:
            NotFitted: it learns from labels and has not been fitted.
            ConfigError: the calibrator cannot make log-odds of the scores.
            InputError: no known label is present, or none is absent.
        """
        self._check_fitted()
        check_level(self.run, None if self.link else self._scoring)
        examples = self._examples(held_out, progress)
        self._calibrate(self._scores(examples.features), examples, "on")
        return self

    def move_to(self, pictures: Source, *, progress: Progress | None = None) -> "Recognizer":
        """Fit the calibration to an archive without labels, where labels are rarer or more common.

        It holds where only the frequencies changed: a label looks as it did where it is present.

        Raises:
            NotFitted: the recognizer has not been calibrated on labelled pictures.
        """
        if self.calibration is None:
            raise NotFitted("Only a calibrated recognizer can be moved: calibrate it first.")
        encoded = self._encode(pictures, progress=progress)
        note_skipped(encoded)
        self.calibration = self.calibration.moved(self.linked(self._scores(encoded.features)))
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
                "Fit it anew, or use zero_shot or clip_adapter, which take new names."
            )
        other = Recognizer(self.run, names, backbone=self.backbone, cache=self.cache)
        other.method.load_state_dict(self.method.state_dict())
        other.link, other._fitted = self.link, self._fitted
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
            source: Pictures, labelled or not, or their paths; or ready-made vectors.
            workers: Decoding processes; chosen by the number of pictures when left out.
            strict: An unreadable picture is an error instead of being skipped.
            progress: Called with pictures done and their total.
        """
        self._check_fitted()
        paths = paths_of(source)
        encoded = self._encode(source, workers=workers, strict=strict, progress=progress)
        note_foreign(self.backbone, encoded.features.pooled)
        made = self._predictions([paths[r] for r in encoded.rows], encoded.features)
        work = Work(encoded.cached, encoded.decode_seconds, encoded.model_seconds)
        return replace(made, skipped=encoded.skipped, work=work, hashes=encoded.hashes or None)

    def predict_pictures(self, pictures: Sequence[Image.Image]) -> Predictions:
        """The same for pictures in memory; nothing is cached."""
        self._check_fitted()
        if not pictures:
            raise InputError("There are no pictures to tag.")
        pooled = [
            self.backbone.images(self.backbone.prepare(upright(p))[None]).pooled for p in pictures
        ]
        features = Features(torch.cat(pooled).cpu())
        note_foreign(self.backbone, features.pooled)
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
        given = LabelledImages(labelled.paths, labelled.names, labelled.targets, labelled.known)
        found, _ = align(given, self.names, self.aliases)
        note_unheard(self.names, found.known)
        return found

    def where(self, source: Source) -> tuple[list[str], Array]:
        """How strongly each label is seen in each patch.

        Returns:
            The paths that could be read, and raw scores of patches
            ``(n, c, down, across)``: only their order inside a picture means something.

        Raises:
            ConfigError: the encoder gives no patch vectors in the joint space.
        """
        if isinstance(source, LabelledFeatures):
            raise InputError("Places are shown in pictures; ready-made vectors have none.")
        paths, parts = paths_of(source), self.backbone.dense_parts
        if not parts:
            raise ConfigError(
                f"{self.backbone.name} gives no patch vectors in the joint space, so it cannot "
                "show where a label is. Take an encoder that does, such as ViT-B-16/openai."
            )
        encoded = encode(self.backbone.dense(), paths, part=parts[0], cache=self.cache)
        with torch.no_grad():
            scores = of_patches(self.method, encoded.features)
        down, across = encoded.features.grid or (1, 1)
        maps = scores.transpose(1, 2).reshape(len(encoded.rows), -1, down, across)
        return [paths[r] for r in encoded.rows], maps.numpy().astype(np.float64)

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
        try:
            made.method.load_state_dict(parts.weights)
        except RuntimeError as error:
            raise DataError(
                f"The weights in {folder} do not fit its run.toml: {error}. "
                "Copy the whole folder again, or save the recognizer anew."
            ) from error
        made.link = link_of(parts.run) if parts.link else None
        made.calibration, made._fitted = restored(parts.calibration, parts.record), True
        if parts.record and len(parts.record.shown) != len(made.names):
            raise DataError(
                f"{Path(folder) / RECORD} is of {len(parts.record.shown)} labels and the "
                f"recognizer of {len(made.names)}. Copy the whole folder again, or save it anew."
            )
        if made.fingerprint != parts.fingerprint:
            raise DataError(
                f"{folder} has been changed since it was saved: its parts do not give the "
                "fingerprint in about.json. Copy the whole folder again, or save it anew."
            )
        return made

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes a prediction; an index keeps it."""
        text = hashlib.sha256(self.backbone.fingerprint.encode())
        text.update(repr((self.run.method, self.spellings, self.link)).encode())
        for name, tensor in sorted(self.method.state_dict().items()):
            text.update(name.encode() + tensor.cpu().numpy().tobytes())
        if self.calibration:
            found = self.calibration
            text.update(repr((found.name, found.fitted.state())).encode())
            text.update(repr(found.shift).encode() if found.shift else b"")
        return text.hexdigest()[:16]

    @property
    def calibrated_on(self) -> str | None:
        """What makes the log-odds trustworthy, in words; None when nothing does."""
        if self.calibration:
            return self.calibration.about
        return f"by its loss alone ({self.run.loss.name})" if self.link else None

    @property
    def _scoring(self) -> str:
        """What its raw scores come from, in words."""
        fits = self.method.learns_from == "labels"
        return self.run.loss.name if fits else self.run.method.name

    def _encode(self, source: Source, **options: Any) -> Encoded:
        if isinstance(source, LabelledFeatures):
            return ready_made(source.features, width=self.backbone.width)
        part = "patches" if "patches" in self.method.needs else "images"
        return encode(self.backbone, paths_of(source), part=part, cache=self.cache, **options)

    def _examples(self, source: Labelled, progress: Progress | None) -> Examples:
        labelled = self.aligned(source)
        encoded = self._encode(source, progress=progress)
        note_skipped(encoded)
        paths = [labelled.paths[r] for r in encoded.rows]
        targets, known = tensors(labelled.targets[encoded.rows], labelled.known[encoded.rows])
        return Examples(paths, encoded.features, targets, known)

    def _purpose(self, examples: Examples) -> str:
        """What a checkpoint belongs to: this run, these names, these pictures and labels."""
        text = hashlib.sha256(repr((self.run, self.spellings, examples.paths)).encode())
        for tensor in (examples.targets, examples.known, examples.features.pooled):
            text.update(tensor.numpy().tobytes())
        return f"{self.run.method.name} on {len(examples.paths)} pictures, {text.hexdigest()[:16]}"

    def _new_method(self) -> Any:
        return new_method(self.run, self.backbone, self.spellings)

    def _check_fitted(self) -> None:
        if not self._fitted:
            raise NotFitted(
                f"{self.run.method.name} learns from labels and has not been fitted yet: "
                "call fit(labelled_pictures) first, or take zero_shot, which needs none."
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

    def _shared(self) -> Calibration | None:
        """The calibration that an embedded encoder ships with, for zero-shot alone."""
        if self.run.method.name != "zero_shot":
            return None
        return restored(shared_calibration(self.backbone, **self.run.method.settings))


def _resolved(run: Run) -> Run:
    """The run with the sentences of a prompt file in it, so that it needs the file no more."""
    choice = run.method.settings.get("templates")
    if not isinstance(choice, str) or choice in TEMPLATES or "{}" in choice:
        return run
    settings = run.method.settings | {"templates": list(prompt_templates(choice))}
    return replace(run, method=replace(run.method, settings=settings))


def paths_of(source: Source) -> list[str]:
    """The picture files of any source, or what its rows are called."""
    if isinstance(source, Images | LabelledImages | LabelledFeatures):
        return [str(p) for p in source.paths]
    return [str(p) for p in source]
