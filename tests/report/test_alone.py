import re
from dataclasses import replace

from surelabel.report.alone import about_alone, alone_table
from surelabel.report.claims import ALONE, NOW, claimed


def cells(table, title):
    row = re.search(rf"<tr><th[^>]*>{title}</th>(.*?)</tr>", table)[1]
    return re.findall(r"<td>([^<]*)</td>", row)


def test_the_table_shows_the_encoder_alone_the_recognizer_and_the_truth(whole):
    found = whole()
    claims, table = claimed(found), alone_table(found)
    expected = [claims[who].counts.means["expected"] for who in (ALONE, NOW)]
    there = found.targets.sum() / len(found.predictions)
    wanted = [f"{value:.2f}" for value in (*expected, there)]
    assert cells(table, "labels a picture, expected") == wanted
    assert cells(table, "mAP")[1:] == [
        f"{100 * found.summary['mean_average_precision']:.1f} %",
        "–",
    ]


def test_an_encoder_without_probabilities_is_ranked_and_not_counted(whole):
    found = whole()
    found = replace(found, alone=replace(found.alone, logits=None, calibration=None))
    table = alone_table(found)
    assert cells(table, "mAP")[0] != "–"
    assert cells(table, "pairs of labels a picture, shown")[0] == "–"
    assert "its labels are not counted" in about_alone(found)


def test_without_another_answer_the_recognizer_stands_beside_the_truth(judged):
    table = alone_table(judged())
    assert "encoder alone" not in table
    assert len(cells(table, "labels a picture, expected")) == 2


def test_scores_are_ranked_only(judged):
    found = replace(judged(calibrated=False), alone=judged(seed=1).predictions)
    table = alone_table(found)
    assert len(cells(table, "mAP by picture")) == 2
    assert "labels a picture" not in table
    assert "nothing calibrated them" in about_alone(found)


def test_one_label_makes_no_pairs(judged):
    table = alone_table(judged(names=["lion"]))
    assert "pairs" not in table
    assert "labels a picture, expected" in table


def test_what_calibrated_the_encoder_alone_is_named(whole):
    assert "Its calibration: platt on 500 labelled pictures." in about_alone(whole())
