"""``surelabel cache``."""

from dataclasses import asdict

import click

from surelabel.cli.terminal import Terminal, table, with_terminal


@click.command()
@click.option("--clear", is_flag=True, help="Remove all of it.")
@with_terminal
def cache(terminal: Terminal, clear: bool) -> None:
    """Say where encoded pictures are kept, or remove them.

    The environment variable SURELABEL_CACHE names another folder.
    """
    from surelabel.data import FeatureCache, default_folder

    kept = FeatureCache(default_folder())
    if clear:
        kept.clear()
    found = kept.status()
    parts = [
        [name, size.entries, megabytes(size.bytes)] for name, size in found.per_fingerprint.items()
    ]
    lines = [
        f"{found.folder} keeps {found.entries} encoded pictures and texts in "
        f"{megabytes(found.bytes)} of at most {megabytes(found.limit_bytes)}.",
        *([table(["encoder", "entries", "room"], parts)] if parts else []),
    ]
    encoders = {name: size._asdict() for name, size in found.per_fingerprint.items()}
    terminal.show(asdict(found) | {"per_fingerprint": encoders}, "\n".join(lines))


def megabytes(count: int) -> str:
    """``1.5 MB``, a million bytes each."""
    return f"{count / 1e6:,.1f} MB"
