import json
import re
from dataclasses import replace

import pytest

from surelabel.bench.calibrated.conclusions import calibration_conclusions
from surelabel.bench.calibrated.heads import HEADS, LEARNING_RATES, PAIR_WEIGHTS
from surelabel.bench.calibrated.page import calibrated_tables_as_published, calibration_paragraphs
from surelabel.bench.calibrated.plan import COMPARED_ROWS, SENSITIVITY_SETTINGS
from surelabel.bench.comparison import json_value_of_datasets
from surelabel.bench.markdown_page import markdown_section
from surelabel.bench.metric_cells import metric_column_value
from surelabel.metrics import ConfidenceInterval

NOTHING = ConfidenceInterval(0.0, -1.0, 1.0)


@pytest.fixture(scope="module")
def page(results):
    return markdown_section(calibration_paragraphs(results))


def tables(page):
    """Head and lines of each table."""
    found = re.findall(r"(?:^\|.*\n?)+", page, flags=re.MULTILINE)
    return [[line.strip("| ").split(" | ") for line in part.splitlines()] for part in found]


def test_the_page_has_its_parts_in_order(page):
    assert page.startswith("## small\n")
    heads = [lines[0] for lines in tables(page)]
    assert heads[0] == [
        "Brier skill (%)",
        "Log loss (nats)",
        "mAP@y (%)",
        "mAP@x (%)",
        "ACE (points)",
        "MCE (points)",
        "ECE (points)",
        "ECE of candidates (points)",
    ]
    assert heads[1][0] == "Brier skill (points)"
    assert heads[2] == ["mAP (%) of queries of length", "1", "2", "3"]
    assert heads[3][:2] == ["Brier skill (%)", "Log loss (nats)"]
    assert heads[4] == ["Learning rate", "Weight decay", "λ of LPR"]


def test_every_row_and_difference_has_a_line(page, results):
    rows, compared, _, sensitivity, chosen = tables(page)
    assert [line[0].strip("*") for line in rows[2:]] == [row.title for row in results.rows]
    assert [line[0] for line in compared[2:]] == [f"{a} − {b}" for a, b in COMPARED_ROWS]
    assert len(sensitivity) == 2 + sum(map(len, SENSITIVITY_SETTINGS.values())) + len(PAIR_WEIGHTS)
    assert [line[0] for line in chosen[2:]] == [head.title for head in HEADS.values()]


def test_bold_rows_are_those_near_the_best(page, results):
    lines = tables(page)[0][2:]
    assert {t.strip("*") for t, *_ in lines if t.startswith("**")} == results.near_best


def test_chance_stands_in_brackets_where_there_is_a_floor(page):
    for _, *cells in tables(page)[0][2:]:
        assert [("[" in cell) for cell in cells] == [False] * 4 + [True] * 4


def test_bold_differences_leave_out_0(page):
    for _, *cells in tables(page)[1][2:]:
        for part in " / ".join(cells).split(" / "):
            low, high = map(float, re.search(r"\((\S+) to (\S+)\)", part).groups())
            assert low * high >= 0 or not part.startswith("**")


def test_differences_of_shares_are_points_not_percent(page):
    assert "%" not in "".join(cell for line in tables(page)[1] for cell in line)


def test_the_goal_is_computed(results):
    first = next(iter(calibration_conclusions(results)))
    spa, asy = (results.row(title).mean("ace") for title in ("SPA", "ASY"))
    assert f"The ACE of ASY with a sigmoid is {asy / spa:.1f} times the ACE of SPA" in first
    values = f"{metric_column_value(asy, 'ace')} and {metric_column_value(spa, 'ace')}"
    assert f"({values} points)" in first


def with_row(results, title, metric, value):
    rows = [
        replace(row, metrics=row.metrics | {metric: [value]}) if row.title == title else row
        for row in results.rows
    ]
    return replace(results, rows=tuple(rows))


@pytest.mark.parametrize(
    ("ace", "precision", "said"),
    [(0.3, 0.5, "The target is reached."), (0.2, 0.5, "not reached"), (0.3, 0.52, "not reached")],
)
def test_the_goal_is_reached_only_with_both_its_halves(results, ace, precision, said):
    given = with_row(results, "SPA", "ace", 0.1)
    given = with_row(given, "SPA", "mean_average_precision", 0.5)
    given = with_row(given, "ASY", "ace", ace)
    given = with_row(given, "ASY", "mean_average_precision", precision)
    assert said in next(iter(calibration_conclusions(given)))


def test_a_difference_is_told_only_where_an_interval_leaves_out_0(results):
    def sentence(seeds, images):
        changed = [
            replace(
                c,
                over_seeds=c.over_seeds | {"ace": seeds},
                over_images=c.over_images | {"ace": images},
            )
            for c in results.comparisons
        ]
        found = calibration_conclusions(replace(results, comparisons=tuple(changed)))
        return next(s for s in found if re.match("The log loss of SPA .* of BCE", s))

    wide, low = ConfidenceInterval(-0.01, -0.03, 0.01), ConfidenceInterval(-0.01, -0.02, -0.005)
    assert "The ACE of SPA does not differ significantly from the ACE of BCE." in sentence(
        wide, wide
    )
    assert "1.00 points lower than the ACE of BCE (both intervals exclude 0)" in sentence(low, low)
    assert "(only one of the two intervals excludes 0)" in sentence(low, wide)


def test_signs_unlike_the_papers_are_named(results):
    def sentence(value):
        own = ConfidenceInterval(value, value - 0.001, value + 0.001)
        neither = {"log_loss": NOTHING, "ace": NOTHING}
        changed = [replace(c, over_seeds=neither) for c in results.comparisons]
        place = [(c.first, c.second) for c in changed].index(("SPA", "BCE"))
        changed[place] = replace(changed[place], over_seeds=neither | {"ace": own})
        found = calibration_conclusions(replace(results, comparisons=tuple(changed)))
        return next(s for s in found if "opposite sign" in s)

    assert sentence(0.02).endswith(": SPA − BCE (published -2.9 to -1.2, measured +2.0).")
    expected = "No significant difference in ACE has the opposite sign in the SPA paper."
    assert sentence(-0.02) == expected


def test_json_is_plain_and_has_no_undefined_numbers(results):
    (value,) = json_value_of_datasets([results])["results"]
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text)["rows"][0]["title"] == "BCE"
    assert json.loads(text)["plan"]["seeds"] == 2
    assert "logits" not in value


def test_undefined_becomes_null(results):
    one = replace(results.rows[0], metrics={"ace": [float("nan")]})
    (value,) = json_value_of_datasets([replace(results, rows=(one,))])["results"]
    assert value["rows"][0]["metrics"]["ace"] == [None]


def test_the_published_tables_are_there():
    text = calibrated_tables_as_published()
    assert text.count("### Published") == 4
    assert "| SPA + LPR | 76.6 | 88.1 | 2.1 | 5.3 |" in text


def test_heads_at_the_end_of_the_step_sizes_are_named(results):
    def sentences(rate):
        rows = [
            replace(row, settings=row.settings | {"learning_rate": rate}) for row in results.rows
        ]
        found = calibration_conclusions(replace(results, rows=tuple(rows)))
        return [s for s in found if s.startswith("The largest learning rate of the grid")]

    assert sentences(max(LEARNING_RATES))[0].startswith(
        "The largest learning rate of the grid was selected for BCE, "
    )
    assert sentences(min(LEARNING_RATES)) == []
