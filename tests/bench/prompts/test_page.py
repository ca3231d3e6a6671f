from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench.prompts.page import (
    prompt_gain_verdict,
    prompt_paragraphs,
    prompt_zero_shot_conclusion,
    prompt_zero_shot_table,
    text_metric_correlation,
    text_metric_point,
)
from surelabel.bench.rows import RowDifference
from surelabel.metrics import ConfidenceInterval


@pytest.fixture
def row(results):
    return next(row for row in results.tables["binary"] if row.variant == "CCR")


def difference(value, *, counts=True):
    margin = 0.1 if counts else 10
    interval = ConfidenceInterval(value, value - margin * abs(value), value + margin * abs(value))
    return RowDifference(value, interval, interval)


@pytest.mark.parametrize(
    ("raw", "calibrated", "alone", "verdict"),
    [
        (0.1, 0.1, 0.3, "better before and after calibration"),
        (None, 0.1, 0.3, "better only after calibration"),
        (0.1, None, 0.3, "better before calibration, but the calibrator alone gains as much"),
        (0.1, None, 0.05, "better only before calibration"),
        (0.1, -0.1, 0.3, "better before calibration, but the calibrator alone gains as much"),
        (-0.1, None, 0.3, "worse"),
        (None, -0.1, 0.3, "worse"),
        (None, None, 0.3, "no significant difference"),
    ],
)
@pytest.mark.parametrize("metric", ["brier_skill", "log_loss"])
def test_a_gain_that_calibration_also_gives_is_named(
    results, row, metric, raw, calibrated, alone, verdict
):
    sign = 1 if metric == "brier_skill" else -1
    gains = {"raw": raw, "calibrated": calibrated}
    changed = replace(
        row,
        differences={
            f"{readout}_new_{metric}": difference(sign * (gain or 0.1), counts=gain is not None)
            for readout, gain in gains.items()
        },
    )
    reference = next(r for r in results.tables["binary"] if r.title == "coop, none")
    values = {f"raw_new_{metric}": [0.2], f"calibrated_new_{metric}": [0.2 + sign * alone]}
    with_gain = replace(reference, metrics=reference.metrics | values)
    tables = {"binary": (with_gain, changed)}
    assert prompt_gain_verdict(replace(results, tables=tables), changed, "new", metric) == verdict


def test_the_page_names_both_means_and_the_readouts(results):
    page = "\n\n".join(prompt_paragraphs(results))
    for text in ("ECE (points), A |", "ECE (points), H |", "BCE: before calibration", "NP@5, new"):
        assert text in page
    assert "The CCR paper reports the arithmetic mean of errors under the name HM." in page
    assert "Other domains (coop, BCE, trained on photo)" in page
    without_domains = replace(results, plan=replace(results.plan, domains=()))
    assert "Other domains" not in "\n\n".join(prompt_paragraphs(without_domains))


def test_rows_that_are_trained_on_the_test_distribution_are_marked(results):
    page = "\n\n".join(prompt_paragraphs(results))
    assert "training images of t2i_pal are synthesized for the sampled captions" in page
    assert "The rows *sketch* use training images of another domain." in page
    assert "| t2i_pal (test distribution), BCE | base |" in page
    without = replace(results, plan=replace(results.plan, tuners={"coop": 2}))
    assert not any("are synthesized" in text for text in prompt_paragraphs(without))


def test_the_correlation_is_that_of_numpy_over_rows_with_learned_prompts(results):
    rows = [row for row in results.tables["binary"] if row.setting.tuner != "t2i_pal"]
    learned = [row for row in rows if row.title in ("coop, none", "coop, CCR")]
    changed = [
        replace(
            row,
            metrics=row.metrics
            | {
                f"{group}_{name}_at_5": [value + i]
                for group in ("base", "new")
                for name, value in (
                    ("embedding_divergence", 0.1),
                    ("neighbourhood_preservation", 0.5 - 2 * i),
                )
            },
        )
        for i, row in enumerate(learned)
    ]
    others = [row for row in rows if row not in learned]
    points = [text_metric_point(row, 5) for row in changed]
    expected = np.corrcoef(*zip(*points, strict=True))[0, 1]
    assert text_metric_correlation([*others, *changed], 5) == pytest.approx(expected)
    assert np.isnan(text_metric_correlation(changed[:1] * 3, 5))


def test_the_zero_shot_conclusion_names_each_tuner_by_the_intervals_of_its_map(results):
    reference = next(r for r in results.tables["binary"] if r.title == "coop, none")
    gains = {"coop": 0.02, "kgcoop": -0.02, "dualcoop": None}
    rows = [
        replace(
            reference,
            setting=replace(reference.setting, tuner=tuner),
            zero_shot_differences={
                "raw_new_mean_average_precision": difference(gain or 0.02, counts=gain is not None)
            },
        )
        for tuner, gain in gains.items()
    ]
    sentence = prompt_zero_shot_conclusion(rows, "binary", "new")
    assert sentence == (
        "With BCE, the mAP of new labels is significantly above zero-shot for coop; not "
        "significantly different from zero-shot for dualcoop; significantly below zero-shot for "
        "kgcoop."
    )


def test_only_rows_without_variant_are_compared_with_zero_shot(results):
    rows = results.tables["binary"]
    compared = {row.title for row in rows if row.zero_shot_differences}
    assert compared == {row.title for row in rows if row.title.endswith(", none")}
    zero_shot = next(row for row in rows if row.title == "zero-shot")
    coop = next(row for row in rows if row.title == "coop, none")
    name = "raw_base_mean_average_precision"
    gain = coop.zero_shot_differences[name].value
    assert gain == pytest.approx(coop.mean(name) - zero_shot.mean(name))
    assert f"{100 * gain:+.2f}" in prompt_zero_shot_table(rows)
