"""Fit recognizers on the seen classes for each table row, and predict the test images."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.bench.open_vocabulary.plan import (
    KNOWLEDGE_WEIGHT,
    METHOD_NAME,
    PAPER_SETTINGS,
    OpenVocabularyPlan,
    RunChanges,
    open_vocabulary_plan_changes,
)
from surelabel.bench.open_vocabulary.scene_splits import OpenVocabularySplits
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Choice, Run
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.tables import table_entry_settings

SCORES_VERSION = 2  # part of cache keys; scores of version 1 depended on the list of labels
TRAIN_SECONDS, ENCODE_SECONDS = 0.007, 0.006  # processor seconds per image, on one core


@dataclass(frozen=True)
class FittedPredictions:
    """Test predictions of one fitted recognizer.

    Attributes:
        scores: Test scores, seen classes first, ``(n, c)``.
        logits: Test log-odds after Platt scaling with one slope and intercept for all classes, seen
            classes first, ``(n, c)``. This scaling, fitted on the seen classes, is also used if
            ``with_names`` removes the calibration.
        parameters: Number of trained parameters.
        seconds: Processor time of fitting, calibration and prediction, in seconds.
    """

    scores: Array
    logits: Array
    parameters: int
    seconds: float


def run_of_fitted_row(domain: str, changes: RunChanges, plan: OpenVocabularyPlan, seed: int) -> Run:
    """Return the run of a row: recover and match with changed settings, or another method.

    Settings with the default value of the method are omitted, so that rows with the same effective
    settings have equal runs. A method without training has the same run for all seeds.

    Args:
        domain: Domain of the scenes, which determines the weight of the knowledge constraint.
        changes: Changed settings of the row, by section of the run.
        plan: Sizes and settings of the comparison.
        seed: Seed of the run. Methods that do not learn from labels ignore the seed.
    """
    method_settings = {"name": METHOD_NAME} | changes.get("method", {})
    name = method_settings.pop("name")
    if name == METHOD_NAME:
        method_settings = (
            PAPER_SETTINGS | {"knowledge_weight": KNOWLEDGE_WEIGHT[domain]} | method_settings
        )
    defaults = table_entry_settings(METHODS[name])
    method_settings = {
        key: value for key, value in method_settings.items() if value != defaults[key]
    }
    run = Run(
        encoder=Choice(plan.encoder),
        method=Choice(name, method_settings),
        calibrator=Choice("platt"),
    )
    if METHODS[name].learns_from == "labels":
        run = replace(run, seed=seed)
    if name == METHOD_NAME:
        run = replace(run, epochs=plan.epochs)
    return replace(run, loss=Choice(**changes["loss"])) if "loss" in changes else run


def runs_of_fitted_row(
    domain: str, changes: RunChanges, plan: OpenVocabularyPlan, seed: int
) -> list[Run]:
    """Return the runs of a row: one for each seed, or a single run if the method is not trained.

    Args:
        domain: Domain of the scenes: ``photo``, ``sketch`` or ``night``.
        changes: Changed settings of the row, by section of the run.
        plan: Sizes and settings of the comparison.
        seed: Seed of the first run. The other runs use the next seeds.
    """
    seeds = range(seed, seed + plan.seeds)
    runs = [run_of_fitted_row(domain, changes, plan, run_seed) for run_seed in seeds]
    return runs[:1] if runs[0] == runs[-1] else runs


def runs_of_all_fitted_rows(domain: str, plan: OpenVocabularyPlan, seed: int = 0) -> list[Run]:
    """Return the runs of all tables without duplicates.

    Args:
        domain: Domain of the scenes: ``photo``, ``sketch`` or ``night``.
        plan: Sizes and settings of the comparison.
        seed: Seed of the first recognizer of each row. The other recognizers use the next seeds.
    """
    runs = [
        run
        for changes in open_vocabulary_plan_changes()
        for run in runs_of_fitted_row(domain, changes, plan, seed)
    ]
    return [run for position, run in enumerate(runs) if run not in runs[:position]]


def fitted_rows_workload(domain: str, plan: OpenVocabularyPlan) -> str:
    """Return a sentence with the number of recognizers and the expected processor time.

    Args:
        domain: Domain of the scenes: ``photo``, ``sketch`` or ``night``.
        plan: Sizes and settings of the comparison.
    """
    runs = runs_of_all_fitted_rows(domain, plan)
    trained_runs = [run for run in runs if run.method.name == METHOD_NAME]
    train_seconds = sum(run.epochs for run in trained_runs) * plan.train * TRAIN_SECONDS
    n_encoded = len(runs) * (plan.validation + plan.test + plan.train)
    return (
        f"The comparison measures {len(runs)} recognizers. For {len(trained_runs)} of these "
        f"recognizers, recover and match is trained on at most {plan.train:,} images. "
        "The comparison takes about "
        f"{(train_seconds + n_encoded * ENCODE_SECONDS) / 60:.0f} minutes on one core. "
        "To resume an interrupted comparison, run the command again."
    )


def fit_row_on_seen_classes(images: OpenVocabularySplits, run: Run) -> Recognizer:
    """Return a recognizer that is fitted and calibrated on the seen classes.

    Only methods that learn from labels are fitted.

    Args:
        images: Train and validation images.
        run: Configuration of the recognizer.
    """
    recognizer = Recognizer(run, images.vocabulary.seen, encoder=images.encoder)
    if recognizer.method.learns_from == "labels":
        recognizer.fit(images.train)
    return recognizer.calibrate(images.validation)


def predictions_of_fitted_row(
    cache: ResultCache, images: OpenVocabularySplits, run: Run
) -> FittedPredictions:
    """Fit a recognizer on the seen classes and predict all classes of the test images.

    Args:
        cache: Cache of the predictions.
        images: Train, validation and test images.
        run: Configuration of the recognizer.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """

    def compute() -> dict[str, Any]:
        start = time.process_time()
        recognizer = fit_row_on_seen_classes(images, run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # warnings about a removed calibration
            extended = recognizer.with_names(images.vocabulary.names)
        predictions = extended.predict(images.test)
        assert recognizer.calibration is not None  # set by fit_row_on_seen_classes
        raw = extended.logits_of(predictions.scores)
        logits = recognizer.calibration.logits(raw, predictions.features)
        parameters = sum(p.numel() for p in recognizer.method.parameters() if p.requires_grad)
        seconds = time.process_time() - start
        return {
            "scores": predictions.scores,
            "logits": logits.astype(np.float32),
            "cost": [parameters, seconds],
        }

    shape = (len(images.test), len(images.vocabulary.names))
    arrays = cache.load_or_compute_arrays(
        *("predictions", SCORES_VERSION, images.fingerprint, run),
        shapes={"scores": shape, "logits": shape, "cost": (2,)},
        compute=compute,
    )
    parameters, seconds = arrays["cost"].tolist()
    return FittedPredictions(arrays["scores"], arrays["logits"], int(parameters), seconds)
