import click
import pytest

from surelabel.cli.option_errors import (
    check_no_empty_option,
    describe_error_with_options,
    name_of_parameter,
    name_options_in_errors,
)
from surelabel.errors import ConfigError, InputError

COMMAND = click.Command(
    "tag",
    params=[
        click.Argument(["images"], nargs=-1),
        click.Option(["--top-k"]),
        click.Option(["-k"]),
        click.Option(["--threshold"]),
        click.Option(["--template"]),
        click.Option(["--labels", "names"]),
        click.Option(["--cost-of-miss"]),
    ],
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("top_k must be at least 1; got 0.", "--top-k must be at least 1; got 0."),
        ("threshold must be in [0, 1]; got 2.", "--threshold must be in [0, 1]; got 2."),
        ("k, the number of images, must be 1 or more.", "-k, the number of images, must be 1 or "),
        ("templates must be one of one; got 'x'.", "--template must be one of one; got 'x'."),
        ("names must be unique.", "--labels must be unique."),
        ("with_names requires prompts.", "--labels requires prompts."),
        ("miss_cost must be above 0.", "--cost-of-miss must be above 0."),
        ("Give another top_k, or none.", "Give another --top-k, or none."),
        ("Remove top_k.", "Remove --top-k."),
        ("threshold can be given only for images.", "--threshold can be given only for images."),
        ("Labels need a threshold of 1.", "Labels need a threshold of 1."),
        ("a/top_k/b.jpg and 'top_k' and top_k.csv", "a/top_k/b.jpg and 'top_k' and top_k.csv"),
        ("images must be a folder.", "images must be a folder."),  # a path
        ("batch_size must be 1 or more.", "batch_size must be 1 or more."),  # of --set
    ],
)
def test_names_of_python_become_options(message, expected):
    assert describe_error_with_options(message, COMMAND, {}).startswith(expected)


def test_a_value_at_the_start_of_a_message_follows_its_option():
    message = "'foo' is unknown. Known: one, ensemble."
    values = {"images": ("foo",), "top_k": 1, "template": "foo"}
    assert describe_error_with_options(message, COMMAND, values) == f"--template {message}"
    assert describe_error_with_options(message, COMMAND, {"template": "other"}) == message


def test_only_a_message_that_changes_becomes_another_error():
    with click.Context(COMMAND):
        with (
            pytest.raises(click.ClickException, match=r"^--top-k must be positive$"),
            name_options_in_errors(),
        ):
            raise InputError("top_k must be positive")
        with pytest.raises(ConfigError, match=r"^epochs must be"), name_options_in_errors():
            raise ConfigError("epochs must be positive")


@pytest.mark.parametrize("value", ["", " ", ("images", "")])
def test_an_empty_path_is_refused_with_the_name_of_the_argument(value):
    with pytest.raises(click.UsageError, match=r"^IMAGES must not be empty\.$"):
        check_no_empty_option(COMMAND, {"images": value})


def test_empty_labels_have_their_own_message_and_no_value_is_no_empty_value():
    check_no_empty_option(COMMAND, {"names": "", "images": (), "threshold": None, "top_k": 0})
    assert [name_of_parameter(p) for p in COMMAND.params[:3]] == ["IMAGES", "--top-k", "-k"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tag images --threshold 1.7", "Invalid value for '--threshold': 1.7 is not in the range"),
        (
            "tag images --threshold nan",
            "Invalid value for '--threshold': expected a finite number; got nan.",
        ),
        ("tag images --top-k 0", "Invalid value for '--top-k': 0 is not in the range x>=1."),
        ("search index lion -k 0", "'--limit': 0 is not in the range x>=1."),
        ("search index lion --root nowhere", "'--root': Directory 'nowhere' does not exist."),
        ("fit labels.csv --out a --images-root gone", "'--images-root': Directory 'gone' does not"),
        ("fit labels.csv --out a --run gone.toml", "'--run': File 'gone.toml' does not exist."),
        ("check gone.toml", "File 'gone.toml' does not exist."),
        ("evaluate a b --captions --relevance gone.json", "File 'gone.json' does not exist."),
        ("scenes out --count 0", "Invalid value for '--count': 0 is not in the range x>=1."),
    ],
)
def test_a_value_out_of_range_or_a_missing_path_names_the_option(line, message, home, run):
    done = run(*line.split())
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("arguments", [["tag", ""], ["tag", "images", "--model", ""]])
def test_an_empty_argument_is_a_usage_error_before_anything_is_read(arguments, run):
    done = run(*arguments, "--labels", "lion")
    assert done.code == 2
    assert "must not be empty." in done.err
