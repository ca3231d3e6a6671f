from dataclasses import replace

import pytest

from surelabel.bench.rows import RowDifference
from surelabel.bench.supervised.page import (
    supervised_conclusions,
    supervised_paragraphs,
    supervised_setup,
)
from surelabel.metrics import ConfidenceInterval


def with_difference(results, value, low, high):
    """Return results in which all differences are the same."""
    interval = ConfidenceInterval(value, low, high)
    difference = RowDifference(value, interval, interval)
    differences = tuple(
        replace(d, metrics=dict.fromkeys(d.metrics, difference)) for d in results.differences
    )
    return replace(results, differences=differences)


@pytest.mark.parametrize(
    ("value", "low", "high", "relation"),
    [
        (0.02, 0.01, 0.03, "higher"),
        (-0.02, -0.03, -0.01, "lower"),
        (0.02, -0.01, 0.03, "not clearly different"),
    ],
)
def test_conclusions_follow_from_the_intervals(results, value, low, high, relation):
    sentences = list(supervised_conclusions(with_difference(results, value, low, high)))
    assert sentences[0] == (
        "The mAP of multiple_instance_tiles, compared with that of linear, is "
        f"{relation} with 6 and 12 images."
    )
    assert f"the best label-free method, is {relation} with" in sentences[3]


def test_the_page_has_all_rows_and_no_undefined_value(results):
    page = "\n".join(supervised_paragraphs(results))
    assert "nan" not in page
    assert "inf" not in page.replace("information", "")
    for method in results.plan.methods:
        assert page.count(f"| {method} | ") >= len(results.plan.image_counts)
        assert f"\n| {method} | " in page  # of the numbers of needed images


def test_the_setup_states_seeds_and_equal_samples(results):
    setup = " ".join(supervised_setup(results))
    assert "The 2 seeds determine" in setup
    assert "All samples of 12 images are the same" in setup
    assert "there are 1 seeds" not in setup
    few = replace(results, plan=replace(results.plan, few_seeds_from=12))
    assert "From 12 images on" in " ".join(supervised_setup(few))
