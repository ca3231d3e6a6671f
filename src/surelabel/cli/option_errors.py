"""Replace Python names in errors of commands by options and arguments of the command line."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from surelabel.cli.terminal_text import join_lines_for_terminal
from surelabel.errors import SurelabelError

PARAMETERS = {  # name in Python: parameter of a command
    "adapt_to_shift": "unlabelled",
    "miss_cost": "cost_of_miss",
    "templates": "template",
    "with_names": "names",
}
CONTENT_PARAMETERS = {  # these have other errors about an empty text
    *("ignore", "image_column", "indexes_and_query", "names", "queries", "query", "text", "unseen")
}
_PYTHON_NAME = re.compile(r"(?<![\w'\"/.=-])[a-z]+(?:_[a-z0-9]+)+(?![\w'\"/=-]|\.\w)")
_PYTHON_OPTION = re.compile(r" \(in Python \w+=.*?\)(?=[ .,]|$)")
_FIRST_NAME = re.compile(r"^[a-z]+(?=(?:, [^;:]*,)? (?:must|needs|requires|can be given) )")


@contextmanager
def name_options_in_errors() -> Iterator[None]:
    """Replace Python names in the errors of a command by the options of the command.

    Raises:
        ClickException: If the message of an error contains the Python name of an option.
    """
    try:
        yield
    except SurelabelError as error:
        context = click.get_current_context()
        message = describe_error_with_options(str(error), context.command, context.params)
        if message == str(error):
            raise
        raise click.ClickException(join_lines_for_terminal(message)) from error


def describe_error_with_options(
    message: str, command: click.Command, values: Mapping[str, Any]
) -> str:
    """Return the message of an error with the options of a command in place of Python names.

    A name with an underscore is replaced anywhere, except within a path or a quotation. A name
    without an underscore is replaced only at the start of the message, if must, needs, requires or
    can be given follows. The form of an option in Python, in parentheses after the option, is
    removed.

    Args:
        message: Message of an error.
        command: Command that raised the error.
        values: Values of the parameters of the command by name. If the message begins with a value
            in quotes, the option of the value is put before the message.

    Example:
        >>> option = click.Option(["--top-k"])
        >>> tag = click.Command("tag", params=[option])
        >>> describe_error_with_options("top_k must be 1 or more.", tag, {})
        '--top-k must be 1 or more.'
    """
    options = [p for p in command.params if isinstance(p, click.Option)]
    flags = {str(option.name): name_of_parameter(option) for option in options}

    def flag_of_name(match: re.Match[str]) -> str:
        return flags.get(PARAMETERS.get(match[0], match[0]), match[0])

    message = _PYTHON_OPTION.sub("", message)
    message = _PYTHON_NAME.sub(flag_of_name, _FIRST_NAME.sub(flag_of_name, message))
    for name, flag in flags.items():
        if isinstance(values.get(name), str) and message.startswith(f"{values[name]!r} is "):
            return f"{flag} {message}"
    return message


def name_of_parameter(parameter: click.Parameter) -> str:
    """Return the name of an option or argument on the command line, such as ``--top-k``."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.human_readable_name


def check_no_empty_option(command: click.Command, values: Mapping[str, Any]) -> None:
    """Check that no path, name or setting on the command line is an empty text.

    Python treats the empty path as the current folder, which the user did not give.

    Args:
        command: Command whose options are checked.
        values: Values of the parameters by name.

    Raises:
        UsageError: If a value is empty.
    """
    for parameter in command.params:
        value = values.get(str(parameter.name))
        texts = value if isinstance(value, tuple) else (value,)
        is_empty = any(isinstance(text, str) and not text.strip() for text in texts)
        if is_empty and parameter.name not in CONTENT_PARAMETERS:
            raise click.UsageError(f"{name_of_parameter(parameter)} must not be empty.")
