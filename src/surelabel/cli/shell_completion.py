"""Complete commands, options and file names in a shell."""

import click
from click.shell_completion import CompletionItem

TEXT_PARAMETERS = frozenset(  # parameters whose values are no paths
    {"device", "loss", "method", "queries", "query", "regularizer", "settings", "template", "text"}
)


class PathOrName(click.types.StringParamType):
    """Text that can be a path; a shell completes it with the names of files."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the item that makes the shell complete a file name."""
        return [CompletionItem(incomplete, type="file")]


def complete_paths_in_shell(command: click.Command) -> click.Command:
    """Return a command whose arguments and options for paths are completed by a shell.

    Without this change, a shell completes no file name after the command.

    Args:
        command: Command or group of commands, which is changed in place.
    """
    for parameter in command.params:
        is_text = isinstance(parameter.type, click.types.StringParamType)
        if is_text and parameter.name not in TEXT_PARAMETERS:
            parameter.type = PathOrName()
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            complete_paths_in_shell(subcommand)
    return command
