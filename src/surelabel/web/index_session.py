"""Keep an index open for a server, and open the index again after it was replaced."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from threading import Lock

import numpy as np
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.errors import DataError, SurelabelError
from surelabel.files import FileVersion, file_version
from surelabel.retrieval import HitList, Index, Query
from surelabel.retrieval.query_encoding import QueryEncoder
from surelabel.retrieval.shards import Shard
from surelabel.web.expected_counts import ExpectedCounts
from surelabel.web.image_identifiers import (
    ImageIdentifier,
    image_path_checksum,
    parse_image_identifier,
    unknown_image_error,
)
from surelabel.web.query_access import SharedQueryEncoder, with_example_in_root


@dataclass(frozen=True)
class IndexedImage:
    """Image of one revision of an index.

    Attributes:
        path: Absolute path of the image.
        shard: Shard that contains the image.
        row: Row number of the image in the shard.
    """

    path: str
    shard: Shard
    row: int


class OpenedRevision:
    """One revision of an index. Several threads can use it at the same time.

    Args:
        index: Opened index.
        load_encoder: Function that loads the recognizer of an index, which encodes sentences.

    Attributes:
        index: Opened index.
        encoder: Encoder of the sentences of queries.
        expected_counts: Expected number of images with each label.
    """

    def __init__(self, index: Index, load_encoder: Callable[[Index], QueryEncoder]) -> None:
        self.index = index
        self.encoder = SharedQueryEncoder(lambda: load_encoder(index))
        self._searcher, self._example_lock = index.searcher, Lock()
        self.expected_counts = ExpectedCounts(self._searcher.shards, len(index.names))
        self._starts = list(accumulate((s.n_rows for s in self._searcher.shards), initial=0))
        self._shards = {shard.number: shard for shard in self._searcher.shards}
        for shard in self._searcher.shards:
            _create_lazy_attributes(shard)

    def search(self, query: Query, k: int, *, min_probability: float, offset: int) -> HitList:
        """Return the images with the highest probability of a query; see ``Index.search``.

        Searches with an example run one after the other, because usearch does not state that
        several threads can search the same opened graph.

        Args:
            query: Query of a client. A relative path of its example refers to the root of the
                index.
            k: Maximum number of images, >= 1.
            min_probability: Minimum probability of each image, in [0, 1].
            offset: Number of the best images that are left out, >= 0.
        """
        with nullcontext() if query.like is None else self._example_lock:
            return self.index.search(
                with_example_in_root(query, self.index.root),
                k,
                min_probability=min_probability,
                offset=offset,
                encoder=self.encoder,
            )

    def identifiers_of_hits(self, hits: HitList) -> list[str]:
        """Return the identifier of each image of a search result."""
        places = (np.searchsorted(self._starts, hits.rows, side="right") - 1).tolist()
        return [
            str(
                ImageIdentifier(
                    self._searcher.shards[place].number,
                    row - self._starts[place],
                    image_path_checksum(hit.path),
                )
            )
            for hit, row, place in zip(hits, hits.rows, places, strict=True)
        ]

    def find_image(self, identifier: str) -> IndexedImage:
        """Return the image of an identifier.

        Raises:
            UnknownName: If no image of this revision has the identifier.
        """
        parsed = parse_image_identifier(identifier)
        shard = self._shards.get(parsed.shard)
        if shard is None or parsed.row >= shard.n_rows:
            raise unknown_image_error(identifier)
        path = self._searcher.root.resolve(shard.paths.of_rows([parsed.row])[0])
        is_removed = shard.is_active is not None and not shard.is_active[parsed.row]
        if is_removed or image_path_checksum(path) != parsed.checksum:
            raise unknown_image_error(identifier)
        return IndexedImage(path, shard, parsed.row)

    def label_probabilities(self, image: IndexedImage) -> Array:
        """Return the probability of each label of an image, ``(c,)``.

        The checksums of the labels are not verified, because that would read all rows.

        Raises:
            DataError: If a file was truncated, or a value is not finite.
        """
        image.shard.mapped_files.check_not_truncated()
        table, rows = image.shard.label_table, np.array([image.row])
        logits = [table.logits(column, rows)[0] for column in range(len(self.index.names))]
        if not np.isfinite(logits).all():
            raise DataError(
                f"The stored values of {image.path} must be finite; the index is damaged. Build "
                "the index again (`surelabel index`)."
            )
        return np.asarray(expit(np.asarray(logits, np.float64)))


class IndexSession:
    """Index of a server, which is opened again after another process replaced it.

    Args:
        folder: Folder of the index.
        root: Root folder of the images, or None for the stored root.
        load_encoder: Function that loads the recognizer of an index, which encodes sentences.

    Attributes:
        folder: Folder of the index.
        root: Root folder of the images, or None for the stored root.
        error: Reason why the latest revision could not be opened, or None.

    Raises:
        DataError: If the index cannot be opened, or contains no image.
    """

    def __init__(
        self, folder: str, *, root: str | None, load_encoder: Callable[[Index], QueryEncoder]
    ) -> None:
        self.folder, self.root = folder, root
        self.error: str | None = None
        self._load_encoder = load_encoder
        self._lock = Lock()
        self._version = _index_file_version(folder)
        index = Index.open(folder, root=root)
        if not len(index):
            raise DataError(
                f"The index {folder} must contain images; got an empty index. Add images with "
                "`surelabel index`."
            )
        self._revision = OpenedRevision(index, load_encoder)

    def current(self) -> OpenedRevision:
        """Return the current revision of the index.

        If a new revision cannot be opened, the last revision that was opened is returned.
        """
        version = _index_file_version(self.folder)
        if version == self._version:
            return self._revision
        with self._lock:
            if version != self._version:
                self._open_again()
                self._version = version
        return self._revision

    def close(self) -> None:
        """Stop the computation of the expected numbers of images."""
        self._revision.expected_counts.stop()

    def _open_again(self) -> None:
        try:
            index = Index.open(self.folder, root=self.root)
        except SurelabelError as error:
            self.error = str(error)
            return
        self.error = None
        if index.revision != self._revision.index.revision:
            self._revision.expected_counts.stop()
            self._revision = OpenedRevision(index, self._load_encoder)


def _create_lazy_attributes(shard: Shard) -> None:
    """Create the caches of a shard, so that no two threads create a cache at the same time."""
    shard.mapped_files.verify_checksums([])
    _ = shard.is_active, shard.path_masks, shard.label_table, shard.hnsw_graph
    if shard.n_rows:
        shard.paths.of_rows([0])


def _index_file_version(folder: str) -> FileVersion | None:
    """Return values that change when ``index.json`` is replaced, or None without a file."""
    try:
        return file_version(os.stat(Path(folder) / "index.json"))
    except OSError:
        return None
