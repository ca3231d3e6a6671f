"""Check which options of the current command the user gave, and reject options without effect."""

from collections.abc import Collection

import click


def is_option_given(name: str) -> bool:
    """Return whether an option of the current command was given by the user.

    Args:
        name: Name of the parameter of the command.
    """
    source = click.get_current_context().get_parameter_source(name)
    return source != click.core.ParameterSource.DEFAULT


def check_options_are_not_given(names: Collection[str], reason: str) -> None:
    """Check that none of some options of the current command was given by the user.

    Args:
        names: Names of the parameters of the command.
        reason: Why the options cannot be given, as the end of a sentence about one or more options.

    Raises:
        UsageError: If one of the options is given.
    """
    parameters = click.get_current_context().command.params
    if given := [
        parameter.opts[0]
        for parameter in parameters
        if parameter.name in names and is_option_given(parameter.name)
    ]:
        options = ", ".join(given)
        raise click.UsageError(f"{options} {reason} Remove {options}.")
