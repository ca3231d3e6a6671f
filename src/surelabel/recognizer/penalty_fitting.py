"""Fit linear heads with penalties that are chosen by cross-validation on the training images."""

import math
import time
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from surelabel.calibration import assign_folds
from surelabel.config import Run
from surelabel.links import Link
from surelabel.mapped_arrays import mapped_zeros, row_blocks
from surelabel.methods import SelectsPenalties
from surelabel.progress import Progress, report_progress
from surelabel.records import Features
from surelabel.training import (
    ElementLoss,
    LinearHeads,
    fit_linear_heads,
    select_feature_batch_rows,
    select_penalties,
)

MAX_SELECTION_IMAGES = 5000  # more images are sampled; the penalty does not depend on their number
TIMED_IMAGES = 256
PENALTY_WITHOUT_FOLDS = 1.0  # if only one image has a known target
LABELS_PER_BLOCK = 200  # labels whose penalties are chosen at once; limits the memory
MAX_TARGETS_PER_FIT = 2_000_000  # targets need about 50 bytes each; limits the memory


def fit_heads_with_selected_penalties(
    method: SelectsPenalties,
    features: Features,
    targets: Tensor,
    known: Tensor,
    *,
    loss: ElementLoss,
    link: Link,
    seed: int,
    progress: Progress | None = None,
) -> None:
    """Choose the penalty of each label by folds, then fit the heads of a method on all images.

    The penalties are chosen on at most 5,000 images with a known target, sampled with ``seed``. If
    there are fewer images with a known target than folds, each image is a fold. If there is only
    one, all penalties are 1.

    Args:
        method: Initialized method, changed in place.
        features: Features of n training images.
        targets: Targets in [0, 1], ``(n, c)``.
        known: True where the target is known, ``(n, c)``.
        loss: Loss of each score and target.
        link: Link of the loss, or ``Sigmoid`` if the loss has no link.
        seed: Seed of the sample and of the folds.
        progress: Function called with the number of finished blocks of 200 labels and the number of
            blocks.
    """
    vectors = _centred_vectors_in_file(method, features)
    rng = np.random.default_rng(seed)
    has_target = np.flatnonzero(known.any(dim=1).numpy())
    rows = torch.from_numpy(rng.permutation(has_target)[:MAX_SELECTION_IMAGES])
    folds = min(method.penalty_folds, len(rows))
    fold = torch.zeros(len(rows), dtype=torch.int64)
    if folds > 1:
        fold = torch.from_numpy(assign_folds(known[rows].numpy(), folds, rng))
    blocks, heads = torch.arange(targets.shape[1]).split(LABELS_PER_BLOCK), list[LinearHeads]()
    labels_per_fit = max(MAX_TARGETS_PER_FIT // len(targets), 1)
    for number, labels in enumerate(blocks):
        penalties = torch.full((len(labels),), PENALTY_WITHOUT_FOLDS)
        if folds > 1:
            selection = (vectors[rows], targets[rows][:, labels], known[rows][:, labels], fold)
            penalties = select_penalties(*selection, loss=loss, link=link)
        for own, penalty in zip(
            labels.split(labels_per_fit), penalties.split(labels_per_fit), strict=True
        ):
            own_targets, own_known = targets[:, own], known[:, own]
            heads.append(
                fit_linear_heads(vectors, own_targets, own_known, penalty, loss=loss, link=link)
            )
        report_progress(progress, number + 1, len(blocks), "blocks of labels")
    method.set_heads(
        torch.cat([block.weights for block in heads]),
        torch.cat([block.biases for block in heads]),
        torch.cat([block.penalties for block in heads]),
    )


def _centred_vectors_in_file(method: SelectsPenalties, features: Features) -> Tensor:
    """Return the centred vectors of n images, ``(n, d)``; a large array is in a temporary file."""
    pooled = features.pooled
    vectors = mapped_zeros(tuple(pooled.shape), np.float32)
    for rows in row_blocks(vectors):
        block = select_feature_batch_rows(features, torch.arange(rows.start, rows.stop))
        vectors[rows] = method.centred_vectors(block).numpy()
    return torch.from_numpy(vectors)


def expected_penalty_fit_seconds(
    width: int, n_labels: int, n_images: int, *, folds: int, loss: ElementLoss, link: Link
) -> float:
    """Return the expected time of ``fit_heads_with_selected_penalties``, from random vectors.

    The final fit needs about a tenth of the time in which the penalties are chosen.

    Args:
        width: Width of the image vectors.
        n_labels: Number of labels.
        n_images: Number of training images.
        folds: Number of folds.
        loss: Loss of each score and target.
        link: Link of the loss, or ``Sigmoid``.
    """
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(TIMED_IMAGES, width, generator=generator) / math.sqrt(width)
    targets = (vectors @ torch.randn(width, n_labels, generator=generator) > 0).float()
    start = time.perf_counter()
    fold = torch.arange(TIMED_IMAGES) % folds
    select_penalties(vectors, targets, targets >= 0, fold, loss=loss, link=link)
    seconds_per_image = (time.perf_counter() - start) / TIMED_IMAGES
    return seconds_per_image * (min(n_images, MAX_SELECTION_IMAGES) + n_images / 10)


def penalties_description(run: Run, weights: Mapping[str, Tensor]) -> str | None:
    """Return a text with the smallest and the largest chosen penalty, or None without penalties.

    Args:
        run: Run of the fit.
        weights: Weights of the fitted method.

    Example:
        >>> from surelabel.config import load_run
        >>> run = load_run(overrides=["method.name=linear"])
        >>> penalties_description(run, {"penalties": torch.tensor([1.0, 0.1])})
        'penalty per label from 0.1 to 1, chosen by 5-fold cross-validation'
    """
    penalties = weights.get("penalties")
    if penalties is None or not penalties.any():
        return None
    low, high = penalties.min().item(), penalties.max().item()
    values = f"of {low:.2g}" if low == high else f"per label from {low:.2g} to {high:.2g}"
    return (
        f"penalty {values}, chosen by {run.method.settings['penalty_folds']}-fold cross-validation"
    )
