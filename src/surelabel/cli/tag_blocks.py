"""Predict the blocks of images of ``tag``, resume an interrupted run, and count the images."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surelabel.cli.tag_options import TagOptions, TagSelection
from surelabel.errors import NoReadableImage

if TYPE_CHECKING:
    from surelabel.data import PartialPredictions
    from surelabel.progress import Progress
    from surelabel.recognizer import Recognizer
    from surelabel.records import LabelledFeatures, Predictions, SkippedImage

    TagSource = Sequence[str] | LabelledFeatures  # paths of images, or vectors


@dataclass
class TagCounts:
    """Total counts and computing time of the blocks of a run.

    Attributes:
        noun: Noun of the images in messages; see ``Predictions.row_noun``.
        n_images: Number of images, including skipped images.
        n_resumed: Number of images that an interrupted run had predicted.
        n_cached: Number of images whose features were read from the cache.
        decode_seconds: Time spent decoding, in seconds, summed over the workers.
        model_seconds: Time spent in the encoder, in seconds.
        skipped: Images that could not be read, each with the reason.
        has_shown_label: Whether at least one label of an image is shown.
    """

    noun: str = "image"
    n_images: int = 0
    n_resumed: int = 0
    n_cached: int = 0
    decode_seconds: float = 0.0
    model_seconds: float = 0.0
    skipped: list["SkippedImage"] = field(default_factory=list)
    has_shown_label: bool = False

    def add(self, block: "Predictions") -> None:
        """Add the counts of a block; a block without computing time was predicted earlier."""
        n_images = len(block) + len(block.skipped)
        self.n_images += n_images
        self.skipped += block.skipped
        if block.encoding_stats is None:
            self.n_resumed += n_images
        else:
            self.n_cached += block.encoding_stats.n_cached
            self.decode_seconds += block.encoding_stats.decode_seconds
            self.model_seconds += block.encoding_stats.model_seconds

    def count_blocks(
        self, blocks: Iterable["Predictions"], selection: TagSelection
    ) -> Iterator["Predictions"]:
        """Add the counts of each block, and yield the block.

        Args:
            blocks: Predictions of blocks of images.
            selection: Selection of the labels that are shown.
        """
        from surelabel.recognizer import shown_label_mask

        for block in blocks:
            self.add(block)
            if not self.has_shown_label:
                mask = shown_label_mask(block, **vars(selection))
                self.has_shown_label = bool(mask.any())
            yield block


def open_partial_tags(
    stack: ExitStack,
    recognizer: "Recognizer",
    source: "TagSource",
    options: TagOptions,
) -> "PartialPredictions":
    """Open the finished blocks of the prediction file until the end of ``stack``.

    Args:
        stack: Stack of context managers, which closes the finished blocks.
        recognizer: Recognizer of the images.
        source: Paths of the images, or vectors.
        options: Options of ``tag``, with the path ``out`` of the prediction file.

    Raises:
        DataError: If the folder ``out.partial`` belongs to another run.
    """
    from surelabel.data import max_image_memory, open_partial_predictions
    from surelabel.recognizer import images_per_prediction_block

    assert options.out is not None
    others = {} if options.uncertainty is None else {"uncertainty": options.uncertainty}
    others |= recognizer.encoder.engine.run_option
    if not isinstance(source, Sequence):
        others["vectors"] = hashlib.blake2b(source.features.tobytes(), digest_size=16).hexdigest()
    return stack.enter_context(
        open_partial_predictions(
            options.out,
            source if isinstance(source, Sequence) else source.paths,
            block_size=images_per_prediction_block(recognizer.method),
            recognizer=recognizer.fingerprint,
            options={"max_image_memory": max_image_memory(), **others},
        )
    )


def predict_tag_blocks(
    recognizer: "Recognizer",
    source: "TagSource",
    partial: "PartialPredictions | None",
    options: TagOptions,
    progress: "Progress | None",
) -> Iterator["Predictions"]:
    """Yield the predictions of all images block by block.

    Args:
        recognizer: Recognizer of the images.
        source: Paths of the images, or vectors.
        partial: Finished blocks of an interrupted run, which come first; each new block is added.
            If None, blocks are not stored.
        options: Options of ``tag``.
        progress: Function called with the number of finished images and the total number of images.

    Raises:
        DataError: If no image of any block can be read, or if ``options.strict`` is True and
            an image cannot be read.
    """
    n_images = len(source)
    n_finished = 0 if partial is None else partial.n_images
    if progress and n_finished:
        progress(n_finished, n_images)
    if partial is not None:
        yield from partial.finished_blocks()
    if n_finished == n_images > 0:
        return

    def show_progress(done: int, _: int) -> None:
        assert progress is not None
        progress(n_finished + done, n_images)

    blocks = recognizer.predict_blocks(
        source[n_finished:]
        if isinstance(source, Sequence)
        else source.take(range(n_finished, n_images)),
        uncertainty=options.uncertainty,
        workers=options.workers,
        strict=options.strict,
        progress=show_progress if progress else None,
    )
    try:
        for block in blocks:
            if partial is not None:
                partial.add(block)
            yield block
    except NoReadableImage:
        if partial is None or not partial.n_read:
            raise
