from dataclasses import replace

import numpy as np
import pytest

from surelabel.decisions import recall_operating_point, record_validation
from surelabel.report.operating_points import POINTS, measure_operating_points


def with_record(found, calibration_images):
    predictions = calibration_images.predictions
    record = record_validation(
        predictions.logits, calibration_images.targets, calibration_images.known
    )
    return replace(found, validation_record=record)


def part(found, rows):
    p = found.predictions
    predictions = replace(p, paths=p.paths[rows], scores=p.scores[rows], logits=p.logits[rows])
    return replace(
        found, predictions=predictions, targets=found.targets[rows], known=found.known[rows]
    )


@pytest.fixture
def recorded(judged):
    """Half of the images, with the validation record of the other half."""
    found = judged(count=600)
    return with_record(part(found, slice(300)), part(found, slice(300, 600)))


def point(measurements, option):
    return next(p for p in measurements.points if p.option == option)


def test_thresholds_of_a_record_do_not_depend_on_the_evaluated_targets(judged):
    calibration_images = judged(count=200, seed=1)
    first = with_record(judged(count=100), calibration_images)
    second = replace(first, targets=1 - first.targets)
    one, other = measure_operating_points(first), measure_operating_points(second)
    for a, b in zip(one.points, other.points, strict=True):
        assert np.array_equal(a.thresholds.values, b.thresholds.values)
        assert a.pooled_recall.value != b.pooled_recall.value
    assert not one.is_cross_fitted
    assert one.n_record_images == 200


def test_the_measured_values_are_those_of_the_thresholds_on_known_targets(judged):
    found = with_record(judged(count=100, unknown=0.3), judged(count=200, seed=1))
    measured = point(measure_operating_points(found), "--recall 0.8")
    thresholds = recall_operating_point(found.validation_record, at_least=0.8)
    is_predicted = thresholds.predict(found.predictions.probabilities) & found.known
    right = (found.targets * is_predicted).sum()
    assert measured.pooled_precision.value == pytest.approx(right / is_predicted.sum())
    assert measured.pooled_recall.value == pytest.approx(right / found.targets[found.known].sum())
    assert measured.labels_per_image == pytest.approx(is_predicted.sum() / 100)
    column = int(is_predicted.sum(axis=0).argmax())
    right_of_label = found.targets[is_predicted[:, column], column]
    assert measured.precision[column] == pytest.approx(right_of_label.mean())
    low, high = measured.pooled_precision.low, measured.pooled_precision.high
    assert low < measured.pooled_precision.value < high


def test_a_fixed_threshold_is_the_same_for_all_labels(recorded):
    measured = point(measure_operating_points(recorded), "--threshold 0.5")
    assert set(measured.thresholds.values) == {0.5}
    probabilities = recorded.predictions.probabilities
    right = recorded.targets[probabilities >= 0.5].mean()
    assert measured.pooled_precision.value == pytest.approx(right)


def test_calibrated_probabilities_reach_the_expected_values(recorded):
    measurements = measure_operating_points(recorded)
    assert [measured.option for measured in measurements.points] == [row[0] for row in POINTS]
    for measured in measurements.points:
        for metric in ("precision", "recall"):
            expected, value = measured.mean_over_labels(metric)
            assert value == pytest.approx(expected, abs=0.08), (measured.option, metric)


def test_without_a_record_no_image_is_measured_at_a_threshold_of_its_targets(judged):
    """Targets at random: the record of the same images would find a precision above chance."""
    found = judged(count=40, labels=30)
    random = np.random.default_rng(5)
    found = replace(found, targets=(random.random(found.targets.shape) < 0.2).astype(float))
    measurements = measure_operating_points(found)
    assert measurements.is_cross_fitted
    measured = point(measurements, "--best-f1")
    same = measured.thresholds.predict(found.predictions.probabilities)
    optimistic = found.targets[same].mean()
    assert measured.pooled_precision.value < optimistic - 0.02
    assert measured.pooled_precision.value == pytest.approx(0.2, abs=0.06)


def test_few_images_without_a_record_have_no_operating_points(judged):
    assert measure_operating_points(judged(count=19)) is None
    assert measure_operating_points(judged(count=20)) is not None
    assert measure_operating_points(judged(calibrated=False)) is None


def test_labels_that_do_not_reach_the_point_are_left_out_of_the_means(recorded):
    measured = point(measure_operating_points(recorded), "--precision 0.9")
    is_reached = measured.thresholds.is_reached.copy()
    is_reached[1:] = False
    one = replace(measured, thresholds=replace(measured.thresholds, is_reached=is_reached))
    assert one.mean_over_labels("recall")[1] == measured.recall[0]
    none = replace(measured, thresholds=replace(measured.thresholds, is_reached=is_reached & False))
    assert np.isnan(none.mean_over_labels("recall")).all()
