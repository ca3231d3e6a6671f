import json
import warnings

import pytest

from surelabel import recognizer
from surelabel.cli.terminal import (
    Terminal,
    hide_terminal_notes,
    print_warnings_as_terminal_notes,
)


def test_undefined_numbers_are_null_in_json(capsys):
    Terminal(as_json=True).print_result({"a": [1, float("nan"), None, True, "x"], 2: 0.5}, "text")
    assert json.loads(capsys.readouterr().out) == {"a": [1, None, None, True, "x"], "2": 0.5}


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


def test_a_warning_of_ours_is_a_note_on_one_line(capsys):
    with print_warnings_as_terminal_notes():
        warnings.warn_explicit("two\n  lines", UserWarning, recognizer.__file__, 1, "surelabel.x")
    assert capsys.readouterr().err == "Note: two lines\n"


def test_hidden_notes_are_not_printed(capsys):
    with print_warnings_as_terminal_notes():
        for hidden in (True, False):
            with hide_terminal_notes(hidden=hidden):
                text = f"hidden: {hidden}"
                warnings.warn_explicit(
                    text, UserWarning, recognizer.__file__, 1, "surelabel.x", registry={}
                )
    assert capsys.readouterr().err == "Note: hidden: False\n"


def test_a_note_that_comes_again_is_not_said_again(capsys):
    with print_warnings_as_terminal_notes():
        for text in ("same", "same", "other"):
            warnings.warn_explicit(text, UserWarning, recognizer.__file__, 1, "surelabel.x")
    assert capsys.readouterr().err == "Note: same\nNote: other\n"


def test_a_warning_of_others_stays_what_it_is():
    with pytest.warns(UserWarning, match="of others"), print_warnings_as_terminal_notes():
        warnings.warn_explicit("of others", UserWarning, "elsewhere.py", 1, "elsewhere")


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
