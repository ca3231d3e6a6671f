"""Add new names to the usage errors for options of version 0.1.0 that were renamed."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from surelabel.migration import OPTIONS


@contextmanager
def name_renamed_options() -> Iterator[None]:
    """If a command is called with the old name of an option, add the new name to the usage error.

    Raises:
        click.NoSuchOption: If the command has no such option.
    """
    try:
        yield
    except click.NoSuchOption as error:
        current = OPTIONS.get(error.option_name)
        parameters = error.ctx.command.params if error.ctx else []
        if current is None or not any(current in parameter.opts for parameter in parameters):
            raise
        message = f"No such option: {error.option_name}. Use the new name {current}."
        raise click.NoSuchOption(error.option_name, message, ctx=error.ctx) from error
