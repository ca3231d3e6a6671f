"""Define a callable object that predicts labels of batches of image paths in Ray Data actors."""

import os
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from surelabel.cluster.tagging_process import TaggingProcess, TaggingSettings
from surelabel.data import max_image_memory
from surelabel.data.prediction_writing import prediction_parquet_table
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions, SkippedImage

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer

PathBatch = Mapping[str, Any]  # columns of a batch: `row`, int64 (n,), and `path`, n texts


@dataclass(frozen=True)
class TaggedImages:
    """Predictions of the images of a batch that could be predicted.

    Attributes:
        predictions: Predictions of m images. If no image could be predicted, the value is None.
        positions: Index in the batch of each predicted image, ``(m,)``.
        skipped: Images that could not be predicted, each with the reason.
    """

    predictions: Predictions | None
    positions: npt.NDArray[np.int64]
    skipped: Sequence[SkippedImage]


class Tagger:
    """Predictor of the labels of batches of image paths; actors of Ray Data can receive it pickled.

    The recognizer runs in a separate process, which decodes images in worker processes with limits
    of time and memory. Therefore a damaged image cannot end the process that calls the tagger. If
    the separate process is killed, it is started again. The images of a batch that failed are
    predicted one by one.

    Args:
        recognizer: Fitted recognizer, or the folder of a saved recognizer, to which each machine
            must have access.
        device: PyTorch device, if ``recognizer`` is a folder.
        decoders: Number of processes that decode images, >= 1.
        has_vectors: Whether :meth:`predict` returns image vectors and content hashes.

    Raises:
        NotFitted: If the recognizer has to be fitted first.
        InputError: If ``decoders`` is below 1.

    Example:
        >>> import surelabel as sl
        >>> paths = sl.collection("scenes-80", split="test").paths[:2]
        >>> with sl.Tagger(sl.Recognizer.zero_shot("tiny-vit", ["lion"])) as tagger:
        ...     tagger({"row": [0, 1], "path": paths}).column_names
        ['row', 'path', 'score:lion', 'logit:lion', 'probability:lion']
    """

    def __init__(
        self,
        recognizer: "Recognizer | str | Path",
        *,
        device: str = "cpu",
        decoders: int = 1,
        has_vectors: bool = False,
    ):
        if decoders < 1:
            raise InputError(f"decoders must be 1 or more; got {decoders}.")
        if isinstance(recognizer, str | Path):
            source: bytes | str = os.path.abspath(recognizer)
        else:
            recognizer.check_fitted()
            source = pickle.dumps(recognizer)
        self.settings = TaggingSettings(
            recognizer=source,
            image_folder=os.getcwd(),
            max_image_memory=max_image_memory(),
            decoders=decoders,
            device=device,
            has_vectors=has_vectors,
        )
        self._process: TaggingProcess | None = None

    def __call__(self, batch: PathBatch) -> pa.Table:
        """Return the predictions of a batch as a table, without the images that cannot be read.

        Args:
            batch: Columns ``row``, int64, ``(n,)``, and ``path``, n paths of images.

        Returns:
            Table with the columns ``row``, ``path`` and those of a Parquet file of predictions.

        Raises:
            DataError: If the separate process cannot be started, or if predicting each image fails
                for another reason than an unreadable file.
            InputError: If the recognizer cannot be loaded, or the folder of the images is missing.
        """
        tagged = self.predict(list(batch["path"]))
        if tagged.predictions is None:
            first = tagged.skipped[0]
            raise DataError(
                f"No image of a batch could be predicted. The first error is for {first.path}: "
                f"{first.reason}. Check the available memory and the encoder."
            )
        rows = np.asarray(batch["row"], dtype=np.int64)[tagged.positions]
        table = prediction_parquet_table(tagged.predictions)
        return table.add_column(0, "row", pa.array(rows, pa.int64()))

    def predict(self, paths: Sequence[str]) -> TaggedImages:
        """Return the predictions of images, which are predicted separately if a batch fails.

        Args:
            paths: Paths of n images, n >= 1.

        Raises:
            DataError: If the separate process cannot be started.
            InputError: If the recognizer cannot be loaded, or the folder of the images is missing.
        """
        answer = self._predict_in_process(paths)
        if isinstance(answer, str):
            return self.predict_one_by_one(paths)
        return TaggedImages(answer, _positions_of_predicted_images(answer, paths), answer.skipped)

    def predict_one_by_one(self, paths: Sequence[str]) -> TaggedImages:
        """Return the predictions of images, each of which is predicted separately.

        Args:
            paths: Paths of n images, n >= 1.

        Raises:
            DataError: If the separate process cannot be started.
            InputError: If the recognizer cannot be loaded, or the folder of the images is missing.
        """
        blocks, positions, skipped = list[Predictions](), list[int](), list[SkippedImage]()
        for position, path in enumerate(paths):
            answer = self._predict_in_process([path])
            if isinstance(answer, str):
                skipped.append(SkippedImage(path, answer))
                continue
            blocks.append(answer)
            positions += [position] * len(answer)
            skipped += answer.skipped
        predictions = blocks[0] if blocks else None
        if len(blocks) > 1:
            # An actor loads no recognizer: this import takes seconds and a gigabyte of memory.
            from surelabel.recognizer.prediction_joining import join_prediction_blocks

            folder = Path(tempfile.gettempdir())
            predictions = join_prediction_blocks(iter(blocks), n_images=len(paths), folder=folder)
        return TaggedImages(predictions, np.array(positions, dtype=np.int64), tuple(skipped))

    def close(self) -> None:
        """End the separate process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def __enter__(self) -> "Tagger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "_process": None}

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def _predict_in_process(self, paths: Sequence[str]) -> Predictions | str:
        """Return the predictions of images, or the reason why they could not be computed.

        Raises:
            DataError: If the separate process cannot be started.
            InputError: If the recognizer cannot be loaded, or the folder of the images is missing.
        """
        if self._process is None:
            self._process = TaggingProcess(self.settings)
        try:
            return self._process.predict(paths)
        except DataError as error:
            self._process = None
            return str(error)


def _positions_of_predicted_images(
    predictions: Predictions, paths: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Return the index in ``paths`` of each predicted image; the order of both is equal."""
    positions = list[int]()
    for position, path in enumerate(paths):
        if len(positions) < len(predictions) and predictions.paths[len(positions)] == path:
            positions.append(position)
    return np.array(positions, dtype=np.int64)
