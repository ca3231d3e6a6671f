import json
import re
from dataclasses import replace

import pytest

from surelabel.decisions import record_validation
from surelabel.report.json_values import strict_json_value
from surelabel.report.operating_point_table import (
    describe_operating_point_source,
    operating_points_as_json,
    render_operating_point_tables,
)
from surelabel.report.operating_points import POINTS, measure_operating_points

LABELS = "platt on 500 labelled images"


@pytest.fixture
def recorded(judged):
    other = judged(count=150, seed=1)
    record = record_validation(other.predictions.logits, other.targets)
    return replace(judged(count=100), validation_record=record)


def test_the_table_has_a_row_of_each_operating_point_with_its_option(recorded):
    measurements = measure_operating_points(recorded)
    text = render_operating_point_tables(measurements, recorded.predictions.names, LABELS)
    assert re.findall(r"<code>(--[^<]*)</code>", text) == [option for option, *_ in POINTS]
    measured = measurements.points[0]
    row = re.search(r"<tr><th[^>]*>Fixed threshold.*?</tr>", text)[0]
    expected, precision = measured.mean_over_labels("precision")
    assert "<td>50 %</td>" in row
    assert f"<td>{100 * precision:.1f} %" in row
    assert f"expected {100 * expected:.1f} %" in row
    assert f"<td>{measured.labels_per_image:.2f}</td>" in row
    assert "nan" not in text


def test_the_source_of_the_thresholds_is_stated(recorded):
    measurements = measure_operating_points(recorded)
    crossed = measure_operating_points(replace(recorded, validation_record=None))
    text = describe_operating_point_source(measurements, LABELS)
    assert "validation record of the recognizer, which was computed from 150 images" in text
    unlabelled = "platt on pseudo-labels of 150 images without labels"
    assert "not verified" in describe_operating_point_source(measurements, unlabelled)
    assert "5-fold cross-fitting" in describe_operating_point_source(crossed, LABELS)
    assert "optimistic" in describe_operating_point_source(crossed, LABELS)


def test_a_label_that_cannot_reach_the_operating_point_is_counted_and_marked(recorded):
    record = recorded.validation_record
    true_positives = record.true_positives.copy()
    true_positives[2] = 0  # no known positive
    found = replace(recorded, validation_record=replace(record, true_positives=true_positives))
    names = found.predictions.names
    text = render_operating_point_tables(measure_operating_points(found), names, LABELS)
    assert "reached by 7 of 8 labels" in text
    row = re.search(r"<tr><th[^>]*>label 2</th>.*?</tr>", text)[0]
    assert row.count("<td>not reached</td>") == 3


def test_the_json_has_the_threshold_of_each_label(recorded):
    measurements = measure_operating_points(recorded)
    names = recorded.predictions.names
    held = json.loads(json.dumps(strict_json_value(operating_points_as_json(measurements, names))))
    assert held["images"] == 150
    assert held["thresholds_computed_from"] == "validation record of the recognizer"
    assert [point["option"] for point in held["points"]] == [option for option, *_ in POINTS]
    for point, measured in zip(held["points"], measurements.points, strict=True):
        values = [point["per_class"][name]["threshold"] for name in names]
        assert values == measured.thresholds.values.tolist()
        assert point["pooled_recall"]["value"] == measured.pooled_recall.value
        assert point["measured_recall"] == measured.mean_over_labels("recall")[1]
