"""Define ``surelabel status``, which compares an index with its images or counts images."""

from dataclasses import asdict
from itertools import islice

import click

from surelabel.cli.index import index_root_option
from surelabel.cli.index_maintenance import describe_ann_recall, describe_drop_below
from surelabel.cli.tag_shard import print_prediction_folder_status
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
    """List outdated images of an index, or count those of a run.

    INDEX is an index. INDEX can also be a folder of predictions of `tag --shard` or `tag
    --cluster`. Then its predicted, failed and missing images are counted by shard. IMAGES are the
    images that the index should contain. Without IMAGES, the command checks only the indexed
    images. The text contains the first 20 paths of each category; --json prints all paths.
    """
    from surelabel.data import find_images, is_prediction_folder, prediction_folder_status
    from surelabel.retrieval import Index

    if is_prediction_folder(index):
        check_status_of_predictions(images, root)
        print_prediction_folder_status(terminal, index, prediction_folder_status(index))
        return
    image_index = Index.open(index, root=root)
    index_status = image_index.status(find_images(images) if images else None)
    lines = [
        f"{index} contains {format_count(index_status.n_images, 'image')} and "
        f"{format_count(len(image_index.names), 'label')}. Recognizer: {image_index.model}; "
        f"calibration: {image_index.calibration}."
    ]
    if image_index.drop_below is not None:
        lines.append(describe_drop_below(image_index.drop_below, image_index.stored_share))
    if image_index.ann_recall is not None:
        lines.append(describe_ann_recall(image_index.ann_recall))
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
        "ann_recall": image_index.ann_recall,
        "drop_below": image_index.drop_below,
    }
    terminal.print_result(asdict(index_status) | manifest, "\n".join(lines))


def check_status_of_predictions(images: tuple[str, ...], root: str | None) -> None:
    """Check that no images are compared with a folder of predictions.

    Raises:
        UsageError: If images or their root are given.
    """
    if images or root:
        raise click.UsageError(
            "IMAGES and --root can be given only for an index; got a folder of predictions. Remove "
            "IMAGES and --root."
        )
