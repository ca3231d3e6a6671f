"""Write the gallery of ``tag``: thumbnails of the images with the labels that are shown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surelabel.cli.gallery import write_gallery
from surelabel.cli.tag_options import TagOptions, TagSelection
from surelabel.cli.terminal import Terminal
from surelabel.cli.unlabelled_calibration import NOT_VERIFIED
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer
    from surelabel.records import Predictions
    from surelabel.report import GalleryImage


@dataclass
class TagGallery:
    """Images of a gallery, which are collected while blocks of images are predicted.

    Attributes:
        n_images: Number of images, including skipped images.
        images: First images with their shown labels, at most as many as a page contains.
    """

    n_images: int = 0
    images: "list[GalleryImage]" = field(default_factory=list)

    def collect_blocks(
        self, blocks: "Iterable[Predictions]", selection: TagSelection
    ) -> "Iterator[Predictions]":
        """Add the images of each block, and yield the block.

        Args:
            blocks: Predictions of blocks of images.
            selection: Selection of the labels that are shown.
        """
        from surelabel.report import MAX_GALLERY_IMAGES

        for block in blocks:
            self.n_images += len(block) + len(block.skipped)
            n_missing = MAX_GALLERY_IMAGES - len(self.images)
            self.images += gallery_images_of_block(block, selection)[:n_missing]
            yield block


def gallery_images_of_block(block: "Predictions", selection: TagSelection) -> "list[GalleryImage]":
    """Return the images of a block with their shown labels, then the skipped images.

    Args:
        block: Predictions of a block of images.
        selection: Selection of the labels that are shown.
    """
    from surelabel.recognizer import select_tags
    from surelabel.report import gallery_image_of_skipped, gallery_image_of_tags

    tags = select_tags(block, **vars(selection))
    return [
        *map(gallery_image_of_tags, block.paths, tags),
        *map(gallery_image_of_skipped, block.skipped),
    ]


def write_tag_gallery(
    terminal: Terminal,
    recognizer: "Recognizer",
    gallery: TagGallery,
    options: TagOptions,
    selection: TagSelection,
) -> None:
    """Write the gallery of ``tag``, and show it in the browser if requested.

    Args:
        terminal: Object that prints results, status lines and progress.
        recognizer: Recognizer of the images.
        gallery: Collected images.
        options: Options of ``tag``, with the path ``gallery`` of the page.
        selection: Selection of the labels that are shown.
    """
    assert options.gallery is not None
    write_gallery(
        terminal,
        options.gallery,
        f"Labels of {format_count(gallery.n_images, 'image')}",
        describe_tag_gallery(recognizer, selection),
        gallery.images,
        n_images=gallery.n_images,
        open_gallery=options.open_gallery,
    )


def describe_tag_gallery(recognizer: "Recognizer", selection: TagSelection) -> list[str]:
    """Return sentences on the shown labels and on the calibration of their probabilities.

    Args:
        recognizer: Recognizer of the images.
        selection: Selection of the labels that are shown.
    """
    from surelabel.records import calibration_provenance

    shown = (
        "All labels"
        if selection.top_k is None
        else f"At most {format_count(selection.top_k, 'label')}"
    )
    if isinstance(selection.threshold, float):
        shown += f" with a probability of at least {selection.threshold:g}"
    elif selection.threshold is not None:
        shown += " with a probability at or above the threshold of the label"
    description = recognizer.calibrated_on
    if description is None:
        return [f"{shown} are shown for each image.", "The scores are not probabilities."]
    provenance = calibration_provenance(description)
    note = f" {NOT_VERIFIED}" if provenance == "no labels" else ""
    return [f"{shown} are shown for each image.", f"Calibration: {description}.{note}"]
