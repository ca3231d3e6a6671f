"""Define ``surelabel scenes``, which generates annotated images of emoji."""

import click

from surelabel.cli.output_paths import validate_terminal_output_directory
from surelabel.cli.terminal import Terminal, with_terminal_options


@click.command()
@click.argument("folder", metavar="OUT", callback=validate_terminal_output_directory)
@click.option("--count", type=click.IntRange(1), required=True, help="Number of images.")
@click.option(
    "--vocabulary",
    default="scenes-80",
    show_default=True,
    help="Labels: scenes-80, scenes-all, or a file with one word per line; see `surelabel show "
    "words`.",
)
@click.option(
    "--domain",
    default="photo",
    show_default=True,
    help="Visual style; see `surelabel show domain`.",
)
@click.option(
    "--long-tail", is_flag=True, help="Sample words with a frequency proportional to 1/rank."
)
@click.option("--font", metavar="FILE", help="Colour emoji font. [the bundled font]")
@with_terminal_options
def scenes(
    terminal: Terminal,
    folder: str,
    count: int,
    vocabulary: str,
    domain: str,
    long_tail: bool,
    font: str | None,
) -> None:
    """Generate images of emoji with complete annotations.

    Images, labels, boxes and captions are written to OUT. The same seed and settings always give
    the same images. To resume an interrupted run, run the same command again.
    """
    from surelabel.data import write_scenes

    with terminal.progress("Rendering") as progress:
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
    terminal.print_result(
        {"folder": folder, "images": count}, f"Written: {count} images in {folder}"
    )
