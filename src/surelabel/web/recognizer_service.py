"""Run the recognizer of an index in a worker process, for uploads, heat maps and uncertainties."""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from surelabel.errors import MissingPart
from surelabel.retrieval import Index
from surelabel.web.image_worker import ImageWorkerPool

TASKS_MODULE = "surelabel.web.recognizer_tasks"  # not imported here, because it imports torch
LOADING_SECONDS = 600.0
REPEAT_SECONDS = 30.0  # after which a recognizer that could not be loaded is loaded again
NO_RECOGNIZER = (
    "Uploads, heat maps and recalibrations need the recognizer, which the index does not record. "
    "Start the server with --model, or run `surelabel index` with --model once."
)


class RecognizerService:
    """Recognizer of an index, which is loaded by a worker process.

    Args:
        model: Saved recognizer or name of an encoder, or None for the recorded recognizer.
        device: PyTorch device of the encoder.
        root: Root folder of the images, or None for the stored root.
        seconds: Maximum time of an image.
    """

    def __init__(self, model: str | None, *, device: str, root: str | None, seconds: float) -> None:
        self._model, self._device, self._root = model, device, root
        self._fingerprint_of_model: str | None = None  # None until `check` or the first use
        self._pool = ImageWorkerPool(TASKS_MODULE, n_workers=1, seconds=seconds)
        self._loading: dict[str, Future[Any]] = {}  # by fingerprint
        self._loading_since = 0.0

    @property
    def n_replaced(self) -> int:
        """Return the number of worker processes that failed and were replaced."""
        return self._pool.n_replaced

    def start_loading(self, index: Index) -> "Future[Any]":
        """Load the recognizer of an index in the worker process, without waiting for it.

        If the recognizer could not be loaded, a call ``REPEAT_SECONDS`` after the start of loading
        loads the recognizer again, because its files can have been replaced meanwhile.

        Returns:
            Future that raises MissingPart or DataError if the recognizer cannot be loaded.

        Raises:
            MissingPart: If no recognizer is recorded or given.
        """
        if self.model_of(index) is None and index.recognizer is None:
            raise MissingPart(NO_RECOGNIZER)
        if index.model not in self._loading or self._must_repeat(self._loading[index.model]):
            future = self._pool.submit(
                "load_recognizer", seconds=LOADING_SECONDS, source=self.source(index)
            )
            self._loading = {index.model: future}
            self._loading_since = time.monotonic()
        return self._loading[index.model]

    def _must_repeat(self, loading: "Future[Any]") -> bool:
        is_due = time.monotonic() - self._loading_since >= REPEAT_SECONDS
        return is_due and loading.done() and loading.exception() is not None

    def model_of(self, index: Index) -> str | None:
        """Return the given recognizer if it is that of an index, or None for the recorded one.

        The given recognizer is that of the first index. After a recalibration, the index records a
        new recognizer, which is used instead.
        """
        if self._fingerprint_of_model is None:
            self._fingerprint_of_model = index.model
        return self._model if index.model == self._fingerprint_of_model else None

    def check(self, index: Index) -> None:
        """Wait until the recognizer is loaded.

        Raises:
            MissingPart: If the recognizer cannot be loaded, or is not that of the index.
            DataError: If the worker process fails.
        """
        self.start_loading(index).result()

    def state(self, index: Index) -> dict[str, str | None]:
        """Return the state of the recognizer: ``loading``, ``ready`` or ``missing`` with reason."""
        try:
            future = self.start_loading(index)
        except MissingPart as error:
            return {"state": "missing", "reason": str(error)}
        if not future.done():
            return {"state": "loading", "reason": None}
        error_of_loading = future.exception()
        if error_of_loading is None:
            return {"state": "ready", "reason": None}
        return {"state": "missing", "reason": str(error_of_loading)}

    async def predict_labels(self, index: Index, content: bytes) -> dict[str, float]:
        """Return the probability of each label of an image.

        Args:
            index: Index of the recognizer.
            content: Content of an image file.

        Raises:
            MissingPart: If the recognizer cannot be loaded, or is not that of the index.
            DataError: If the image cannot be read, or its process fails.
        """
        values, _ = await self._run("predict_labels", index, content=content)
        return dict(values)

    async def encode_heat_map(self, index: Index, path: str, label: str, side: int) -> bytes:
        """Return an image with the heat map of a label as a PNG file.

        Raises:
            MissingPart: If the recognizer cannot be loaded, or is not that of the index.
            UnknownName, ConfigError: If the recognizer does not localize the label.
            DataError: If the image cannot be read, or its process fails.
        """
        _, content = await self._run("encode_heat_map", index, path=path, label=label, side=side)
        return content

    async def compute_uncertainty(
        self, index: Index, path: str
    ) -> tuple[dict[str, dict[str, float]], str | None]:
        """Return the uncertainty of each label by kind, and the reason if there is none.

        Args:
            index: Index of the recognizer.
            path: Path of an image file.

        Raises:
            MissingPart: If the recognizer cannot be loaded, or is not that of the index.
            DataError: If the image cannot be read, or its process fails.
        """
        (kinds, reason), _ = await self._run("compute_uncertainty", index, path=path)
        return kinds, reason

    async def images_of_fit(self, index: Index, paths: Sequence[str]) -> list[bool]:
        """Return whether the recognizer was fitted on each image file.

        Args:
            index: Index of the recognizer.
            paths: Paths of image files. For a file that cannot be read, the value is False.

        Raises:
            MissingPart: If the recognizer cannot be loaded, or is not that of the index.
            DataError: If the process fails.
        """
        values, _ = await self._run(
            "find_images_of_fit", index, seconds=LOADING_SECONDS, paths=list(paths)
        )
        return list(values)

    def close(self) -> None:
        """End the worker process."""
        self._pool.close()

    async def _run(
        self, task: str, index: Index, *, seconds: float | None = None, **arguments: Any
    ) -> tuple[Any, bytes]:
        future = self.start_loading(index)
        if future.done() and future.exception() is not None:
            future.result()
        source = self.source(index)
        # a new process loads the recognizer, which can take longer than an image
        await self._pool.run("load_recognizer", seconds=LOADING_SECONDS, source=source)
        return await self._pool.run(task, seconds=seconds, source=source, **arguments)

    def source(self, index: Index) -> dict[str, Any]:
        """Return the attributes of the ``RecognizerSource`` of an index."""
        return {
            "folder": str(index.folder),
            "root": self._root,
            "model": self.model_of(index),
            "device": self._device,
            "fingerprint": index.model,
        }
