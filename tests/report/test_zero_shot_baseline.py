import re
from dataclasses import replace

from surelabel.report.baseline_comparison import (
    BASELINE,
    RECOGNIZER,
    baseline_comparison_ranking_metrics,
    predictions_for_baseline_comparison,
    threshold_labels_for_baseline_comparison,
)
from surelabel.report.zero_shot_baseline import (
    describe_zero_shot_baseline_in_report,
    zero_shot_baseline_report_table,
)


def sources(found):
    return predictions_for_baseline_comparison(found.predictions, found.zero_shot_baseline)


def labels_by_source(found):
    return threshold_labels_for_baseline_comparison(sources(found), found.targets, found.known)


def comparison_table(found):
    metrics = baseline_comparison_ranking_metrics(sources(found), found.targets, found.known)
    return zero_shot_baseline_report_table(sources(found), metrics, labels_by_source(found))


def cells(table, title):
    row = re.search(rf"<tr><th[^>]*>{title}</th>(.*?)</tr>", table)[1]
    return re.findall(r"<td>([^<]*)</td>", row)


def test_the_table_shows_the_baseline_the_recognizer_and_the_ground_truth(whole):
    found = whole()
    claims, table = labels_by_source(found), comparison_table(found)
    expected = [claims[who].counts.means["expected"] for who in (BASELINE, RECOGNIZER)]
    there = found.targets.sum() / len(found.predictions)
    wanted = [f"{value:.2f}" for value in (*expected, there)]
    assert cells(table, "labels per image, expected") == wanted
    assert cells(table, "mAP")[1:] == [
        f"{100 * found.summary['mean_average_precision']:.1f} %",
        "–",
    ]


def test_a_baseline_without_probabilities_is_ranked_and_not_counted(whole):
    found = whole()
    found = replace(
        found, zero_shot_baseline=replace(found.zero_shot_baseline, logits=None, calibration=None)
    )
    table = comparison_table(found)
    assert cells(table, "mAP")[0] != "–"
    assert cells(table, "label pairs per image, predicted")[0] == "–"
    assert "its predicted labels are not counted" in describe_zero_shot_baseline_in_report(
        sources(found)
    )


def test_without_a_baseline_the_recognizer_is_compared_with_the_ground_truth(judged):
    table = comparison_table(judged())
    assert "baseline</th>" not in table
    assert len(cells(table, "labels per image, expected")) == 2


def test_scores_are_ranked_only(judged):
    found = replace(judged(calibrated=False), zero_shot_baseline=judged(seed=1).predictions)
    table = comparison_table(found)
    assert len(cells(table, "mAP by image")) == 2
    assert "labels per image" not in table
    assert "These scores are not calibrated" in describe_zero_shot_baseline_in_report(
        sources(found)
    )


def test_one_label_makes_no_pairs(judged):
    table = comparison_table(judged(names=["lion"]))
    assert "pairs" not in table
    assert "labels per image, expected" in table


def test_the_calibration_of_the_baseline_is_named(whole):
    assert (
        "Calibration of the baseline: platt on 500 labelled images."
        in describe_zero_shot_baseline_in_report(sources(whole()))
    )
