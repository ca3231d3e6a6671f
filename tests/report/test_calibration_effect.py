import re

from surelabel.metrics import reliability_bins
from surelabel.report.calibration_effect import (
    calibration_effect_table,
    plot_calibration_effect,
)


def test_the_table_holds_both_columns_in_the_order_of_all_tables(whole):
    found = whole()
    table = calibration_effect_table(found.summary, found.uncalibrated.summary)
    order = re.findall(r'<th scope="row">([^<]*)<', table)
    assert order == ["Brier skill", "Log loss", "ECE", "ACE", "MCE"]
    row = re.search(r"<tr><th[^>]*>ECE<.*?</tr>", table)[0]
    pair = (found.uncalibrated.summary["ece"], found.summary["ece"])
    assert re.findall(r"<td>([^<]*)</td>", row) == [f"{100 * e:.2f}" for e in pair]


def test_an_undefined_uncalibrated_metric_is_shown_as_undefined(whole):
    found = whole()
    found.uncalibrated.summary["mce"] = float("nan")
    row = re.search(
        r"<tr><th[^>]*>MCE<.*?</tr>",
        calibration_effect_table(found.summary, found.uncalibrated.summary),
    )[0]
    assert re.findall(r"<td>([^<]*)</td>", row)[0] == "not defined"


def test_the_alternative_text_contains_both_errors(whole):
    found = whole()
    bins = [
        reliability_bins(p, found.targets, found.known, bins=15)
        for p in (found.predictions.probabilities, found.uncalibrated.probabilities)
    ]
    summaries = {"summary": found.summary, "uncalibrated_summary": found.uncalibrated.summary}
    alt = plot_calibration_effect(*bins, **summaries, note="").alt
    assert f"Uncalibrated: ECE {100 * found.uncalibrated.summary['ece']:.2f} points" in alt
    assert f"calibrated: ECE {100 * found.summary['ece']:.2f} points" in alt


def test_metrics_that_the_calibrator_makes_worse_are_named():
    before = {"brier_skill": 0.32, "log_loss": 0.14, "ece": 0.02, "ace": float("nan")}
    after = {"brier_skill": 0.31, "log_loss": 0.13, "ece": 0.03, "ace": 0.1}
    note = "On the evaluated images, the calibrator makes these metrics worse: Brier skill, ECE."
    assert note in calibration_effect_table(after, before)
    assert "metrics worse" not in calibration_effect_table(before, before)
