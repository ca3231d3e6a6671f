import re
import sys

import pytest

from surelabel.cli import terminal_progress
from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_progress import ProgressSpeed
from surelabel.progress import report_progress


def test_the_speed_is_that_of_the_last_minute_and_not_of_an_earlier_run():
    speed = ProgressSpeed(0.0)
    assert speed.update(0.005, 1000) is None  # finished by the interrupted run
    assert speed.update(10.005, 1100) == pytest.approx(10)
    assert speed.update(40.005, 1130) == pytest.approx(130 / 40)
    assert [speed.update(now, done) for now, done in ((71.005, 1161), (101.005, 1191))] == [
        pytest.approx(1),
        pytest.approx(1),
    ]


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 7.0, 8.0])
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Tagging") as progress:
        for done in (10, 20, 70, 100):
            progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "Tagging: 10 of 100 images, 10/s, 9 s left",
        "Tagging: 70 of 100 images, 10/s, 3 s left",
    ]


def test_items_that_take_more_than_a_second_have_a_time_each(capsys, monkeypatch):
    clock = iter([0.0, 80.0])
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Fitting") as progress:
        progress(2, 5)
    assert capsys.readouterr().err.splitlines() == [
        "Fitting: 2 of 5 images, 40.0 s each, 120 s left"
    ]


def test_progress_of_another_pass_has_a_speed_of_its_own(capsys, monkeypatch):
    clock = iter([0.0, 50.0, 100.0, 110.0])
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Fitting") as progress:
        for done in (50, 100, 20):
            progress(done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "Fitting: 50 of 100 images, 1/s, 50 s left",
        "Fitting: 20 of 100 images, 2/s, 40 s left",
    ]


def test_epochs_of_a_fit_are_not_counted_as_images(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: next(clock))
    with Terminal().progress("Fitting") as progress:
        progress(50, 100)
        report_progress(progress, 3, 30, "epochs")
    assert capsys.readouterr().err.splitlines() == [
        "Fitting: 50 of 100 images, 50/s, 1 s left",
        "Fitting: 3 of 30 epochs, 3.3 s each, 90 s left",
    ]


def test_a_progress_function_with_two_arguments_receives_steps_of_any_unit():
    calls = []
    report_progress(lambda *numbers: calls.append(numbers), 3, 30, "epochs")
    report_progress(None, 3, 30, "epochs")
    assert calls == [(3, 30)]


def test_progress_on_a_terminal_is_a_bar_that_leaves_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Terminal().progress("Tagging") as progress:
        progress(10, 100)
        during = capsys.readouterr().err
    assert "Tagging" in during
    assert re.search(r"10/100.* images", during)
    assert capsys.readouterr().out == ""
