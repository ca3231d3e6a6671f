import re
from dataclasses import replace

import numpy as np

from surelabel.metrics import ConfidenceInterval
from surelabel.records import SkippedImage
from surelabel.report.overview import (
    MetricColumns,
    render_dataset_overview,
    render_overview_headline_metrics,
    render_overview_metric_table,
    render_overview_skipped_images,
    render_overview_undefined_labels,
)


def headlines(found):
    p = found.predictions.probabilities if found.predictions.calibration else None
    return render_overview_headline_metrics(
        found.summary, found.noise_floor, found.targets, found.known, p
    )


def metric_table(found, before=None):
    columns = MetricColumns(
        summary=found.summary,
        class_means=found.class_means,
        noise_floor=found.noise_floor,
        class_noise_floor=found.class_noise_floor,
        intervals=found.intervals,
        before=before and before.summary,
    )
    return render_overview_metric_table(columns)


def undefined_labels(found):
    return render_overview_undefined_labels(found.undefined_classes, len(found.predictions.names))


def test_the_summary_has_the_number_of_decisions_and_the_calibration(judged):
    found = judged(labels=5, unknown=0.25)
    known = int(found.known.sum())
    calibration = found.predictions.calibration
    text = render_dataset_overview(found.targets, found.known, calibration=calibration, model="")
    assert f"60 images with 5 labels: {known:,} decisions are evaluated" in text
    assert f"Decisions with unknown targets are ignored ({300 - known:,})." in text
    assert "Calibration: platt on 500 labelled images." in text


def test_the_table_shows_the_value_the_value_before_and_the_noise_floor(judged):
    found = judged()
    earlier = replace(found, summary={**found.summary, "ece": 0.1234})
    row = re.search(r"<tr><th[^>]*>ECE<.*?</tr>", metric_table(found, earlier))[0]
    tables = (found.summary, found.noise_floor, found.class_means, found.class_noise_floor)
    value, *others = (f"{100 * table['ece']:.2f}" for table in tables)
    assert re.findall(r"<td>([^<]*)</td>", row) == [value, "12.34", *others]


def test_a_metric_says_its_unit_and_its_settings(judged):
    found = replace(judged(), summary={"ece": 0.1, "precision_at_k": 0.5, "my_own": 2.0})
    table = metric_table(found, None)
    assert "ECE<span> in points, bins = 15</span>" in table
    assert "Precision at k<span> in %, k = 3</span>" in table
    assert "my own" in table


def test_a_metric_that_was_not_judged_before_is_left_blank(judged):
    table = metric_table(judged(), judged(calibrated=False))
    row = re.search(r"<tr><th[^>]*>Log loss<.*?</tr>", table)[0]
    assert re.findall(r"<td>([^<]*)</td>", row)[1] == "–"


def test_the_accuracy_of_high_probabilities_is_the_first_card(judged):
    found = judged(count=400)
    p = found.predictions.probabilities
    sure = [(r, c) for r in range(400) for c in range(8) if p[r, c] >= 0.8 and found.known[r, c]]
    right = sum(found.targets[r, c] for r, c in sure) / len(sure)
    first, *others = headlines(found).split('class="card soft"')[1:]
    assert f"{100 * right:.1f} %" in first
    text = f"among the {len(sure):,} decisions with a probability of 80 % or more"
    assert text in first
    low, high = re.search(r"95 % interval: ([\d.]+) to ([\d.]+) %", first).groups()
    assert float(low) < 100 * right < float(high)
    assert "mAP" in others[0]


def test_decisions_without_an_error_have_an_interval_below_one(judged):
    found = judged(count=400)
    found.targets[found.predictions.probabilities >= 0.8] = 1
    first = headlines(found).split('class="card soft"')[1]
    assert "100.0 %" in first
    assert re.search(r"\(95 % interval: 9\d\.\d to 100\.0 %\)", first)


def test_a_recognizer_without_high_probabilities_can_be_shown(judged):
    assert "No probability is 80 % or more" in headlines(judged(claimed=0.0))


def test_a_random_ranking_reaches_the_mean_prevalence_of_labels_with_positives(judged):
    found = judged(labels=4)
    found.targets[:] = np.arange(60)[:, None] < [6, 12, 0, 60]
    share = (6 / 60 + 12 / 60 + 1) / 3
    assert f"A random ranking has an mAP of about {100 * share:.1f} %" in headlines(found)


def test_undefined_labels_are_counted(judged):
    found = replace(judged(), undefined_classes={"average_precision": 3, "ece": 0})
    assert "Average precision for 3" in undefined_labels(found)
    assert "ECE" not in undefined_labels(found)
    assert not undefined_labels(replace(found, undefined_classes={"ece": 0}))


def test_images_that_were_skipped_are_named_with_the_reason(judged):
    found = judged()
    skipped = [SkippedImage(f"bad/{i}.jpg", "truncated file") for i in range(60)]
    found = replace(found, predictions=replace(found.predictions, skipped=skipped))
    text = render_overview_skipped_images(found.predictions.skipped)
    assert "60 images could not be read" in text
    assert "bad/0.jpg</code> — truncated file" in text
    assert "and 10 more" in text
    assert not render_overview_skipped_images(judged().predictions.skipped)


def test_an_interval_stands_below_its_value_where_there_is_one(judged):
    found = replace(judged(), intervals={"ece": ConfidenceInterval(0.02, 0.0123, 0.0345)})
    table = metric_table(found, None)
    assert "value, 95 % interval" in table
    row = re.search(r"<tr><th[^>]*>ECE<.*?</tr>", table)[0]
    assert '<div class="interval">1.23 to 3.45</div></td>' in row
    assert "interval" not in re.search(r"<tr><th[^>]*>MCE<.*?</tr>", table)[0]
    nothing = replace(found, intervals={"ece": ConfidenceInterval(0.02, np.nan, np.nan)})
    assert '<div class="interval">not defined</div>' in metric_table(nothing, None)


def test_metrics_that_few_ask_for_are_folded_away(judged):
    found = replace(judged(), summary={"ece": 0.1, "adaptive_ece": 0.2, "my_own": 1.0})
    open_, folded = metric_table(found, None).split("<details")
    assert "1 more metric" in folded
    assert "Adaptive ECE" in folded
    assert "my own" in open_
