"""``surelabel check``."""

from dataclasses import asdict

import click

from surelabel.cli.sources import overrides
from surelabel.cli.terminal import Terminal, with_terminal


@click.command()
@click.argument("run", required=False)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the run."
)
@with_terminal
def check(terminal: Terminal, run: str | None, settings: tuple[str, ...]) -> None:
    """Check a run file and print it with all its defaults."""
    from surelabel.config import load_run, run_as_toml

    found = load_run(run, overrides(settings, seed=terminal.seed))
    terminal.show(asdict(found), run_as_toml(found).rstrip())
