import numpy as np

from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_text import (
    escape_terminal_line,
    format_terminal_table,
    join_lines_for_terminal,
    to_terminal_json_value,
)
from surelabel.errors import DataError


def test_a_table_stands_in_columns():
    assert format_terminal_table(["label", "n"], [["hot dog", 12], ["lion", 3]]) == (
        "label    n\nhot dog  12\nlion     3"
    )


def test_numpy_numbers_are_plain():
    assert to_terminal_json_value({"a": np.float64(0.5), "b": np.arange(2)}) == {
        "a": 0.5,
        "b": [0, 1],
    }


def test_numbers_that_strict_json_does_not_have_are_null():
    values = [np.nan, np.inf, np.array([-np.inf, 1.0])]
    assert to_terminal_json_value(values) == [None, None, [None, 1.0]]


def test_one_line_keeps_spaces_inside_a_line():
    assert join_lines_for_terminal("a  path.jpg is\n   gone") == "a  path.jpg is gone"


def test_line_breaks_of_a_path_do_not_forge_lines_of_a_table(capsys):
    assert format_terminal_table(["path"], [["a\nb\tc"]]) == "path\na\\u000ab\\u0009c"
    Terminal().print_result({}, f"{escape_terminal_line('x' + chr(10) + 'y')}: lion")
    assert capsys.readouterr().out == "x\\u000ay: lion\n"


def test_a_message_has_one_short_line_without_control_characters():
    assert join_lines_for_terminal("a\nb\x1b[31m") == r"a b\u001b[31m"
    line = join_lines_for_terminal(DataError("start " + "x" * 10**6 + " end."))
    assert len(line) < 2010
    assert line.startswith("start x")
    assert line.endswith("x end.")
