"""Define the command line interface, with one module for each command."""

from typing import Any

import click

from surelabel.cli.audit import audit
from surelabel.cli.auto_label import auto_label
from surelabel.cli.bench import bench
from surelabel.cli.cache import cache
from surelabel.cli.calibrate import calibrate
from surelabel.cli.check import check
from surelabel.cli.compare import compare
from surelabel.cli.demo import demo
from surelabel.cli.duplicates import duplicates
from surelabel.cli.evaluate import evaluate
from surelabel.cli.export import export
from surelabel.cli.fit import fit
from surelabel.cli.index import index
from surelabel.cli.label_next import label_next
from surelabel.cli.protocol import protocol
from surelabel.cli.renamed_options import name_renamed_options
from surelabel.cli.scenes import scenes
from surelabel.cli.search import search
from surelabel.cli.serve import serve
from surelabel.cli.shell_completion import complete_paths_in_shell
from surelabel.cli.show import show
from surelabel.cli.status import status
from surelabel.cli.tag import tag
from surelabel.cli.terminal import print_warnings_as_terminal_notes
from surelabel.cli.terminal_text import escape_terminal_line, join_lines_for_terminal
from surelabel.errors import QuerySyntaxError, SurelabelError

__all__ = ["main"]
INTERRUPTED = 130  # exit code of a command that was stopped with Ctrl-C


class _ErrorPrintingGroup(click.Group):
    """Command group that prints each error of this package on one line.

    After an error in a query, the query is printed with a mark below the wrong character.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with print_warnings_as_terminal_notes(), name_renamed_options():
                return super().invoke(ctx)
        except QuerySyntaxError as error:
            lines = [error.reason, f"  {error.excerpt}", f"  {' ' * error.mark}^"]
            raise click.ClickException("\n".join(map(escape_terminal_line, lines))) from error
        except SurelabelError as error:
            raise click.ClickException(join_lines_for_terminal(error)) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"{error.filename or 'A file'} cannot be used: {reason}."
            raise click.ClickException(join_lines_for_terminal(message)) from error
        except KeyboardInterrupt as error:
            click.echo(
                "Interrupted. The features of encoded images are cached. Finished parts of an "
                "output OUT are in OUT, OUT.partial or OUT.unfinished. To resume, run the same "
                "command again.",
                err=True,
            )
            raise click.exceptions.Exit(INTERRUPTED) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    "surelabel",
    cls=_ErrorPrintingGroup,
    epilog="To complete commands, options and paths with TAB in bash, run: eval "
    '"$(_SURELABEL_COMPLETE=bash_source surelabel)". For zsh, replace bash_source by zsh_source.',
)
@click.version_option(package_name="surelabel", prog_name="surelabel")
def main() -> None:
    """Recognize multiple labels in images, with calibrated probabilities."""


for _command in (
    demo,
    tag,
    fit,
    calibrate,
    evaluate,
    export,
    compare,
    audit,
    label_next,
    auto_label,
    index,
    search,
    serve,
    duplicates,
    status,
    show,
    check,
    scenes,
    cache,
    protocol,
    bench,
):
    main.add_command(complete_paths_in_shell(_command))
