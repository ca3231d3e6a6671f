import os

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.cli.shell_completion import TEXT_PARAMETERS, PathOrName

VARIABLE = "_SURELABEL_COMPLETE"


def completions(*words):
    """The completions of the last word, each with its type."""
    *arguments, incomplete = words
    items = ShellComplete(main, {}, "surelabel", VARIABLE).get_completions(arguments, incomplete)
    return [(item.type, item.value) for item in items]


@pytest.mark.parametrize(
    "words",
    [
        ("tag", "im"),
        ("tag", "images", "--model", "re"),
        ("tag", "images", "--labels", "na"),
        ("tag", "images", "--out", "ta"),
        ("fit", "la"),
        ("evaluate", "recognizer", "la"),
        ("index", "new", "im"),
        ("bench", "prompts", "--out", "ta"),
    ],
)
def test_a_shell_completes_paths(words):
    assert completions(*words) == [("file", words[-1])]


def test_commands_options_and_choices_are_completed():
    assert completions("ca") == [("plain", "calibrate"), ("plain", "cache")]
    assert ("plain", "--threshold") in completions("tag", "--thr")
    assert completions("show", "optim") == [("plain", "optimizer")]


@pytest.mark.parametrize("option", ["--text", "--method"])
def test_other_texts_are_not_completed_with_files(option):
    command = "search" if option == "--text" else "tag"
    assert completions(command, "index", option, "a") == []


def test_every_text_of_a_command_is_a_path_or_named_as_another_text():
    for name, command in main.commands.items():
        for parameter in command.params:
            if type(parameter.type) is click.types.StringParamType:
                assert parameter.name in TEXT_PARAMETERS, f"{name} {parameter.name}"
            else:
                assert not isinstance(parameter.type, PathOrName) or (
                    parameter.name not in TEXT_PARAMETERS
                )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_in_the_help_prints_a_script_for_the_shell(shell, run):
    if shell != "fish":
        assert f"{shell}_source" in run("--help").out
    environment = os.environ | {VARIABLE: f"{shell}_source"}
    done = CliRunner(env=environment).invoke(main, prog_name="surelabel")
    assert done.exit_code == 0
    assert f"{VARIABLE}={shell}_complete" in done.stdout
