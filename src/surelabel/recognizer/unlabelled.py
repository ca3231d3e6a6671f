"""From pictures without labels to a student that has learnt from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from surelabel.backbones import Backbone
from surelabel.config import TEACHERS, Choice, Run
from surelabel.data import FeatureCache
from surelabel.encoding import Progress
from surelabel.errors import ConfigError
from surelabel.links import Sigmoid
from surelabel.recognizer.fingerprints import purpose_of
from surelabel.recognizer.fitting import Examples, in_memory, new_method, objective_of, trained
from surelabel.recognizer.notes import note_skipped
from surelabel.recognizer.sources import encoded, of_pictures
from surelabel.records import Features, Images
from surelabel.tables import choose
from surelabel.training import Checkpoint, Tailoring
from surelabel.views.relative import FEWEST

LEAST = 1e-6  # pseudo-labels are kept inside [LEAST, 1 - LEAST]
FUSING = {  # settings that make one of the views, which pseudo-labels are given one by one
    "crops": ("fusion", "amount"),
    "region_statistics": ("share",),
    "tiles": ("fusion", "amount"),
}
SOFTNESS = 0.5  # a teacher's scale where the run names none, as a share of its encoder's own


@dataclass(frozen=True)
class PseudoLabels:
    """What a teacher says of pictures, as targets of a student.

    Attributes:
        paths: Those that could be read.
        targets: In [0, 1], ``(n, c)``.
    """

    paths: Sequence[str]
    targets: Tensor


@dataclass(frozen=True)
class Taught:
    """A student, and what it has learnt from.

    Attributes:
        method: The student.
        first: The pseudo-labels that it began with.
        last: What became of them while it learnt.
    """

    method: Any
    first: PseudoLabels
    last: PseudoLabels


def pseudolabelled(
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    paths: Sequence[str],
    *,
    cache: FeatureCache,
    progress: Progress | None = None,
) -> PseudoLabels:
    """Pseudo-labels of pictures, as the run's teacher and rule make them.

    Raises:
        ConfigError: there are fewer than three names, or the teacher does not go with the encoder.
        DataError: no picture can be read.
    """
    teacher = _teacher(run, backbone, spellings)
    found = encoded(Images(paths), teacher, backbone, cache, progress=progress)
    note_skipped(found, "pictures")
    with torch.no_grad():
        targets = run.make("pseudolabels")(_said(teacher, found.features))
    return PseudoLabels([paths[r] for r in found.rows], targets)


def taught(
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    paths: Sequence[str],
    *,
    cache: FeatureCache,
    checkpoint: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Taught:
    """A student taught as the run says, from the start or from where its checkpoint was kept.

    Args:
        run: Of a method that is a student, such as ``tailor``.
        backbone: The encoder of teacher and student.
        spellings: One text a name.
        paths: Pictures; those that cannot be read are left out with a warning.
        cache: Where features are kept.
        checkpoint: A file in which unfinished learning is kept after each pass; it is removed at
            the end.
        workers: Decoding processes of the student's pictures; one a core when left out.
        progress: Called with pictures encoded and their total, then with pictures sewn in a pass
            and theirs.

    Raises:
        ConfigError: there are fewer than three names, or the parts do not go together.
        InputError: pictures have more places than the student takes.
        DataError: no picture can be read, or ``checkpoint`` belongs to another run.
    """
    sewing, objective = run.make("sewing")(), objective_of(run, backbone, spellings)
    method = new_method(run, backbone, spellings)
    _try_once(method, backbone)
    first = pseudolabelled(run, backbone, spellings, paths, cache=cache, progress=progress)
    log_odds = first.targets.clamp(LEAST, 1 - LEAST).logit()
    source = Tailoring(
        first.paths,
        log_odds,
        sewing.chosen(log_odds),
        backbone=backbone.at(method.side or backbone.least_side),
        sewing=sewing,
        size=in_memory(run),
        workers=workers,
        progress=progress,
    )
    known = torch.ones_like(first.targets, dtype=torch.bool)
    examples = Examples(first.paths, Features(log_odds), first.targets.float(), known)
    kept = checkpoint and Checkpoint(checkpoint, purpose=purpose_of(run, spellings, examples))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        method.start(examples.features, examples.targets, known, Sigmoid())
        trained(run, method, source, objective, checkpoint=kept or None)
    if kept:
        kept.remove()
    last = PseudoLabels(first.paths, source.estimator.log_odds.sigmoid())
    return Taught(method, first, last)


@torch.no_grad()
def _try_once(method: Any, backbone: Backbone) -> None:
    """Score a blank picture, so that what cannot work is told before the teacher looks at any."""
    method(of_pictures([Image.new("RGB", (1, 1))], method, backbone).features)


def _teacher(run: Run, backbone: Backbone, spellings: Sequence[str]) -> Any:
    """The teacher, whose scores are log-odds of a softmax over the names.

    An encoder is too sure of parts of pictures at its own scale: on 500 pictures of Scenes in 3 by
    3 tiles half of it lifts the pseudo-labels of tiny-vit from 75.0 to 76.8 mAP and those of
    tiny-rn from 55.5 to 56.8; on VOC2012 CLIP RN50x64 ranks pictures better by it, too (86.4 mAP
    instead of 85.3).
    """
    assert run.teacher is not None  # the run of a student has one
    if len(spellings) < FEWEST:
        raise ConfigError(
            f"{run.method.name} learns which of several names a picture shows and needs {FEWEST} "
            f"names or more. Got {len(spellings)}; add names that pictures show beside it, or take "
            "method.name=tiles, which needs one."
        )
    domain = run.teacher.settings.get("domain", "softmax")
    if domain != "softmax":
        raise ConfigError(
            "Pseudo-labels are made of log-odds over the names: leave teacher.domain out, or set "
            f"it to softmax. Got {domain!r}."
        )
    _check_unfused(run.teacher)
    usual = {"domain": domain, "scale": SOFTNESS * backbone.scale}
    choice = run.teacher
    return choose(TEACHERS, choice.name, **usual | choice.settings)(backbone, spellings).eval()


def _check_unfused(teacher: Choice) -> None:
    """Refuse a setting that would change nothing.

    Raises:
        ConfigError: there is one.
    """
    for setting in FUSING.get(teacher.name, ()):
        if setting in teacher.settings:
            raise ConfigError(
                f"Pseudo-labels fuse the views themselves: leave teacher.{setting} out, and set "
                "what makes them, such as pseudolabels.margin=0.5."
            )


def _said(teacher: Any, features: Features) -> Tensor:
    """Scores of whole pictures, with those of their views where the teacher looks at any."""
    if hasattr(teacher, "learn"):
        teacher.learn(features)
    said: Tensor = teacher.of_views(features) if hasattr(teacher, "of_views") else teacher(features)
    return said
