"""Warn about inputs for which predictions are valid, but less reliable."""

import math
import warnings
from collections.abc import Sequence

from torch import Tensor

from surelabel.arrays import Array, Flags
from surelabel.config import Run
from surelabel.counts import format_count
from surelabel.encoders import Encoder
from surelabel.methods import Method
from surelabel.records import LabelledFeatures, LabelledImages, SkippedImage

MIN_STUDENT_STEPS = 30  # optimizer steps of a randomly initialized student
OOD_LIMIT = 1.0
MAX_OOD_SET_SIZE = 64  # the limit of the OOD score is the same for larger sets
LARGER_ENCODER_HINT = "For photographs, use a larger encoder, such as --model ViT-B-16/openai."


def warn_untrained_labels(encoder: Encoder, aliases: Sequence[str]) -> None:
    """Warn if labels contain tokens that the encoder was not trained on."""
    untrained = encoder.labels_with_untrained_tokens(aliases)
    if untrained:
        warnings.warn(
            f"{len(untrained):,} of {format_count(len(aliases), 'label')} "
            f"({_first_names_in_user_warning(untrained)}) contain tokens that {encoder.name} was "
            "not trained on; their scores are unreliable. "
            f"{encoder.name} was trained on {encoder.training_domain}. {LARGER_ENCODER_HINT}",
            stacklevel=3,
        )


def warn_of_plain_patches(method: str, encoder: Encoder) -> None:
    """Warn that a method uses plain patches, because the encoder has no self-aware patches.

    Args:
        method: Key of the method.
        encoder: Encoder that does not give access to the attention values of its last layer.
    """
    warnings.warn(
        f"{method} uses plain patches of {encoder.name}, because the attention values of this "
        "encoder are not accessible. Labels are localized less accurately. For self-aware "
        "patches, use an encoder with a ViT or CLIP ResNet, such as ViT-B-16/openai.",
        stacklevel=3,
    )


def warn_out_of_distribution(
    encoder: Encoder, method: Method, vector_sum: Tensor, n_images: int
) -> None:
    """Warn if images are out of distribution for the encoder.

    If the method sets an image size, there is no warning, because the OOD score is calibrated only
    for the default image size of the encoder.

    Args:
        encoder: Encoder of the images.
        method: Method of the recognizer.
        vector_sum: Sum of the pooled vectors of all images, ``(d,)``. The OOD score depends only on
            the mean and the number of images.
        n_images: Number of images, >= 1.
    """
    if method.image_size:
        return
    mean = vector_sum / n_images
    score = encoder.ood_score(mean.expand(min(n_images, MAX_OOD_SET_SIZE), -1))
    if score > OOD_LIMIT:
        warnings.warn(
            f"These {n_images} images are out of distribution for {encoder.name} (OOD score "
            f"{score:.1f}, limit {OOD_LIMIT}). {encoder.name} was trained on "
            f"{encoder.training_domain}. {LARGER_ENCODER_HINT}",
            stacklevel=3,
        )


def warn_skipped_images(
    skipped: Sequence[SkippedImage], n_images: int, what: str = "labelled images"
) -> None:
    """Warn if images cannot be read.

    Args:
        skipped: Images that cannot be read, each with the reason.
        n_images: Number of all images.
        what: Name of the images in the message.
    """
    if skipped:
        reasons = "; ".join(f"{image.path}: {image.reason}" for image in skipped[:3])
        more = "; …" if len(skipped) > 3 else ""
        warnings.warn(
            f"{len(skipped)} of {n_images} {what} cannot be read and {_verb(skipped, 'is', 'are')} "
            f"left out: {reasons}{more}",
            stacklevel=3,
        )


def warn_dropped_calibration(method: str) -> None:
    """Warn that the calibration is dropped, because other labels change the scores of a method."""
    warnings.warn(
        f"The calibration is dropped: with {method} and its settings, the scores of a label depend "
        "on the other labels. To obtain probabilities, calibrate again with the new labels.",
        stacklevel=4,
    )


def warn_unused_labels(method: str, source: object) -> None:
    """Warn if ``source`` has labels, but the method is fitted without labels."""
    if isinstance(source, LabelledImages | LabelledFeatures) and len(source.names):
        warnings.warn(
            f"{method} is fitted without labels, so the labels of "
            f"{format_count(len(source), 'image')} are ignored. Use the labels to calibrate, or "
            "use a method that is fitted on labels.",
            stacklevel=5,
        )


def warn_few_steps(run: Run, n_images: int) -> None:
    """Warn if self-training has too few images or epochs for an accurate student."""
    steps = math.ceil(n_images / run.batch_size) * run.epochs
    if run.teacher and steps < MIN_STUDENT_STEPS:
        warnings.warn(
            f"{run.method.name} makes only {steps} optimizer steps with "
            f"{format_count(n_images, 'image')}; at least {MIN_STUDENT_STEPS} steps are "
            f"recommended. Give more images, increase epochs (now {run.epochs}), or use the "
            f"teacher: method.name={run.teacher.name}.",
            stacklevel=5,
        )


def warn_unannotated_labels(names: Sequence[str], known: Flags) -> None:
    """Warn if a label has no known target in the annotations."""
    unannotated = [name for name, column in zip(names, known.T, strict=True) if not column.any()]
    if unannotated:
        warnings.warn(
            f"{len(unannotated):,} of {format_count(len(names), 'label')} "
            f"({_first_names_in_user_warning(unannotated)}) {_verb(unannotated, 'has', 'have')} no "
            "known target in the annotations.",
            stacklevel=3,
        )


def warn_labels_without_positives(names: Sequence[str], targets: Tensor, known: Tensor) -> None:
    """Warn if no training image is positive for a label that has known targets.

    Args:
        names: Labels, length c.
        targets: Targets in [0, 1] of n images, ``(n, c)``; at least 0.5 is positive.
        known: True where the target is known, ``(n, c)``.
    """
    has_no_positive = known.any(dim=0) & ~(known & (targets >= 0.5)).any(dim=0)
    without = [name for name, none in zip(names, has_no_positive.tolist(), strict=True) if none]
    if without:
        warnings.warn(
            f"{len(without):,} of {format_count(len(names), 'label')} "
            f"({_first_names_in_user_warning(without)}) {_verb(without, 'has', 'have')} no "
            "positive image, so the fit uses only negative images.",
            stacklevel=4,
        )


def warn_targets_without_contrast(targets: Tensor, known: Tensor) -> None:
    """Warn if only one training image has known targets, or if all known targets are positive.

    Args:
        targets: Targets in [0, 1] of n images, ``(n, c)``; at least 0.5 is positive.
        known: True where the target is known, ``(n, c)``.
    """
    n_known = int(known.any(dim=1).sum())
    if n_known == 1:
        text = "Only 1 training image has known targets. Annotate more images."
    elif n_known and bool((targets >= 0.5)[known].all()):
        text = (
            f"All known targets of {n_known} training images are positive, so the fit has no "
            "negative image of any label. Annotate images that do not show these labels. For XMP "
            "sidecars, remove --missing unknown."
        )
    else:
        return
    warnings.warn(text, stacklevel=4)


def warn_labels_without_texts(names: Sequence[str], targets: Array) -> None:
    """Warn if no text mentions a label.

    Args:
        names: Labels, length c.
        targets: Targets of n texts, ``(n, c)``.
    """
    unmentioned = [name for name, column in zip(names, targets.T, strict=True) if not column.any()]
    if unmentioned:
        warnings.warn(
            f"{len(unmentioned):,} of {format_count(len(names), 'label')} "
            f"({_first_names_in_user_warning(unmentioned)}) {_verb(unmentioned, 'is', 'are')} not "
            f"mentioned in any text and {_verb(unmentioned, 'is', 'are')} learned only from "
            "sentences of prompt templates.",
            stacklevel=4,
        )


def _verb(items: Sequence[object], singular: str, plural: str) -> str:
    """Return the verb in the singular for one item, and otherwise in the plural."""
    return singular if len(items) == 1 else plural


def _first_names_in_user_warning(names: Sequence[str]) -> str:
    """Return the first five names, separated by commas."""
    return ", ".join(names[:5]) + (" …" if len(names) > 5 else "")


def warn_cut_captions(encoder: Encoder, captions: Sequence[str]) -> None:
    """Warn if captions are cut because they are longer than the context of the text tower."""
    n_cut_tokens = [count for count in encoder.count_cut_tokens(captions) if count]
    if n_cut_tokens:
        warnings.warn(
            f"{len(n_cut_tokens):,} of {format_count(len(captions), 'caption')} "
            f"{_verb(n_cut_tokens, 'is', 'are')} longer than the context of {encoder.name}; up to "
            f"{max(n_cut_tokens)} tokens of a caption are cut. Shorten the captions, or use an "
            "encoder with a longer context.",
            stacklevel=3,
        )
