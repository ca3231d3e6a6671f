import json
import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from surelabel.cli import main
from surelabel.errors import DataError

HEAVY = {"torch", "numpy", "rich", "PIL"}
STARTS = {
    "surelabel": "from surelabel.cli import main; main()",
    "python -m surelabel": "import runpy; runpy.run_module('surelabel', run_name='__main__')",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("arguments", [["--help"], ["tag", "--help"]])
def test_help_loads_neither_torch_nor_numpy(start, arguments):
    code = (
        f"import sys\nsys.argv[1:] = {arguments}\n"
        f"try:\n    {STARTS[start]}\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print({{m.split('.')[0] for m in sys.modules}} & {HEAVY})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.endswith("\nset()\n")


def test_python_m_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "surelabel", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"surelabel, version {version('surelabel')}\n"


COMMANDS = [  # of a group its own commands
    (name, *below)
    for name, command in main.commands.items()
    for below in (((n,) for n in command.commands) if isinstance(command, click.Group) else [()])
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_the_options_that_mean_the_same_everywhere(command, run):
    said = run(*command, "--help").out
    assert all(f"{option} " in said for option in ("--json", "--device", "--seed", "--quiet"))
    assert run(*command, "--version").out == f"surelabel, version {version('surelabel')}\n"


def test_every_summary_fits_on_its_line(run):
    assert "..." not in run("--help").out.split("Commands:")[1]


@pytest.mark.parametrize(
    "arguments", [["tag"], ["no-such-command"], ["search", "index", "lion", "-k", "many"]]
)
def test_a_usage_error_is_exit_code_2(arguments, run):
    assert run(*arguments).code == 2


@pytest.fixture
def command():
    """Add a command to the group for one test."""
    names = []

    def add(function):
        names.append(function.__name__)
        main.add_command(click.command()(function))

    yield add
    for name in names:
        del main.commands[name]


def test_an_error_of_ours_with_line_breaks_is_one_line(command, run):
    def several():
        raise DataError("first,\n    second.")

    command(several)
    assert run("several").err == "Error: first, second.\n"


def test_what_is_wrong_with_us_is_not_hidden(command, run):
    def broken():
        raise ZeroDivisionError("a bug")

    command(broken)
    assert isinstance(run("broken").exception, ZeroDivisionError)


def test_an_interrupt_is_exit_code_130_and_one_line(command, run):
    def stopped():
        raise KeyboardInterrupt

    command(stopped)
    done = run("stopped")
    assert done.code == 130
    assert done.err.startswith("Interrupted. The features of encoded images are cached.")
    assert "output OUT are in OUT, OUT.partial or OUT.unfinished. To resume" in done.err
    assert "run the same command again." in done.err
    assert done.err.count("\n") == 1


def test_a_closed_pipe_is_no_traceback():
    pipe = subprocess.PIPE
    line = [sys.executable, "-m", "surelabel", "--help"]
    with subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True) as started:
        started.stdout.close()
        assert started.stderr.read() == ""
    assert started.returncode == 1


def test_json_is_one_value_without_notes(run):
    assert json.loads(run("show", "loss", "--json").out)["asymmetric"]["settings"] == {
        "gamma_pos": 0.0,
        "gamma_neg": 4.0,
        "clip": 0.05,
        "variant": "paper",
    }
