"""Define ``surelabel check``, which validates a run file."""

from dataclasses import asdict

import click

from surelabel.cli.input_options import run_overrides_from_input_options
from surelabel.cli.terminal import Terminal, with_terminal_options


@click.command()
@click.argument("run", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the run, such as epochs=5.",
)
@with_terminal_options
def check(terminal: Terminal, run: str | None, settings: tuple[str, ...]) -> None:
    """Validate a run file and print its settings and defaults."""
    from surelabel.config import load_run, run_as_toml

    resolved_run = load_run(run, run_overrides_from_input_options(settings, seed=terminal.seed))
    terminal.print_result(asdict(resolved_run), run_as_toml(resolved_run).rstrip())
