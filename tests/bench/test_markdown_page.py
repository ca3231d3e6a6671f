from operator import attrgetter

from surelabel.bench.markdown_page import (
    bold_if,
    markdown_list,
    markdown_section,
    markdown_table,
    markdown_table_of_rows,
)
from surelabel.bench.rows import ComparisonRow


def test_a_table_is_markdown():
    assert markdown_table(["", "a"], [["x", "1"]]) == "|  | a |\n| --- | --- |\n| x | 1 |"


def test_a_table_of_rows_has_a_line_for_each_row_and_a_cell_for_each_column():
    rows = [ComparisonRow("x", {"ece": [1.0]}), ComparisonRow("y", {"ece": [2.0]})]
    columns = {"": attrgetter("title"), "a": lambda row: f"{row.mean('ece'):.0f}"}
    expected = markdown_table(["", "a"], [["x", "1"], ["y", "2"]])
    assert markdown_table_of_rows(rows, columns) == expected
    assert markdown_table_of_rows([], columns) == markdown_table(["", "a"], [])


def test_a_section_has_an_empty_line_between_paragraphs_and_none_between_items():
    assert markdown_section(["a", markdown_list(["b", "c"])]) == "a\n\n- b\n- c\n"


def test_only_what_fulfils_the_condition_is_bold():
    assert [bold_if(is_bold, "a") for is_bold in (True, False)] == ["**a**", "a"]
