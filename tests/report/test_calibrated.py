import re

import numpy as np

from surelabel.metrics import reliability
from surelabel.report.calibrated import calibration_plot, calibration_table, reliability_before


def test_the_table_holds_both_columns_in_the_order_of_all_tables(whole):
    found = whole()
    table = calibration_table(found, found.before)
    order = re.findall(r'<th scope="row">([^<]*)<', table)
    assert order == ["Brier skill", "Log loss", "ECE", "ACE", "MCE"]
    row = re.search(r"<tr><th[^>]*>ECE<.*?</tr>", table)[0]
    pair = (found.before.summary["ece"], found.summary["ece"])
    assert re.findall(r"<td>([^<]*)</td>", row) == [f"{100 * e:.2f}" for e in pair]


def test_what_is_undefined_before_is_said_so(whole):
    found = whole()
    found.before.summary["mce"] = float("nan")
    row = re.search(r"<tr><th[^>]*>MCE<.*?</tr>", calibration_table(found, found.before))[0]
    assert re.findall(r"<td>([^<]*)</td>", row)[0] == "not defined"


def test_the_words_say_both_errors(whole):
    found = whole()
    alt = calibration_plot(found, found.before).alt
    assert f"Before: ECE {100 * found.before.summary['ece']:.2f} points" in alt
    assert f"after: ECE {100 * found.summary['ece']:.2f} points" in alt


def test_the_bins_before_are_those_of_the_log_odds_before(whole):
    found = whole(unknown=0.2)
    p = 1 / (1 + np.exp(-found.before.logits))
    by_hand = reliability(p, found.targets, found.known)
    assert np.allclose(reliability_before(found, found.before).counts, by_hand.counts)
