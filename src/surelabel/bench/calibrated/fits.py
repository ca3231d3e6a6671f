"""Fit linear heads on samples of the training images, with cached scores."""

from typing import Any

import numpy as np
import torch

from surelabel.arrays import Array
from surelabel.bench.feature_splits import FeatureSplits
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Run
from surelabel.encoders import load_encoder
from surelabel.features import normalize_precomputed_vectors
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.records import Features, LabelledFeatures
from surelabel.training import feature_batch_tensors

TRAIN_SHARE = 0.8  # share of the training images that is sampled for each seed


def calibrated_fit_scores(
    cache: ResultCache, dataset: FeatureSplits, run: Run, *, seed: int
) -> tuple[Array, Array]:
    """Fit a linear head on 80 % of the training images and return validation and test scores.

    Args:
        cache: Cache of the scores.
        dataset: Features and targets.
        run: Configuration of the head.
        seed: Seed with which the training images are sampled.

    Returns:
        Scores of the validation images and of the test images, each ``(n, c)`` for n images and c
        labels.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """

    def compute() -> dict[str, Any]:
        encoder, train = load_encoder(dataset.encoder), dataset.train
        n_images = round(TRAIN_SHARE * len(train))
        rows = np.sort(np.random.default_rng(seed).permutation(len(train))[:n_images])
        method = fit_recognizer_method(
            run, encoder, train.names, _calibrated_fit_training_data(train.take(rows))
        )
        with torch.no_grad():
            return {
                name: method(_calibrated_fit_features(split)).numpy()
                for name, split in splits.items()
            }

    splits = {"validation": dataset.validation, "test": dataset.test}
    shapes = {name: split.targets.shape for name, split in splits.items()}
    scores = cache.load_or_compute_arrays(
        dataset.fingerprint, run, seed, shapes=shapes, compute=compute
    )
    return scores["validation"], scores["test"]


def _calibrated_fit_training_data(split: LabelledFeatures) -> FittingData:
    targets, known = feature_batch_tensors(split.targets, split.known)
    return FittingData(list(split.paths), _calibrated_fit_features(split), targets, known)


def _calibrated_fit_features(split: LabelledFeatures) -> Features:
    width = split.features.shape[1]
    return normalize_precomputed_vectors(split.features, width=width).features
