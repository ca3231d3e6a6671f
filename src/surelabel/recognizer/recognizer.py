"""The object that people use: zero-shot or fitted, calibrated, saved and loaded whole."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from surelabel.calibration import CALIBRATORS
from surelabel.config import Choice, Run
from surelabel.data import FeatureCache, align, checked_names, default_folder, upright
from surelabel.encoding import Encoded, Progress, encode, remembering
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.losses import LINK_OF
from surelabel.methods import of_patches
from surelabel.recognizer.notes import (
    note_foreign,
    note_skipped,
    note_unheard,
    note_untrained,
)
from surelabel.recognizer.saving import Parts, read_parts, write_parts
from surelabel.records import (
    LOGIT_LIMIT,
    Array,
    Features,
    Images,
    LabelledImages,
    Predictions,
    Work,
)
from surelabel.training import Labelled, fit, tensors

Source = Images | LabelledImages | Sequence[str | Path]


@dataclass(frozen=True)
class Calibration:
    """What makes log-odds of scores.

    Attributes:
        name: Entry of ``CALIBRATORS``.
        fitted: The fitted calibrator.
        about: On what it was fitted, in words.
    """

    name: str
    fitted: Any
    about: str


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
        loaded = backbone or load_backbone(run.backbone.name, device=device)
        self.backbone = remembering(loaded, self.cache)
        self.method: Any = self._new_method()
        self.link: Any = None
        self.calibration = self._shared()
        self._fitted = self.method.learns_from == "nothing"
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

    def fit(self, source: LabelledImages, *, progress: Progress | None = None) -> "Recognizer":
        """Fit the method on labelled pictures, from the start; an older calibration is dropped.

        Args:
            source: Pictures with labels.
            progress: Called with pictures encoded and their total, then with passes and theirs.

        Raises:
            ConfigError: the method learns nothing from labels.
            InputError: no label of ``source`` is one of ``names``.
        """
        if self.method.learns_from != "labels":
            raise ConfigError(
                f"{self.run.method.name} learns from {self.method.learns_from}, so it cannot be "
                "fitted. Choose method.name=clip_adapter or linear, or calibrate it."
            )
        labelled = self.aligned(source)
        encoded = self._encode(labelled.paths, progress=progress)
        note_skipped(encoded)
        targets, known = tensors(labelled.targets[encoded.rows], labelled.known[encoded.rows])
        self.method, self.link, self.calibration = self._new_method(), None, None
        self._fitted = False
        self.method.start(encoded.features, targets, known)
        steps = Labelled(encoded.features, targets, known, size=self.run.batch)
        fit(
            self.method,
            steps,
            loss=self.run.make("loss"),
            epochs=self.run.epochs,
            learning_rate=self.run.learning_rate,
            weight_decay=self.run.weight_decay,
            seed=self.run.seed,
            progress=progress,
        )
        self.link, self._fitted = _link(self.run), True
        return self

    def calibrate(
        self, held_out: LabelledImages, *, progress: Progress | None = None
    ) -> "Recognizer":
        """Fit the calibrator of the run on labelled pictures that fitting has not seen."""
        labelled = self.aligned(held_out)
        encoded = self._encode(labelled.paths, progress=progress)
        note_skipped(encoded)
        raw = self._linked(self._scores(encoded.features))
        targets, known = labelled.targets[encoded.rows], labelled.known[encoded.rows]
        fitted = self.run.make("calibrator")().fit(raw, targets, known)
        count = int(known.any(axis=1).sum())
        name = self.run.calibrator.name
        self.calibration = Calibration(name, fitted, f"{name} on {count} labelled pictures")
        return self

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
        other.link, other.calibration, other._fitted = self.link, self.calibration, self._fitted
        if self.calibration and not self.calibration.fitted.shared:
            warnings.warn(
                f"The calibration ({self.calibration.name}) belongs to single labels and is "
                "dropped with the old names: calibrate again to have probabilities.",
                stacklevel=2,
            )
            other.calibration = None
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
            source: Pictures, labelled or not, or their paths.
            workers: Decoding processes; chosen by the number of pictures when left out.
            strict: An unreadable picture is an error instead of being skipped.
            progress: Called with pictures done and their total.
        """
        paths = paths_of(source)
        encoded = self._encode(paths, workers=workers, strict=strict, progress=progress)
        note_foreign(self.backbone, encoded.features.pooled)
        made = self._predictions([paths[r] for r in encoded.rows], encoded.features)
        work = Work(encoded.cached, encoded.decode_seconds, encoded.model_seconds)
        return replace(made, skipped=encoded.skipped, work=work, hashes=encoded.hashes)

    def predict_pictures(self, pictures: Sequence[Image.Image]) -> Predictions:
        """The same for pictures in memory; nothing is cached."""
        if not pictures:
            raise InputError("There are no pictures to tag.")
        pooled = [
            self.backbone.images(self.backbone.prepare(upright(p))[None]).pooled for p in pictures
        ]
        features = Features(torch.cat(pooled).cpu())
        note_foreign(self.backbone, features.pooled)
        return self._predictions([f"picture {i}" for i in range(len(pictures))], features)

    def aligned(self, labelled: LabelledImages) -> LabelledImages:
        """The same pictures with the targets of ``names``, found by any of their spellings."""
        found, _ = align(labelled, self.names, self.aliases)
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
                calibration=None
                if found is None
                else {
                    "calibrator": found.name,
                    "state": found.fitted.state(),
                    "about": found.about,
                },
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
        made.link = _link(parts.run) if parts.link else None
        made.calibration, made._fitted = _restored(parts.calibration), True
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
            text.update(repr((self.calibration.name, self.calibration.fitted.state())).encode())
        return text.hexdigest()[:16]

    @property
    def calibrated_on(self) -> str | None:
        """What makes the log-odds trustworthy, in words; None when nothing does."""
        if self.calibration:
            return self.calibration.about
        return f"by its loss alone ({self.run.loss.name})" if self.link else None

    def _encode(self, paths: Sequence[str], **options: Any) -> Encoded:
        part = "patches" if "patches" in self.method.needs else "images"
        return encode(self.backbone, paths, part=part, cache=self.cache, **options)

    def _new_method(self) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.run.seed)
            return self.run.make("method")(self.backbone, self.spellings).eval()

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

    def _linked(self, scores: npt.NDArray[np.float32]) -> Array:
        raw: Array = scores.astype(np.float64)
        return self.link.logits(raw) if self.link else raw

    def _predictions(self, paths: list[str], features: Features) -> Predictions:
        scores, logits = self._scores(features), None
        if self.calibration:
            logits = self.calibration.fitted.logits(self._linked(scores))
        elif self.link:
            logits = self._linked(scores).clip(-LOGIT_LIMIT, LOGIT_LIMIT)
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
        return _restored(shared_calibration(self.backbone, **self.run.method.settings))


def _link(run: Run) -> Any:
    make = LINK_OF[run.loss.name]
    return make(**run.loss.settings) if make else None


def _resolved(run: Run) -> Run:
    """The run with the sentences of a prompt file in it, so that it needs the file no more."""
    choice = run.method.settings.get("templates")
    if not isinstance(choice, str) or choice in TEMPLATES or "{}" in choice:
        return run
    settings = run.method.settings | {"templates": list(prompt_templates(choice))}
    return replace(run, method=replace(run.method, settings=settings))


def _restored(found: dict[str, Any] | None) -> Calibration | None:
    if found is None:
        return None
    if found.get("calibrator") not in CALIBRATORS or not {"state", "about"} <= found.keys():
        raise DataError(
            f"calibration.json must hold one of {', '.join(CALIBRATORS)} with its state. Got "
            f"{found.get('calibrator')!r}. Calibrate again, or install the version that saved it."
        )
    fitted = CALIBRATORS[found["calibrator"]]().restore(found["state"])
    return Calibration(found["calibrator"], fitted, found["about"])


def paths_of(source: Source) -> list[str]:
    """The picture files of any source."""
    paths = source.paths if isinstance(source, Images | LabelledImages) else source
    return [str(p) for p in paths]
