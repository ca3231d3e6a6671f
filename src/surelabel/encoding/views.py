"""Parts of pictures become vectors: each picture is decoded once, each part seen on its own."""

import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from surelabel.backbones import Backbone
from surelabel.data.cache import FeatureCache, content_hash
from surelabel.data.pictures import open_picture, upright
from surelabel.encoding.packing import Half, packed
from surelabel.encoding.pictures import Progress, default_workers, hush
from surelabel.errors import DataError, InputError
from surelabel.views import Box, Cut, cut_out

KIND = "views"
KEPT_EVERY = 256  # pictures between two writes to the cache; each holds many vectors
TOGETHER = 8  # parts that a worker sends at once, so that pixels of few parts are in memory

Picture = str | Image.Image


@dataclass(frozen=True)
class Viewed:
    """Vectors of parts of pictures.

    Attributes:
        views: In the order of the boxes, ``(n, t, d)``, where ``t`` is the most parts that a
            picture has; what a picture has less is 0 and has to be filled by whoever asks.
        counts: How many parts of each picture were looked at, ``(n,)``.
        unread: The pictures that could not be looked at, by their place, with the reason.
        cached: How many pictures came from the cache.
        decode_seconds: Spent decoding, summed over workers.
        model_seconds: Spent in the encoder.
    """

    views: Tensor
    counts: npt.NDArray[np.int64]
    unread: dict[int, str]
    cached: int
    decode_seconds: float
    model_seconds: float


def encode_views(
    backbone: Backbone,
    pictures: Sequence[Picture],
    cut: Cut | Sequence[Cut | None],
    *,
    hashes: Sequence[str] | None = None,
    cache: FeatureCache | None = None,
    batch: int = 64,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Viewed:
    """Encode parts of pictures, each stretched to the size that the encoder takes.

    A picture is decoded so finely that its smallest part has the encoder's own resolution.

    Args:
        backbone: The encoder.
        pictures: Files, or pictures in memory.
        cut: Which parts; one for all, or one each, where None asks for no part.
        hashes: Of the content of each, where it is known (``Encoded.hashes``); a file that holds
            something else by now counts as unread.
        cache: Where vectors are kept; None keeps nothing. Pictures in memory are not kept.
        batch: Parts the encoder sees at once.
        workers: Decoding processes; by default none for a few pictures, else one a core.
        progress: Called with the number of pictures done and their total.

    Raises:
        InputError: there are no pictures, or not one cut each.

    Differs:
        TailorCLIP draws its crops anew in every pass; here what is drawn belongs to the picture.
    """
    cuts = list(cut) if isinstance(cut, Sequence) else [cut] * len(pictures)
    if not pictures or len(cuts) != len(pictures):
        raise InputError(
            f"There must be one picture or more, and one cut for all or one each. Got "
            f"{len(pictures)} pictures and {len(cuts)} cuts."
        )
    in_memory = isinstance(pictures[0], Image.Image)
    run = _Run(backbone, None if in_memory else cache, pictures, cuts, hashes)
    workers = default_workers(len(run.left)) if workers is None else workers
    workers = 0 if in_memory else workers
    loader = DataLoader(
        _Parts(run.left, backbone),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=hush,
    )
    try:
        for piece in loader:
            run.take(piece)
            if run.waiting >= batch:
                run.encode()
                if progress:
                    progress(run.done, len(pictures))
        run.encode()
    finally:
        run.keep()
    if progress:
        progress(len(pictures), len(pictures))
    return run.result()


def content_of(picture: Picture) -> str:
    """What stands for the content of a picture: the hash of its file, or of its upright pixels.

    Raises:
        DataError: a file cannot be read.
    """
    if not isinstance(picture, Image.Image):
        return content_hash(picture)
    seen = upright(picture)
    digest = hashlib.blake2b(repr(seen.size).encode(), digest_size=16)
    digest.update(seen.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Job:
    """Parts that one content asks for, and the pictures that have it; one of them is decoded."""

    content: str
    cut: Cut
    rows: list[int]
    pictures: list[Picture]


@dataclass(frozen=True)
class _Piece:
    """Some parts of a picture from a worker, in order; none and a reason where it is bad."""

    key: str
    pixels: Tensor | None
    last: bool
    reason: str
    seconds: float


class _Parts(IterableDataset[_Piece]):
    """Each worker takes every so many-th job."""

    def __init__(self, jobs: Mapping[str, _Job], backbone: Backbone):
        self._jobs, self._backbone = jobs, backbone
        self._least_side = backbone.least_side  # raises at once where no pictures are taken
        self._down, self._across = backbone.preprocess["size"]

    def __iter__(self) -> Iterator[_Piece]:
        worker = get_worker_info()
        every = list(self._jobs.items())
        for key, job in every[worker.id :: worker.num_workers] if worker else every:
            yield from self._pieces(key, job)

    def _pieces(self, key: str, job: _Job) -> Iterator[_Piece]:
        start = time.perf_counter()
        try:
            picture = _opened(job, math.ceil(self._least_side / job.cut.finest))
        except DataError as error:
            yield _Piece(key, None, True, str(error), time.perf_counter() - start)
            return
        boxes = job.cut.boxes(picture.size, job.content)
        for first in range(0, len(boxes), TOGETHER):
            parts = [self._seen(picture, box) for box in boxes[first : first + TOGETHER]]
            last, seconds = first + TOGETHER >= len(boxes), time.perf_counter() - start
            yield _Piece(key, torch.stack(parts), last, "", seconds)
            start = time.perf_counter()

    def _seen(self, picture: Image.Image, box: Box) -> Tensor:
        return self._backbone.prepare(cut_out(picture, box, size=(self._across, self._down)))


def _opened(job: _Job, least_side: int) -> Image.Image:
    """The first of the pictures that is still what it was; the error of the last if none is."""
    for picture in job.pictures:
        if isinstance(picture, Image.Image):
            return upright(picture)
        try:
            if content_hash(picture) != job.content:
                raise DataError(f"{picture}: changed while it was being read")
            return open_picture(picture, least_side=least_side)
        except DataError as error:
            problem = DataError(str(error).removeprefix(f"{picture}: "))
    raise problem


class _Run:
    """What one call to ``encode_views`` gathers."""

    def __init__(
        self,
        backbone: Backbone,
        cache: FeatureCache | None,
        pictures: Sequence[Picture],
        cuts: Sequence[Cut | None],
        hashes: Sequence[str] | None,
    ):
        self._backbone, self._cache, self._total = backbone, cache, len(pictures)
        self._jobs: dict[str, _Job] = {}
        self._unread: dict[int, str] = {}
        for row, (picture, cut) in enumerate(zip(pictures, cuts, strict=True)):
            if cut is not None:
                self._ask(row, picture, cut, hashes[row] if hashes else None)
        self._found = cache.get(backbone.fingerprint, KIND, self._jobs) if cache else {}
        self.left = {key: job for key, job in self._jobs.items() if key not in self._found}
        self.done = self._total - sum(len(job.rows) for job in self.left.values())
        self._cached = sum(len(self._jobs[key].rows) for key in self._found)
        self._decode_seconds = self._model_seconds = 0.0
        self._fresh: dict[str, Half] = {}
        self._waiting: list[tuple[_Piece, Tensor]] = []
        self._growing: dict[str, list[Half]] = defaultdict(list)

    def _ask(self, row: int, picture: Picture, cut: Cut, content: str | None) -> None:
        """Note a picture; the same content and cut are looked at once."""
        try:
            content = content or content_of(picture)
        except DataError as error:
            self._unread[row] = str(error).removeprefix(f"{picture}: ")
            return
        job = self._jobs.setdefault(f"{content} {cut.name}", _Job(content, cut, [], []))
        job.rows.append(row)
        job.pictures.append(picture)

    def take(self, piece: _Piece) -> None:
        """Put parts into the row for the encoder."""
        self._decode_seconds += piece.seconds
        rows = self._jobs[piece.key].rows
        self.done += len(rows) if piece.last else 0
        if piece.pixels is None:
            self._unread |= dict.fromkeys(rows, piece.reason)
        else:
            self._waiting.append((piece, piece.pixels))

    @property
    def waiting(self) -> int:
        """Parts in the row."""
        return sum(len(pixels) for _, pixels in self._waiting)

    def encode(self) -> None:
        """Encode all parts in the row."""
        if not self._waiting:
            return
        start = time.perf_counter()
        pixels = torch.cat([pixels for _, pixels in self._waiting])
        vectors = packed("images", self._backbone.images(pixels))[:, 0]
        for piece, pixels in self._waiting:
            mine, vectors = vectors[: len(pixels)], vectors[len(pixels) :]
            self._growing[piece.key].append(mine)
            if piece.last:
                self._fresh[piece.key] = np.concatenate(self._growing.pop(piece.key))
        self._waiting = []
        self._model_seconds += time.perf_counter() - start
        if len(self._fresh) >= KEPT_EVERY:
            self.keep()

    def keep(self) -> None:
        """Write what is new to the cache, also when a run ends early."""
        if self._cache and self._fresh:
            self._cache.put(self._backbone.fingerprint, KIND, self._fresh)
        self._found |= self._fresh
        self._fresh = {}

    def result(self) -> Viewed:
        """All vectors in the order of the pictures."""
        counts = np.zeros(self._total, dtype=np.int64)
        for key, vectors in self._found.items():
            counts[self._jobs[key].rows] = len(vectors)
        views = torch.zeros(self._total, int(counts.max()), self._backbone.width)
        for key, vectors in self._found.items():
            views[self._jobs[key].rows, : len(vectors)] = torch.from_numpy(vectors).float()
        return Viewed(
            views=views,
            counts=counts,
            unread=self._unread,
            cached=self._cached,
            decode_seconds=self._decode_seconds,
            model_seconds=self._model_seconds,
        )
