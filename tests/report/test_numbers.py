import json
from dataclasses import replace

import numpy as np

from surelabel.records import Skipped
from surelabel.report.binning import binned
from surelabel.report.claims import ALONE, claimed
from surelabel.report.numbers import numbers
from surelabel.report.queries import Retrieval


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def read(found, before=None, retrieval=None):
    return json.loads(numbers(found, before, retrieval), parse_constant=refuse)


def test_what_is_undefined_is_null(judged):
    found = judged(names=["lion", "bear"])
    found.per_class["average_precision"][:] = [0.5, np.nan]
    found.summary["brier_skill"] = float("-inf")
    held = read(found)
    assert held["per_class"]["average_precision"] == [0.5, None]
    assert held["summary"]["brier_skill"] is None


def test_every_number_comes_back_exactly(judged):
    found, before = judged(), judged(claimed=2.0)
    held = read(found, before)
    assert held["summary"] == found.summary
    assert held["floor"] == found.floor
    assert held["before"]["summary"] == before.summary
    assert held["names"] == list(found.predictions.names)
    assert held["pictures"] == 60
    assert held["decisions"] == 480
    assert sum(held["reliability"]["counts"]) == 480
    assert held["per_class"]["positives"] == found.targets.sum(axis=0).tolist()
    for metric, values in found.per_class.items():
        assert np.array_equal(np.array(held["per_class"][metric], float), values, equal_nan=True)


def test_scores_have_no_reliability(judged):
    held = read(judged(calibrated=False))
    assert held["reliability"] is None
    assert held["calibration"] is None
    assert held["before"] is None
    for part in (
        "before_calibration",
        "risk_coverage",
        "budget",
        "other_bins",
        "retrieval",
        "alone",
        "labels",
    ):
        assert held[part] is None
    assert held["intervals"] == {}


def test_every_part_of_the_page_is_in_the_numbers(whole):
    found = whole(labels=3)
    retrieval = Retrieval((1, 2), (0.5, float("nan")), (3, 0), (0, 9))
    held = read(found, retrieval=retrieval)
    assert held["before_calibration"]["summary"] == found.before.summary
    assert held["before_calibration"]["reliability"]["bins"].startswith("15 of equal width")
    assert held["intervals"]["ece"]["value"] == found.intervals["ece"].value
    assert held["budget"]["sizes"] == [25, 50]
    assert held["budget"]["enough"] == found.budget.enough
    assert held["risk_coverage"]["coverage"][-1] == 1
    assert held["other_bins"] == binned(found)
    assert held["alone"]["calibration"] == found.alone.calibration
    assert held["labels"]["encoder alone"]["per_picture"] == claimed(found)[ALONE].counts.means
    assert sum(held["labels"]["this recognizer"]["histograms"]["present"]) == 120
    assert np.shape(held["reliability_per_class"]["honest_from"]) == (3, 15)
    assert held["retrieval"]["precision"] == [0.5, None]


def test_skipped_pictures_and_examples_are_named(judged):
    found = judged()
    skipped = [Skipped("bad.jpg", "empty file")]
    held = read(replace(found, predictions=replace(found.predictions, skipped=skipped)))
    assert held["skipped"] == [{"path": "bad.jpg", "reason": "empty file"}]
    assert [e["path"] for e in held["worst"]] == [e.path for e in found.worst]
    assert held["worst"][0]["tags"][0]["label"] == found.worst[0].tags[0].name
