"""Fit methods on images without labels, by self-training or by feature statistics."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from surelabel.config import TEACHERS, Choice, Run
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.features import FeatureCache
from surelabel.links import Sigmoid
from surelabel.methods import LearnsFromImages, LearnsFromTargets, Method, UsesViews
from surelabel.progress import Progress
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.fingerprints import checkpoint_of_fit
from surelabel.recognizer.fitting import (
    FittingData,
    fit_recognizer_method_on_batches,
    fitting_micro_batch_size,
    make_method_for_fitting,
    make_objective_for_fitting,
)
from surelabel.recognizer.inputs import (
    LabelledInput,
    encode_recognizer_input,
)
from surelabel.recognizer.user_warnings import (
    warn_few_steps,
    warn_skipped_images,
    warn_unused_labels,
)
from surelabel.records import Features, Images
from surelabel.tables import configure_table_entry
from surelabel.training import CutAndSewSource
from surelabel.views.relative_scores import MIN_LABELS

PROBABILITY_MARGIN = 1e-6  # pseudo-labels are clipped to [margin, 1 - margin]
FUSION_SETTINGS = {  # settings that fuse views; pseudo-labels are computed from single views
    "crops": ("fusion", "fusion_parameter"),
    "region_statistics": ("patch_weight",),
    "tiles": ("fusion", "fusion_parameter"),
}
TEACHER_SCALE_SHARE = 0.5  # default scale of a teacher, relative to the scale of its encoder


@dataclass(frozen=True)
class PseudoLabels:
    """Pseudo-labels of images, the targets of self-training.

    Attributes:
        paths: Paths of the images that could be read, length n.
        targets: Pseudo-labels in [0, 1], ``(n, c)``, for c labels.
    """

    paths: Sequence[str]
    targets: Tensor


@dataclass(frozen=True)
class FittedStudent:
    """Student fitted by self-training, and pseudo-labels before and after training.

    Attributes:
        method: Fitted student.
        initial_labels: Pseudo-labels of the teacher.
        final_labels: Pseudo-labels after training. They were updated with the scores of the
            student.
    """

    method: Method
    initial_labels: PseudoLabels
    final_labels: PseudoLabels


def fit_unlabelled(
    source: Images | LabelledInput,
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    *,
    cache: FeatureCache,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Method:
    """Return a method fitted on images without labels; ignore labels of ``source`` with a warning.

    A student is trained for several epochs, and the training resumes from an existing checkpoint.
    Other methods compute feature statistics without training and without a checkpoint.
    """
    warn_unused_labels(run.method.name, source)
    warn_few_steps(run, len(source))
    method = make_method_for_fitting(run, encoder, names_with_aliases)
    if not isinstance(method, LearnsFromImages):
        student = fit_unlabelled_student(
            run,
            encoder,
            names_with_aliases,
            [str(path) for path in source.paths],
            cache=cache,
            checkpoint=checkpoint,
            progress=progress,
        )
        return student.method
    encoded = encode_recognizer_input(source, method, encoder, cache, progress=progress)
    warn_skipped_images(encoded.skipped, len(source), "images")
    method.fit_unlabelled(encoded.features)
    return method


def make_pseudolabels_for_unlabelled_fitting(
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    paths: Sequence[str],
    *,
    cache: FeatureCache,
    progress: Progress | None = None,
) -> PseudoLabels:
    """Return pseudo-labels of images, from the scores of the teacher.

    The run selects the teacher and the pseudo-label algorithm (``run.pseudolabels``).

    Raises:
        ConfigError: If there are fewer than three labels, or if the teacher is not compatible with
            the encoder.
        DataError: If no image can be read.
    """
    teacher = _make_unlabelled_fitting_teacher(run, encoder, names_with_aliases)
    encoded = encode_recognizer_input(Images(paths), teacher, encoder, cache, progress=progress)
    warn_skipped_images(encoded.skipped, len(paths), "images")
    with torch.no_grad():
        targets = run.entry("pseudolabels")(
            _unlabelled_fitting_teacher_scores(teacher, encoded.features)
        )
    return PseudoLabels([paths[row] for row in encoded.rows], targets)


def fit_unlabelled_student(
    run: Run,
    encoder: Encoder,
    names_with_aliases: Sequence[str],
    paths: Sequence[str],
    *,
    cache: FeatureCache,
    checkpoint: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> FittedStudent:
    """Return a student fitted by self-training; resume from an existing ``checkpoint``.

    Args:
        run: Run of a method with self-training, such as ``tailor``.
        encoder: Encoder of teacher and student.
        names_with_aliases: One text per label; aliases are separated by ``|``.
        paths: Paths of the images; unreadable images are left out with a warning.
        cache: Cache of features.
        checkpoint: File that stores unfinished training after each epoch and after every hundredth
            optimizer step. The file also stores the finished training.
        workers: Number of worker processes that decode images during training. If None, there is
            one process per CPU core, at most 8.
        progress: Function called with the number of finished items and the total number of items.
            The items are first encoded images, then canvases of an epoch.
            A canvas is a training image onto which other images are pasted.

    Raises:
        ConfigError: If there are fewer than three labels, or if method, teacher and encoder are not
            compatible.
        InputError: If images have more patches than the student supports.
        DataError: If no image can be read, or if ``checkpoint`` is damaged or belongs to another
            run.
    """
    sewing = run.entry("sewing")()
    method = make_method_for_fitting(run, encoder, names_with_aliases)
    objective = make_objective_for_fitting(run, encoder, names_with_aliases, method)
    _try_method_before_unlabelled_fitting(method, encoder)
    initial = make_pseudolabels_for_unlabelled_fitting(
        run, encoder, names_with_aliases, paths, cache=cache, progress=progress
    )
    log_odds = initial.targets.clamp(PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN).logit()
    source = CutAndSewSource(
        initial.paths,
        log_odds,
        sewing.select_overlay_images(log_odds),
        encoder=encoder.with_image_size(method.image_size or encoder.input_side),
        sewing=sewing,
        batch_size=fitting_micro_batch_size(run),
        workers=workers,
        progress=progress,
    )
    known = torch.ones_like(initial.targets, dtype=torch.bool)
    data = FittingData(initial.paths, Features(log_odds), initial.targets.float(), known)
    saved_state = checkpoint_of_fit(checkpoint, run, names_with_aliases, data)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        assert isinstance(method, LearnsFromTargets)  # by its contract
        method.initialize(*data.for_initial_values(run.seed), Sigmoid())
        fit_recognizer_method_on_batches(run, method, source, objective, checkpoint=saved_state)
    final = PseudoLabels(initial.paths, source.estimator.log_odds.sigmoid())
    return FittedStudent(method, initial, final)


@torch.no_grad()
def _try_method_before_unlabelled_fitting(method: Method, encoder: Encoder) -> None:
    """Compute the scores of a blank image, to fail early if method and encoder do not match."""
    method(extract_features([Image.new("RGB", (1, 1))], method, encoder).features)


def _make_unlabelled_fitting_teacher(
    run: Run, encoder: Encoder, names_with_aliases: Sequence[str]
) -> Method:
    """Return the teacher, whose scores are log-odds of a softmax over the labels.

    By default, the softmax has half the logit scale of the encoder, because scores of image parts
    are overconfident at the full scale. Half the scale increases the mAP of pseudo-labels on 500
    images of Scenes in 3 by 3 tiles: from 75.0 to 76.8 for tiny-vit, and from 55.5 to 56.8 for
    tiny-rn. On VOC2012, half the scale increases the mAP of CLIP RN50x64 from 85.3 to 86.4.

    Raises:
        ConfigError: If there are fewer than three labels, if the score domain of the teacher is not
            softmax, or if a setting of the teacher fuses views.
    """
    assert run.teacher is not None  # set by Run for methods with self-training
    if len(names_with_aliases) < MIN_LABELS:
        raise ConfigError(
            f"{run.method.name} requires at least {MIN_LABELS} labels; got "
            f"{len(names_with_aliases)}. Add labels that occur in the images, or use "
            "method.name=tiles, which needs only one label."
        )
    domain = run.teacher.settings.get("domain", "softmax")
    if domain != "softmax":
        raise ConfigError(
            f"teacher.domain must be softmax for pseudo-labels; got {domain!r}. "
            "Remove teacher.domain."
        )
    _check_unlabelled_fitting_fusion(run.teacher)
    defaults = {"domain": domain, "scale": TEACHER_SCALE_SHARE * encoder.scale}
    settings = defaults | run.teacher.settings
    make_teacher = configure_table_entry(TEACHERS, run.teacher.name, **settings)
    teacher: Method = make_teacher(encoder, names_with_aliases)
    return teacher.eval()


def _check_unlabelled_fitting_fusion(teacher: Choice) -> None:
    """Check that no setting of the teacher fuses views.

    Pseudo-labels are computed from the scores of single views, so a fusion has no effect.

    Raises:
        ConfigError: If the teacher has a setting that fuses views.
    """
    for setting in FUSION_SETTINGS.get(teacher.name, ()):
        if setting in teacher.settings:
            raise ConfigError(
                f"teacher.{setting} must not be set for self-training; got "
                f"{teacher.settings[setting]!r}. The pseudo-label algorithm combines the views; "
                "set pseudolabels.margin instead."
            )


def _unlabelled_fitting_teacher_scores(teacher: Method, features: Features) -> Tensor:
    """Return the scores of whole images and, if the teacher has views, of all views."""
    if isinstance(teacher, LearnsFromImages):
        teacher.fit_unlabelled(features)
    return teacher.view_scores(features) if isinstance(teacher, UsesViews) else teacher(features)
