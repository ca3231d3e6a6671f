import json
import re
from dataclasses import replace
from math import nan

import pytest

from surelabel import metrics
from surelabel.errors import InputError
from surelabel.evaluation import open_vocabulary
from surelabel.report import Unseen, report
from surelabel.report.unseen import (
    ranking_table,
    reliability_of_sides,
    sides_table,
    unseen_plots,
)

NEW = ["label 5", "label 6", "label 7"]


@pytest.fixture
def opened(judged):
    """An evaluation of eight names, the last three of them unseen."""

    def made(**settings):
        found = judged(80, **settings)
        said = found.predictions
        p = said.probabilities if said.calibration else None
        of = open_vocabulary(said.scores, found.targets, range(5), found.known, p)
        return found, Unseen(NEW, of)

    return made


def cells(table, title):
    row = re.search(rf'<th scope="row">{re.escape(title)}</th>(.*?)</tr>', table)
    return re.findall("<td>(.*?)</td>", row[1])


def test_each_number_stands_beside_the_most_there_is(opened):
    found, unseen = opened()
    zsl, gzsl = unseen.found.zsl, unseen.found.gzsl
    expected = [zsl.found.best[3].f1, zsl.ceiling.best[3].f1, gzsl.found.best[3].f1]
    shown = cells(ranking_table(unseen.found), "F1 at 3")
    assert shown[:3] == [f"{100 * value:.1f} %" for value in expected]
    assert shown[3] == f"{100 * gzsl.ceiling.best[3].f1:.1f} %"
    present = found.targets[:, 5:].any(axis=1).sum() if found.known.all() else 0
    assert cells(ranking_table(unseen.found), "Pictures") == [str(present), "", "80", ""]


def test_seen_stands_beside_unseen_each_with_its_own_chance(opened):
    _, unseen = opened()
    side, floor = unseen.found.sides["ece"], unseen.found.floor["ece"]
    expected = [side["seen"], floor["seen"], side["unseen"], floor["unseen"]]
    assert cells(sides_table(unseen.found), "ECE") == [
        *(f"{100 * v:.2f}" for v in expected),
        "points",
    ]


def test_the_bins_of_both_sides_are_of_their_own_decisions(opened):
    found, unseen = opened(unknown=0.2)
    sides = reliability_of_sides(found, unseen)
    p = found.predictions.probabilities
    for side, columns in (("seen", slice(0, 5)), ("unseen", slice(5, 8))):
        own = [a[:, columns] for a in (p, found.targets, found.known)]
        assert sides[side].counts.sum() == own[2].sum()
        gaps = abs(sides[side].confidence - sides[side].accuracy) * sides[side].counts
        assert gaps[sides[side].counts > 0].sum() / own[2].sum() == pytest.approx(metrics.ece(*own))


def test_the_diagram_names_both_errors(opened, pixels):
    found, unseen = opened()
    (plot,) = unseen_plots(found, unseen)
    assert pixels(plot.png).shape[2] == 3
    errors = unseen.found.sides["ece"]
    assert f"unseen names: ECE {100 * errors['unseen']:.2f} points" in plot.alt
    assert f"seen names: ECE {100 * errors['seen']:.2f} points" in plot.alt


def test_scores_alone_have_tables_and_no_diagram(opened, tmp_path):
    found, unseen = opened(calibrated=False)
    assert not unseen_plots(found, unseen)
    text = report(found, tmp_path / "r", unseen=unseen).read_text()
    assert "Names that nothing was learnt of" in text
    assert not (tmp_path / "r" / "plots" / "reliability_unseen.png").exists()


def test_a_report_has_the_section_the_file_and_the_numbers(opened, tmp_path):
    found, unseen = opened()
    text = report(found, tmp_path / "r", unseen=unseen).read_text()
    assert '<a href="#unseen">' in text
    assert (tmp_path / "r" / "plots" / "reliability_unseen.png").stat().st_size > 10_000
    held = json.loads((tmp_path / "r" / "evaluation.json").read_text())["unseen"]
    assert held["names"] == NEW
    assert held["zsl"]["found"]["best"]["3"]["f1"] == unseen.found.zsl.found.best[3].f1
    assert set(held["reliability"]) == {"seen", "unseen"}
    assert "Unseen: label 5, label 6, label 7." in text
    again = report(found, tmp_path / "r").read_text()
    assert "#unseen" not in again


def test_what_is_undefined_is_a_null(opened, tmp_path):
    found, unseen = opened()
    sides = {**unseen.found.sides, "ece": {"seen": nan, "unseen": 0.1}}
    bad = Unseen(NEW, replace(unseen.found, sides=sides))
    report(found, tmp_path / "r", unseen=bad)
    held = json.loads((tmp_path / "r" / "evaluation.json").read_text())["unseen"]
    assert held["sides"]["ece"] == {"seen": None, "unseen": 0.1}


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "Got 0"),
        (["label 1", "zebra"], "Got 2, among them 'zebra', which was not"),
        ([f"label {i}" for i in range(8)], "and not all. Got 8"),
    ],
)
def test_names_that_were_not_judged_are_refused(opened, tmp_path, names, says):
    found, unseen = opened()
    with pytest.raises(InputError, match=re.escape(says)):
        report(found, tmp_path / "r", unseen=replace(unseen, names=names))
    assert not (tmp_path / "r").exists()
