from dataclasses import replace

import pytest

from surelabel.bench.rows import RowDifference
from surelabel.bench.supervised.figures import COLOURS, MARKERS
from surelabel.bench.supervised.page import (
    supervised_conclusions,
    supervised_paragraphs,
    supervised_setup,
)
from surelabel.bench.supervised.plan import SUPERVISED_METHODS
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
    ("value", "low", "high", "sentence"),
    [
        (0.02, 0.01, 0.03, "The mAP of {}, compared with that of {}, is higher with {}."),
        (-0.02, -0.03, -0.01, "The mAP of {}, compared with that of {}, is lower with {}."),
        (
            0.02,
            -0.01,
            0.03,
            "With {2}, the mAP of {0} does not differ significantly from that of {1}.",
        ),
    ],
)
def test_conclusions_follow_from_the_intervals(results, value, low, high, sentence):
    sentences = list(supervised_conclusions(with_difference(results, value, low, high)))
    method, counts = "multiple_instance_tiles", "6 and 12 images"
    assert sentences[0] == sentence.format(method, "linear", counts)
    assert sentences[3] == sentence.format(method, "the best label-free method", counts)


def test_an_advantage_in_all_metrics_is_one_sentence(results):
    def interval(value):
        return ConfidenceInterval(value, value - 0.01, value + 0.01)

    signs = {"mean_average_precision": 1, "brier_skill": 1, "log_loss": -1}
    better = {
        name: RowDifference(0.02 * sign, interval(0.02 * sign), interval(0.02 * sign))
        for name, sign in signs.items()
    }
    differences = tuple(replace(d, metrics=better) for d in results.differences)
    sentences = list(supervised_conclusions(replace(results, differences=differences)))
    assert sentences[0] == (
        "With 6 and 12 images, multiple_instance_tiles has a higher mAP, a higher Brier skill and "
        "a lower log loss than linear. All 95 % intervals of these three differences exclude 0."
    )
    worse = replace(differences[0], metrics=better | {"log_loss": better["brier_skill"]})
    mixed = replace(results, differences=(worse, *differences[1:]))
    sentences = list(supervised_conclusions(mixed))
    assert sentences[2] == (
        "The log loss of multiple_instance_tiles, compared with that of linear, is higher with 6 "
        "images and lower with 12 images."
    )


def test_a_difference_of_one_seed_is_judged_by_its_interval_over_images(results):
    nan = float("nan")
    one_seed, over_images = ConfidenceInterval(0.02, nan, nan), ConfidenceInterval(0.02, 0.01, 0.03)
    difference = RowDifference(0.02, one_seed, over_images)
    differences = tuple(
        replace(d, metrics=dict.fromkeys(d.metrics, difference)) for d in results.differences
    )
    page = "\n".join(supervised_paragraphs(replace(results, differences=differences)))
    assert "The mAP of multiple_instance_tiles, compared with that of linear, is higher" in page
    assert "**2.0 (1.0 to 3.0)**" in page


def test_every_method_has_a_colour_and_a_marker_of_its_own():
    for styles in (COLOURS, MARKERS):
        assert len(set(styles)) == len(styles) >= len(SUPERVISED_METHODS)


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
    assert "All samples of 12 images contain the same images" in setup
    assert "there are 1 seeds" not in setup
    few = replace(results, plan=replace(results.plan, few_seeds_from=12))
    assert "With 12 or more images" in " ".join(supervised_setup(few))
