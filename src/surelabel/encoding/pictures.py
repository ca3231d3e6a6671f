"""Pictures on disk become features: decoded in worker processes, encoded once, cached for good."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from surelabel.backbones import Backbone
from surelabel.data.cache import FeatureCache, content_hash
from surelabel.data.pictures import open_picture
from surelabel.encoding.packing import packed, unpacked
from surelabel.encoding.parts import seen
from surelabel.errors import DataError, InputError
from surelabel.records import Features, Skipped

FEW = 64  # below this many pictures worker processes cost more than they give
KEPT_EVERY = 1024  # pictures between two writes to the cache, so that a killed run loses little

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Encoded:
    """Features of the pictures that could be read.

    Attributes:
        features: Of ``n`` pictures, in the order given, on the CPU.
        rows: For each of them its place in the paths given, ``(n,)``.
        skipped: The others, with the reason.
        cached: How many came from the cache.
        decode_seconds: Spent decoding, summed over workers.
        model_seconds: Spent in the encoder.
        hashes: Of the content that each of the ``n`` files had; see :func:`content_hash`.
        passes: How often the encoder looks at each picture, whole or in parts, ``(n,)``; what
            came from the cache counts too.
    """

    features: Features
    rows: npt.NDArray[np.int64]
    skipped: tuple[Skipped, ...]
    cached: int
    decode_seconds: float
    model_seconds: float
    hashes: tuple[str, ...]
    passes: npt.NDArray[np.int64]


def encode(
    backbone: Backbone,
    paths: Sequence[str],
    *,
    part: str = "images",
    cache: FeatureCache | None = None,
    batch: int = 64,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Encoded:
    """Encode pictures, reading what was encoded before from the cache.

    Args:
        backbone: The encoder.
        paths: Picture files.
        part: ``images`` for pooled vectors, ``patches`` or ``self_aware`` for patches as well,
            ``attentive`` for self-aware patches and attention, ``trunk`` for ``layers[-1]``,
            ``ladder/FIRST/DEPTH`` for what enters the last blocks and ``beside``.
        cache: Where features are kept; None keeps nothing.
        batch: Pictures the encoder sees at once.
        workers: Decoding processes; by default none for a few pictures, else one a core.
        strict: An unreadable picture is an error instead of being skipped.
        progress: Called with the number of pictures done and their total.

    Raises:
        DataError: no picture could be read, or ``strict`` and one could not.
    """
    if not paths:
        raise InputError("There are no pictures to encode. Name files or folders with pictures.")
    workers = default_workers(len(paths)) if workers is None else workers
    known = cache.keys(backbone.fingerprint, part) if cache else frozenset[str]()
    loader = DataLoader(
        _Pictures(paths, backbone, known),
        batch_size=batch,
        num_workers=workers,
        collate_fn=list,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=hush,
    )
    run = _Run(backbone, part, cache, paths)
    try:
        for done, loaded in enumerate(loader, 1):
            run.take(loaded)
            failed = [item for item in loaded if item.reason]
            if failed and strict:
                raise DataError(f"{paths[failed[0].row]}: {failed[0].reason}")
            if progress:
                progress(min(done * batch, len(paths)), len(paths))
    finally:
        run.keep()
    return run.result()


def default_workers(pictures: int) -> int:
    """Processes that decode so many pictures."""
    return 0 if pictures < FEW else min(8, os.cpu_count() or 1)


def hush(_: int) -> None:
    """Let the threads of a worker end without a word.

    What is wrong with a picture comes back in its row, and a fault of ours is raised again in the
    main process; but when a run is stopped, a thread that was sending pixels finds its pipe broken.
    """
    sys.excepthook = lambda *_: None


@dataclass(frozen=True)
class _Loaded:
    """One picture from a worker: its pixels, or None where the cache has it or it is bad."""

    row: int
    key: str
    pixels: Tensor | None
    reason: str
    seconds: float


class _Pictures(Dataset[_Loaded]):
    def __init__(self, paths: Sequence[str], backbone: Backbone, known: frozenset[str]):
        self._paths, self._backbone, self._known = paths, backbone, known
        self._least_side = backbone.least_side  # raises at once where no pictures are taken

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, row: int) -> _Loaded:
        start, path = time.perf_counter(), self._paths[row]
        try:
            key = content_hash(path)
            pixels = None
            if key not in self._known:
                picture = open_picture(path, least_side=self._least_side)
                pixels = self._backbone.prepare(picture)
        except DataError as error:
            reason = str(error).removeprefix(f"{path}: ")
            return _Loaded(row, "", None, reason, time.perf_counter() - start)
        return _Loaded(row, key, pixels, "", time.perf_counter() - start)


class _Run:
    """What one call to ``encode`` gathers."""

    def __init__(
        self, backbone: Backbone, part: str, cache: FeatureCache | None, paths: Sequence[str]
    ):
        self._backbone, self._part, self._cache, self._paths = backbone, part, cache, paths
        self._found: dict[str, npt.NDArray[np.float16]] = {}
        self._fresh: dict[str, npt.NDArray[np.float16]] = {}
        self._keys: dict[int, str] = {}
        self._reasons: dict[int, str] = {}
        self._cached = 0
        self._decode_seconds = self._model_seconds = 0.0

    def take(self, loaded: Sequence[_Loaded]) -> None:
        """Encode one batch from the workers and note what the cache will give."""
        new = {i.key: i.pixels for i in loaded if i.pixels is not None and i.key not in self._found}
        if new:
            self._encode(list(new), torch.stack([p for p in new.values() if p is not None]))
        waiting = {i.key: i.row for i in loaded if i.key and i.key not in self._found}
        if waiting and self._cache:
            self._found |= self._cache.get(self._backbone.fingerprint, self._part, sorted(waiting))
        for key in waiting.keys() - self._found.keys():  # dropped from the cache meanwhile
            again = open_picture(self._paths[waiting[key]], least_side=self._backbone.least_side)
            self._encode([key], self._backbone.prepare(again)[None])
        for item in loaded:
            self._decode_seconds += item.seconds
            if item.reason:
                self._reasons[item.row] = item.reason
            else:
                self._keys[item.row] = item.key
                self._cached += item.pixels is None
        if len(self._fresh) >= KEPT_EVERY:
            self.keep()

    def keep(self) -> None:
        """Write what is new to the cache, also when a run ends early."""
        if self._cache and self._fresh:
            self._cache.put(self._backbone.fingerprint, self._part, self._fresh)
        self._fresh = {}

    def result(self) -> Encoded:
        """All features in the order of the paths."""
        paths = self._paths
        skipped = tuple(Skipped(paths[row], self._reasons[row]) for row in sorted(self._reasons))
        if not self._keys:
            first = f"{skipped[0].path}: {skipped[0].reason}"
            raise DataError(f"None of {len(paths)} pictures could be read; the first: {first}.")
        rows = sorted(self._keys)
        stacked = np.stack([self._found[self._keys[r]] for r in rows])
        return Encoded(
            features=unpacked(self._part, stacked, self._backbone.width),
            rows=np.array(rows),
            skipped=skipped,
            cached=self._cached,
            decode_seconds=self._decode_seconds,
            model_seconds=self._model_seconds,
            hashes=tuple(self._keys[r] for r in rows),
            passes=np.ones(len(rows), dtype=np.int64),
        )

    def _encode(self, keys: Sequence[str], pixels: Tensor) -> None:
        start = time.perf_counter()
        arrays = packed(self._part, seen(self._backbone, self._part, pixels))
        self._fresh |= dict(zip(keys, arrays, strict=True))
        self._found |= {key: self._fresh[key] for key in keys}
        self._model_seconds += time.perf_counter() - start
