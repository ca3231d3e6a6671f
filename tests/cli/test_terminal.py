import json
import os
import sys
import warnings

import pytest

from surelabel import recognizer
from surelabel.cli import terminal
from surelabel.cli.terminal import (
    ProgressSpeed,
    Terminal,
    escape_terminal_line,
    format_terminal_table,
    join_lines_for_terminal,
    print_warnings_as_terminal_notes,
    to_terminal_json_value,
    validate_terminal_output_folder,
    validate_terminal_output_path,
)
from surelabel.errors import DataError


def test_a_table_stands_in_columns():
    assert format_terminal_table(["label", "n"], [["hot dog", 12], ["lion", 3]]) == (
        "label    n\nhot dog  12\nlion     3"
    )


def test_undefined_numbers_are_null_in_json(capsys):
    Terminal(as_json=True).print_result({"a": [1, float("nan"), None, True, "x"], 2: 0.5}, "text")
    assert json.loads(capsys.readouterr().out) == {"a": [1, None, None, True, "x"], "2": 0.5}


def test_numpy_numbers_are_plain():
    np = pytest.importorskip("numpy")
    assert to_terminal_json_value({"a": np.float64(0.5), "b": np.arange(2)}) == {
        "a": 0.5,
        "b": [0, 1],
    }


def test_quiet_says_nothing_but_shows_results(capsys):
    quiet = Terminal(quiet=True)
    quiet.print_status("how it goes")
    quiet.print_result({}, "result")
    with quiet.progress("Tagging") as progress:
        assert progress is None
    assert capsys.readouterr() == ("result\n", "")


@pytest.mark.parametrize("as_json", [True, False])
def test_odd_bytes_of_a_file_name_are_spelt_out(as_json, capsys):
    shown = Terminal(as_json=as_json)
    shown.print_result({"path": "caf\udce9, ü.jpg"}, "caf\udce9, ü.jpg")
    shown.print_step("tell \udce9")
    shown.print_status("say \udce9")
    out, err = capsys.readouterr()
    assert out.splitlines()[0].count(r"caf\udce9, ü.jpg") == 1
    assert (r"tell \udce9" in out) is not as_json
    assert err == "say \\udce9\n"
    assert not as_json or json.loads(out) == {"path": "caf\udce9, ü.jpg"}


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 7.0, 8.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Tagging") as progress:
        for done in (10, 20, 70, 100):
            progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "Tagging: 10 of 100, 10/s, 9 s left",
        "Tagging: 70 of 100, 10/s, 3 s left",
    ]


def test_progress_of_another_pass_has_a_speed_of_its_own(capsys, monkeypatch):
    clock = iter([0.0, 50.0, 100.0, 110.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Fitting") as progress:
        for done in (50, 100, 20):
            progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "Fitting: 50 of 100, 1/s, 50 s left",
        "Fitting: 20 of 100, 2/s, 40 s left",
    ]


def test_the_speed_is_that_of_the_last_minute_and_not_of_an_earlier_run():
    speed = ProgressSpeed(0.0)
    assert speed.update(0.005, 1000) is None  # finished by the interrupted run
    assert speed.update(10.005, 1100) == pytest.approx(10)
    assert speed.update(40.005, 1130) == pytest.approx(130 / 40)
    assert [speed.update(now, done) for now, done in ((71.005, 1161), (101.005, 1191))] == [
        pytest.approx(1),
        pytest.approx(1),
    ]


def test_progress_on_a_terminal_is_a_bar_that_leaves_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Terminal().progress("Tagging") as progress:
        progress(10, 100)
        during = capsys.readouterr().err
    assert "Tagging" in during
    assert "10/100" in during
    assert capsys.readouterr().out == ""


def test_a_warning_of_ours_is_a_note_on_one_line(capsys):
    with print_warnings_as_terminal_notes():
        warnings.warn_explicit("two\n  lines", UserWarning, recognizer.__file__, 1, "surelabel.x")
    assert capsys.readouterr().err == "Note: two lines\n"


def test_a_note_that_comes_again_is_not_said_again(capsys):
    with print_warnings_as_terminal_notes():
        for text in ("same", "same", "other"):
            warnings.warn_explicit(text, UserWarning, recognizer.__file__, 1, "surelabel.x")
    assert capsys.readouterr().err == "Note: same\nNote: other\n"


def test_a_warning_of_others_stays_what_it_is():
    with pytest.warns(UserWarning, match="of others"), print_warnings_as_terminal_notes():
        warnings.warn_explicit("of others", UserWarning, "elsewhere.py", 1, "elsewhere")


def test_one_line_keeps_spaces_inside_a_line():
    assert join_lines_for_terminal("a  path.jpg is\n   gone") == "a  path.jpg is gone"


def test_a_place_below_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file is a file; give another path"):
        validate_terminal_output_path(None, None, str(tmp_path / "file" / "deep" / "below"))


def test_a_place_without_a_name_is_refused_instead_of_written_nowhere():
    with pytest.raises(DataError, match="must not be empty; give a path"):
        validate_terminal_output_path(None, None, " ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_is_closed_is_refused_at_once(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(DataError, match=r"no write permission for .*closed; give another path"):
        validate_terminal_output_path(None, None, str(tmp_path / "closed" / "new"))


def test_a_folder_that_is_written_whole_cannot_be_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="must not contain the current folder"):
        validate_terminal_output_folder(None, None, ".")
    assert validate_terminal_output_folder(None, None, "new") == "new"
    assert validate_terminal_output_folder(None, None, None) is None


@pytest.mark.parametrize("place", ["new/deeper", "file", "."])
def test_a_place_that_can_be_written_or_replaced_passes(place, tmp_path):
    (tmp_path / "file").write_text("")
    assert validate_terminal_output_path(None, None, str(tmp_path / place)) == str(tmp_path / place)


HOSTILE = "a\x1b]0;title\x07\x9b31m\u202egpj.\u2028b"


@pytest.mark.parametrize("as_json", [True, False])
def test_control_characters_of_file_names_do_not_reach_the_terminal(as_json, capsys):
    shown = Terminal(as_json=as_json)
    shown.print_result({"path": HOSTILE}, f"{HOSTILE}\n\tnext line")
    shown.print_step(HOSTILE)
    shown.print_status(HOSTILE)
    out, err = capsys.readouterr()
    for text in (out, err):
        assert not any(character in text for character in "\x1b\x07\x9b\u202e\u2028")
        assert r"a\u001b]0;title\u0007\u009b31m\u202egpj.\u2028b" in text
    assert ("\n\tnext line\n" in out) is not as_json
    assert not as_json or json.loads(out) == {"path": HOSTILE}


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


@pytest.mark.parametrize("batches", [[], [[]], [["a"], [], ["b", "c"]]])
def test_batches_of_results_are_one_json_array_or_lines(batches, capsys):
    results = [[({"path": name}, f"{name}: lion") for name in batch] for batch in batches]
    Terminal(as_json=True).print_result_batches(iter(results))
    names = [name for batch in batches for name in batch]
    assert json.loads(capsys.readouterr().out) == [{"path": name} for name in names]
    Terminal().print_result_batches(iter(results))
    assert capsys.readouterr().out == "".join(f"{name}: lion\n" for name in names)


def test_a_batch_is_printed_before_the_next_one_is_computed(capsys):
    printed = []

    def batches():
        yield [(1, "first")]
        printed.append(capsys.readouterr().out)
        yield [(2, "second")]

    Terminal().print_result_batches(batches())
    assert printed == ["first\n"]
