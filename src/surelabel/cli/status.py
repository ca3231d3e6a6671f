"""``surelabel status``: compare an index with its images."""

from dataclasses import asdict
from itertools import islice

import click

from surelabel.cli.index import index_root_option
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import escape_terminal_line
from surelabel.counts import format_count

N_PRINTED_PATHS = 20  # paths of each category in the text


@click.command()
@click.argument("index")
@click.argument("images", nargs=-1)
@index_root_option
@with_terminal_options
def status(terminal: Terminal, index: str, images: tuple[str, ...], root: str | None) -> None:
    """List new, changed and deleted images of an index.

    IMAGES are the images that the index should contain. Without IMAGES, the command checks only the
    indexed images. The text contains the first 20 paths of each category; --json prints all paths.
    """
    from surelabel.data import find_images
    from surelabel.retrieval import Index

    image_index = Index.open(index, root=root)
    index_status = image_index.status(find_images(images) if images else None)
    lines = [
        f"{index} has {format_count(index_status.n_images, 'image')} and "
        f"{format_count(len(image_index.names), 'label')} of recognizer {image_index.model}; "
        f"calibration: {image_index.calibration}."
    ]
    for state in ("not_indexed", "changed", "deleted"):
        paths: dict[str, str] = getattr(index_status, state)
        lines += [
            f"{len(paths)} {state.replace('_', ' ')}",
            *(
                f"  {escape_terminal_line(path)}: {escape_terminal_line(reason)}"
                for path, reason in islice(paths.items(), N_PRINTED_PATHS)
            ),
        ]
        if len(paths) > N_PRINTED_PATHS:
            lines.append(f"  … and {len(paths) - N_PRINTED_PATHS:,} more")
    manifest = {
        "root": image_index.root,
        "names": image_index.names,
        "model": image_index.model,
        "calibration": image_index.calibration,
    }
    terminal.print_result(asdict(index_status) | manifest, "\n".join(lines))
