"""Define the options ``--gallery`` and ``--open``, and write galleries of hits and of tags."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surelabel.cli.output_paths import validate_terminal_output_path
from surelabel.cli.terminal import Command, Terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.report import GalleryImage


def gallery_options(function: Command) -> Command:
    """Add the options ``--gallery`` and ``--open``, for an HTML page with thumbnails."""
    gallery_option = click.option(
        "--gallery",
        callback=validate_gallery_path,
        metavar="FILE.html",
        help="Write an HTML page with thumbnails of at most 1,000 images and their probabilities.",
    )
    open_option = click.option(
        "--open", "open_gallery", is_flag=True, help="Show the page of --gallery in the browser."
    )
    return gallery_option(open_option(function))


def validate_gallery_path(
    context: click.Context, option: click.Parameter, path: str | None
) -> str | None:
    """Check at the start of a command that a gallery can be written.

    Raises:
        UsageError: If the suffix of the path is not ``.html``.
        DataError: If the path cannot be written.
    """
    if path is not None and not path.lower().endswith((".html", ".htm")):
        raise click.UsageError(
            f"--gallery requires a file name that ends in .html; got {path}. Change the file name."
        )
    return validate_terminal_output_path(context, option, path)


def check_open_gallery_option(gallery: str | None, *, open_gallery: bool) -> None:
    """Check that ``--open`` is given with ``--gallery`` only.

    Raises:
        UsageError: If ``--open`` is given without ``--gallery``.
    """
    if open_gallery and gallery is None:
        raise click.UsageError(
            "--open requires --gallery; got only --open. Add --gallery FILE.html."
        )


def write_gallery(
    terminal: Terminal,
    path: str,
    title: str,
    sentences: Sequence[str],
    images: "Sequence[GalleryImage]",
    *,
    n_images: int | None = None,
    open_gallery: bool = False,
) -> None:
    """Write a gallery, print its path, and show it in the browser if requested.

    Args:
        terminal: Object that prints results, status lines and progress.
        path: Path of the HTML page.
        title: Title of the page.
        sentences: Paragraphs below the title.
        images: Images in the order of the page.
        n_images: Number of images of the result. If None, ``images`` are all images of the result.
        open_gallery: Value of the option ``--open``.

    Raises:
        DataError: If the page cannot be written.
    """
    terminal.print_import_status()

    from surelabel.report import MAX_GALLERY_IMAGES, write_gallery_page

    n_images = len(images) if n_images is None else n_images
    with terminal.progress("Thumbnails") as progress:
        write_gallery_page(path, title, sentences, images, n_images=n_images, progress=progress)
    is_complete = n_images <= MAX_GALLERY_IMAGES
    part = f" with the first {MAX_GALLERY_IMAGES:,} of {format_count(n_images, 'image')}"
    terminal.print_status(f"Written: {path}{'' if is_complete else part}")
    if open_gallery:
        open_gallery_in_browser(terminal, path)


def open_gallery_in_browser(terminal: Terminal, path: str) -> None:
    """Show an HTML page in the browser of the user, or print that no browser was found."""
    import webbrowser

    if not webbrowser.open(Path(path).absolute().as_uri()):
        terminal.print_status(f"No browser was found; open {path} in a browser.")
