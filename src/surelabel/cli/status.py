"""``surelabel status``."""

from dataclasses import asdict

import click

from surelabel.cli.terminal import Terminal, with_terminal


@click.command()
@click.argument("index")
@click.argument("pictures", nargs=-1)
@with_terminal
def status(terminal: Terminal, index: str, pictures: tuple[str, ...]) -> None:
    """Say which pictures an index lacks, and why.

    PICTURES are what the index should hold; without them only what it holds is looked at.
    """
    from surelabel.data import find_pictures
    from surelabel.retrieval import Index

    opened = Index.open(index)
    found = opened.status(find_pictures(pictures) if pictures else None)
    lines = [
        f"{index} has {found.rows} pictures and {len(opened.names)} labels, of recognizer "
        f"{opened.model}; calibrated: {opened.calibration}."
    ]
    for what in ("missing", "changed", "gone"):
        paths: dict[str, str] = getattr(found, what)
        lines += [f"{len(paths)} {what}", *(f"  {path}: {why}" for path, why in paths.items())]
    about = {"names": opened.names, "model": opened.model, "calibration": opened.calibration}
    terminal.show(asdict(found) | about, "\n".join(lines))
