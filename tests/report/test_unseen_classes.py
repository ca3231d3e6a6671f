import json
import re
from dataclasses import replace
from math import nan

import numpy as np
import pytest

from surelabel import metrics
from surelabel.errors import InputError
from surelabel.evaluation import evaluate_unseen_classes
from surelabel.report import UnseenClasses, report
from surelabel.report.plots import unseen_section_plots
from surelabel.report.unseen_classes import (
    render_unseen_classes_metric_table,
    render_unseen_classes_ranking_table,
    unseen_classes_report_reliability,
)

NEW = ["label 5", "label 6", "label 7"]


@pytest.fixture
def opened(judged):
    """An evaluation of eight names, the last three of them unseen."""

    def made(**settings):
        found = judged(80, **settings)
        said = found.predictions
        p = said.probabilities if said.calibration else None
        of = evaluate_unseen_classes(said.scores, found.targets, range(5), found.known, p)
        return found, UnseenClasses(NEW, of)

    return made


def cells(table, title):
    row = re.search(rf'<th scope="row">{re.escape(title)}</th>(.*?)</tr>', table)
    return re.findall("<td>(.*?)</td>", row[1])


def test_each_number_stands_beside_the_most_there_is(opened):
    found, unseen = opened()
    zsl, gzsl = unseen.results.zsl, unseen.results.gzsl
    expected = [
        zsl.achieved.micro[3].f1,
        zsl.perfect_ranking.micro[3].f1,
        gzsl.achieved.micro[3].f1,
    ]
    shown = cells(render_unseen_classes_ranking_table(unseen.results), "F1 at 3")
    assert shown[:3] == [f"{100 * value:.1f} %" for value in expected]
    assert shown[3] == f"{100 * gzsl.perfect_ranking.micro[3].f1:.1f} %"
    present = found.targets[:, 5:].any(axis=1).sum() if found.known.all() else 0
    assert cells(render_unseen_classes_ranking_table(unseen.results), "Images") == [
        str(present),
        "",
        "80",
        "",
    ]


def test_seen_stands_beside_unseen_each_with_its_own_chance(opened):
    _, unseen = opened()
    side, floor = unseen.results.metrics_by_group["ece"], unseen.results.noise_floor["ece"]
    expected = [side["seen"], floor["seen"], side["unseen"], floor["unseen"]]
    assert cells(render_unseen_classes_metric_table(unseen.results), "ECE") == [
        *(f"{100 * v:.2f}" for v in expected),
        "points",
    ]


def test_the_bins_of_both_sides_are_of_their_own_decisions(opened):
    found, _ = opened(unknown=0.2)
    p = found.predictions.probabilities
    is_unseen = np.arange(8) >= 5
    sides = unseen_classes_report_reliability(p, found.targets, found.known, is_unseen)
    for side, columns in (("seen", slice(0, 5)), ("unseen", slice(5, 8))):
        own = [a[:, columns] for a in (p, found.targets, found.known)]
        assert sides[side].counts.sum() == own[2].sum()
        gaps = abs(sides[side].confidence - sides[side].accuracy) * sides[side].counts
        assert gaps[sides[side].counts > 0].sum() / own[2].sum() == pytest.approx(metrics.ece(*own))


def test_the_diagram_names_both_errors(opened, pixels):
    found, unseen = opened()
    (plot,) = unseen_section_plots(found, unseen)
    assert pixels(plot.png).shape[2] == 3
    errors = unseen.results.metrics_by_group["ece"]
    assert f"unseen classes: ECE {100 * errors['unseen']:.2f} points" in plot.alt
    assert f"seen classes: ECE {100 * errors['seen']:.2f} points" in plot.alt


def test_scores_alone_have_tables_and_no_diagram(opened, tmp_path):
    found, unseen = opened(calibrated=False)
    assert not unseen_section_plots(found, unseen)
    text = report(found, tmp_path / "r", unseen=unseen).read_text()
    assert "Calibration of seen and unseen classes" in text
    assert not (tmp_path / "r" / "plots" / "reliability_seen_unseen.png").exists()


def test_a_report_has_the_section_the_file_and_the_numbers(opened, tmp_path):
    found, unseen = opened()
    text = report(found, tmp_path / "r", unseen=unseen).read_text()
    assert '<a href="#unseen">' in text
    assert (tmp_path / "r" / "plots" / "reliability_seen_unseen.png").stat().st_size > 10_000
    held = json.loads((tmp_path / "r" / "evaluation.json").read_text())["unseen"]
    assert held["names"] == NEW
    assert held["zsl"]["achieved"]["micro"]["3"]["f1"] == unseen.results.zsl.achieved.micro[3].f1
    assert set(held["reliability"]) == {"seen", "unseen"}
    assert "Unseen classes: label 5, label 6, label 7." in text
    again = report(opened(calibrated=False)[0], tmp_path / "r").read_text()
    assert "#unseen" not in again


def test_what_is_undefined_is_a_null(opened, tmp_path):
    found, unseen = opened()
    sides = {**unseen.results.metrics_by_group, "ece": {"seen": nan, "unseen": 0.1}}
    bad = UnseenClasses(NEW, replace(unseen.results, metrics_by_group=sides))
    report(found, tmp_path / "r", unseen=bad)
    held = json.loads((tmp_path / "r" / "evaluation.json").read_text())["unseen"]
    assert held["metrics_by_group"]["ece"] == {"seen": None, "unseen": 0.1}


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "got 0 labels"),
        (["label 1", "zebra"], "got 2 labels, of which 'zebra' was not evaluated"),
        ([f"label {i}" for i in range(8)], "but not all, of the 8 evaluated labels; got 8"),
    ],
)
def test_unseen_classes_that_were_not_evaluated_are_an_error(opened, tmp_path, names, says):
    found, unseen = opened()
    with pytest.raises(InputError, match=re.escape(says)):
        report(found, tmp_path / "r", unseen=replace(unseen, names=names))
    assert not (tmp_path / "r").exists()
