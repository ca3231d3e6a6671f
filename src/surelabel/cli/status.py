"""``surelabel status``: compare an index with its images."""

from dataclasses import asdict

import click

from surelabel.cli.terminal import Terminal, with_terminal_options


@click.command()
@click.argument("index")
@click.argument("images", nargs=-1)
@with_terminal_options
def status(terminal: Terminal, index: str, images: tuple[str, ...]) -> None:
    """List new, changed and deleted images of an index.

    IMAGES are the images that the index should contain. Without IMAGES, the command checks only the
    indexed images.
    """
    from surelabel.data import find_images
    from surelabel.retrieval import Index

    image_index = Index.open(index)
    index_status = image_index.status(find_images(images) if images else None)
    lines = [
        f"{index} has {index_status.n_images} images and {len(image_index.names)} labels of "
        f"recognizer {image_index.model}; calibration: {image_index.calibration}."
    ]
    for state in ("not_indexed", "changed", "deleted"):
        paths: dict[str, str] = getattr(index_status, state)
        lines += [
            f"{len(paths)} {state.replace('_', ' ')}",
            *(f"  {path}: {reason}" for path, reason in paths.items()),
        ]
    manifest = {
        "names": image_index.names,
        "model": image_index.model,
        "calibration": image_index.calibration,
    }
    terminal.print_result(asdict(index_status) | manifest, "\n".join(lines))
