import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel import mapped_arrays
from surelabel.errors import InputError
from surelabel.evaluation import evaluate_predictions
from surelabel.evaluation.confidence_intervals import evaluation_confidence_intervals
from surelabel.metrics import (
    BINARY_TARGET_METRICS,
    PROBABILITY,
    PROBABILITY_PER_CLASS,
    ConfidenceInterval,
    brier,
)
from surelabel.metrics.ranking import tied_average_precision
from surelabel.records import LabelledImages, Predictions

RNG = np.random.default_rng(0)
NAMES = ["dog", "cat", "tree"]


@pytest.fixture
def labelled():
    targets = RNG.integers(0, 2, (40, 3)).astype(float)
    targets[0] = np.nan
    return LabelledImages([f"{i}.jpg" for i in range(40)], NAMES, targets)


def predictions(labelled, logits, calibration="platt"):
    return Predictions(
        labelled.paths, NAMES, logits.astype(np.float32), logits.astype(np.float32), calibration
    )


def test_a_perfect_recognizer_is_perfect(labelled):
    found = evaluate_predictions(predictions(labelled, 80.0 * labelled.targets - 40), labelled)
    assert found.summary["mean_average_precision"] == 1
    assert found.summary["brier_skill"] == pytest.approx(1)
    assert found.summary["ece"] == pytest.approx(0, abs=1e-9)


def test_the_repr_has_the_main_metrics_with_their_intervals(labelled):
    found = evaluate_predictions(predictions(labelled, 4.0 * labelled.targets - 2), labelled)
    found = replace(found, intervals={"ece": ConfidenceInterval(0.1, 0.0625, 0.125)})
    lines = repr(found).splitlines()
    assert lines[0] == "Evaluation(images=40, labels=3, calibration='platt')"
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert list(rows) == ["mean_average_precision", "brier_skill", "log_loss", "ece"]
    assert rows["mean_average_precision"] == ["1"]
    ece, floor = found.summary["ece"], found.noise_floor["ece"]
    assert rows["ece"] == [f"{ece:.4g}", "0.0625", "to", "0.125", f"{floor:.4g}"]
    assert "<td>0.0625 to 0.125</td>" in found._repr_html_()


def test_the_repr_of_an_uncalibrated_evaluation_has_ranking_metrics_only(labelled):
    found = evaluate_predictions(predictions(labelled, RNG.normal(size=(40, 3)), None), labelled)
    assert "calibration=None" in repr(found)
    assert "ece" not in repr(found)
    assert "mean_average_precision" in found._repr_html_()


def test_without_calibration_there_are_rankings_only(labelled):
    found = evaluate_predictions(predictions(labelled, RNG.normal(size=(40, 3)), None), labelled)
    assert "mean_average_precision" in found.summary
    assert "ece" not in found.summary
    assert found.noise_floor == {}


def test_images_in_another_order_change_nothing(labelled):
    logits = RNG.normal(size=(40, 3))
    order = RNG.permutation(40)
    turned = labelled.take(order)
    first, second = (
        evaluate_predictions(predictions(labelled, logits), labelled),
        evaluate_predictions(predictions(turned, logits[order]), labelled),
    )
    assert first.summary == pytest.approx(second.summary, nan_ok=True)


def test_the_worst_image_is_the_one_most_confidently_wrong(labelled):
    logits = np.where(labelled.targets > 0, 3.0, -3.0)
    logits[7] *= -1
    found = evaluate_predictions(predictions(labelled, logits), labelled)
    assert found.worst_examples[0].path == "7.jpg"
    assert found.worst_examples[0].loss == pytest.approx(np.log1p(np.exp(3.0)), rel=1e-6)


def test_the_best_images_show_two_labels_or_more(labelled):
    found = evaluate_predictions(
        predictions(labelled, np.where(labelled.targets > 0, 3.0, -3.0)), labelled
    )
    row = {p: t for p, t in zip(labelled.paths, labelled.targets, strict=True)}
    assert found.best_examples
    assert all(row[e.path].sum() >= 2 for e in found.best_examples)
    assert not {e.path for e in found.best_examples} & {e.path for e in found.worst_examples}


def test_a_class_without_positives_is_counted_as_undefined(labelled):
    empty = LabelledImages(labelled.paths, NAMES, labelled.targets * [1, 1, 0])
    found = evaluate_predictions(predictions(empty, RNG.normal(size=(40, 3))), empty)
    assert found.undefined_classes["average_precision"] == 1


def test_other_names_or_unlabelled_images_are_refused(labelled):
    made = predictions(labelled, RNG.normal(size=(40, 3)))
    with pytest.raises(InputError, match="same labels in the same order"):
        evaluate_predictions(
            made, LabelledImages(labelled.paths, ["a", "b", "c"], labelled.targets)
        )
    with pytest.raises(InputError, match=r"1 of 40 .* 39\.jpg"):
        evaluate_predictions(made, labelled.take(range(39)))


def test_nothing_known_is_refused(labelled):
    nothing = LabelledImages(labelled.paths, NAMES, np.full((40, 3), np.nan))
    with pytest.raises(InputError, match="At least one target of the predicted images"):
        evaluate_predictions(predictions(nothing, RNG.normal(size=(40, 3))), nothing)


def test_means_of_classes_leave_the_undefined_out_and_have_a_floor_of_their_own(labelled):
    empty = LabelledImages(labelled.paths, NAMES, labelled.targets * [1, 1, 0])
    found = evaluate_predictions(predictions(empty, RNG.normal(size=(40, 3))), empty)
    values = found.per_class["average_precision"]
    assert found.class_means["average_precision"] == pytest.approx(values[:2].mean())
    assert found.class_noise_floor["ece"] > found.noise_floor["ece"] > 0


def test_what_was_before_the_calibrator_is_judged_beside_it(labelled):
    logits = RNG.normal(size=(40, 3))
    found = evaluate_predictions(
        predictions(labelled, logits / 3), labelled, uncalibrated_logits=logits
    )
    alone = evaluate_predictions(predictions(labelled, logits), labelled)
    assert found.uncalibrated.summary == pytest.approx(
        {name: alone.summary[name] for name in found.uncalibrated.summary}, rel=1e-5
    )
    assert evaluate_predictions(predictions(labelled, logits), labelled).uncalibrated is None


def test_nothing_is_before_a_calibration_that_never_was(labelled):
    logits = RNG.normal(size=(40, 3))
    with pytest.raises(InputError, match="require calibrated predictions"):
        evaluate_predictions(
            predictions(labelled, logits, None), labelled, uncalibrated_logits=logits
        )


def calibrated_decisions(n_images, n_labels=20):
    """Return predictions of calibrated log-odds with unequal ranks, and the targets."""
    random = np.random.default_rng(n_images)
    logits = random.normal(size=(n_images, n_labels)).astype(np.float32) - 2
    targets = (random.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    paths, names = [f"{i}.jpg" for i in range(n_images)], [f"label {i}" for i in range(n_labels)]
    return (
        Predictions(paths, names, -np.abs(logits), logits, "isotonic"),
        LabelledImages(paths, names, targets),
    )


def test_the_evaluation_of_arrays_in_files_is_the_same(monkeypatch):
    results = []
    for min_bytes in (2**22, 1):
        monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", min_bytes)
        found = evaluate_predictions(*calibrated_decisions(300))
        results.append((found.summary, found.noise_floor, found.worst_examples))
    assert results[0] == results[1]


def test_an_evaluation_takes_at_most_40_bytes_of_memory_for_each_image_and_label(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 2**15)
    monkeypatch.setattr(tied_average_precision, "SCORES_PER_BLOCK", 2**12)
    peaks, sizes = [], (1000, 3000)
    for n_images in sizes:
        decisions = calibrated_decisions(n_images)
        tracemalloc.start()
        evaluate_predictions(*decisions)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / (20 * (sizes[1] - sizes[0])) <= 40


def test_graded_targets_have_the_metrics_of_graded_targets(labelled):
    graded = LabelledImages(labelled.paths, NAMES, labelled.targets * 0.9)
    logits = RNG.normal(size=graded.targets.shape)
    found = evaluate_predictions(predictions(graded, logits), graded)
    assert found.summary.keys() == PROBABILITY.keys() - BINARY_TARGET_METRICS
    assert found.per_class.keys() == PROBABILITY_PER_CLASS.keys() - BINARY_TARGET_METRICS
    p = expit(logits.astype(np.float32))
    assert found.summary["brier"] == pytest.approx(brier(p, graded.targets, graded.known))
    assert evaluation_confidence_intervals(found).keys() == {"brier_skill", "ece", "log_loss"}


def test_graded_targets_require_calibrated_predictions(labelled):
    graded = LabelledImages(labelled.paths, NAMES, labelled.targets * 0.9)
    logits = RNG.normal(size=graded.targets.shape)
    with pytest.raises(InputError, match="require calibrated predictions; got uncalibrated"):
        evaluate_predictions(predictions(graded, logits, calibration=None), graded)
