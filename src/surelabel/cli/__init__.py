"""The command line: read arguments, call one library function, print."""

from typing import Any

import click

from surelabel.cli.bench import bench
from surelabel.cli.cache import cache
from surelabel.cli.calibrate import calibrate
from surelabel.cli.check import check
from surelabel.cli.demo import demo
from surelabel.cli.evaluate import evaluate
from surelabel.cli.fit import fit
from surelabel.cli.index import index
from surelabel.cli.scenes import scenes
from surelabel.cli.search import search
from surelabel.cli.show import show
from surelabel.cli.status import status
from surelabel.cli.tag import tag
from surelabel.cli.terminal import notes, one_line
from surelabel.errors import SurelabelError

__all__ = ["main"]
INTERRUPTED = 130  # what a shell expects of a command that Ctrl-C ended


class _Group(click.Group):
    """Our errors are one line; what is wrong with us is a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with notes():
                return super().invoke(ctx)
        except SurelabelError as error:
            raise click.ClickException(one_line(error)) from error
        except KeyboardInterrupt as error:
            click.echo(
                "Interrupted. What was encoded is kept in the cache, what was learnt in "
                "OUT.unfinished, what was drawn in its folder: run the same command again and it "
                "goes on from there.",
                err=True,
            )
            raise click.exceptions.Exit(INTERRUPTED) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("surelabel", cls=_Group)
@click.version_option(package_name="surelabel", prog_name="surelabel")
def main() -> None:
    """Every label in the picture, and how sure."""


for _command in (
    demo,
    tag,
    fit,
    calibrate,
    evaluate,
    index,
    search,
    status,
    show,
    check,
    scenes,
    cache,
    bench,
):
    main.add_command(_command)
