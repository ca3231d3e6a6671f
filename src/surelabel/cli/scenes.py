"""``surelabel scenes``."""

import click

from surelabel.cli.terminal import Terminal, output, with_terminal


@click.command()
@click.argument("folder", metavar="OUT", callback=output)
@click.option("--count", type=int, required=True, help="How many pictures.")
@click.option(
    "--vocabulary",
    default="scenes-80",
    show_default=True,
    help="scenes-80, scenes-all, or a file with one word a line; `surelabel show words`.",
)
@click.option(
    "--domain", default="photo", show_default=True, help="The look; `surelabel show domain`."
)
@click.option("--long-tail", is_flag=True, help="Word frequencies fall as 1/rank.")
@click.option("--font", metavar="FILE", help="The colour-emoji font. [found on the usual paths]")
@with_terminal
def scenes(
    terminal: Terminal,
    folder: str,
    count: int,
    vocabulary: str,
    domain: str,
    long_tail: bool,
    font: str | None,
) -> None:
    """Draw pictures of emoji with complete truth.

    Labels, boxes and captions lie beside them in OUT. The same seed and settings always give the
    same pictures. A run that was stopped goes on where it was: give the same command again.
    """
    from surelabel.data import write_scenes

    with terminal.progress("Drawing") as progress:
        write_scenes(
            folder,
            count=count,
            seed=terminal.seed or 0,
            vocabulary=vocabulary,
            domain=domain,
            long_tail=long_tail,
            font=font,
            progress=progress and (lambda done: progress(done, count)),
        )
    terminal.show({"folder": folder, "pictures": count}, f"{count} pictures in {folder}")
