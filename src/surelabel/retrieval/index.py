"""Image index: calibrated log-odds in a folder, which are searched without reading the images."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy.special import expit

from surelabel.errors import DataError, InputError, UnknownName
from surelabel.records import Predictions
from surelabel.retrieval.conjunction_search import (
    Floats,
    QueryLiteral,
    RowNumbers,
    conjunction_search_top_k,
    merge_conjunction_search_rows,
)
from surelabel.retrieval.file_state import absolute_file_state_paths
from surelabel.retrieval.hits import Hit, HitList
from surelabel.retrieval.index_lock import lock_index
from surelabel.retrieval.index_manifest import (
    IndexManifest,
    check_index_manifest_folder,
    load_index_manifest,
    next_shard_number_in_index_manifest,
    save_index_manifest,
)
from surelabel.retrieval.index_status import IndexStatus, compute_index_status
from surelabel.retrieval.ingestion import (
    check_recognizer_of_ingestion,
    empty_manifest_for_ingestion,
    predictions_to_ingestion_rows,
    skipped_reasons_of_ingestion,
)
from surelabel.retrieval.query import Query, parse, query_to_columns
from surelabel.retrieval.shards import Shard, ShardRows, write_shard
from surelabel.summaries import Summary


class Index:
    """Searchable index of images, opened by `create` or `open`.

    A lock allows one process to write at a time. New files are written first and ``index.json`` is
    replaced last, so an interrupted process leaves the index unchanged. The next process that
    writes deletes the files of an interrupted process. Paths are stored as absolute paths.
    """

    def __init__(self, folder: Path, manifest: IndexManifest) -> None:
        self.folder = folder
        self._manifest = manifest

    @classmethod
    def create(cls, folder: str | Path, predictions: Predictions) -> "Index":
        """Write a new index. An existing index is replaced when the new index is complete.

        Args:
            folder: Folder of the index, which must be new, empty or an older index.
            predictions: Calibrated predictions of ``n`` images and ``c`` labels.

        Raises:
            NotFitted: If the predictions are not calibrated.
            InputError: If there is no label, a label name is empty, a name or path occurs twice, a
                path is not valid Unicode, a logit is outside [-40, 40], or a score is not finite.
            DataError: If the folder contains other files, cannot be written, or is being written by
                another process.
        """
        check_index_manifest_folder(Path(folder))
        index = cls(Path(folder), empty_manifest_for_ingestion(predictions))
        new_rows = predictions_to_ingestion_rows(predictions)
        with lock_index(index.folder):
            index._write([], new_rows, skipped_reasons_of_ingestion(predictions))
        return index

    @classmethod
    def open(cls, folder: str | Path) -> "Index":
        """Open an index. The arrays stay on disk and are mapped into memory.

        Args:
            folder: Folder of the index.

        Raises:
            DataError: If the folder is not an index, a newer version of the package wrote the
                index, or a file is missing or damaged.
        """
        manifest = load_index_manifest(Path(folder))
        while True:
            try:
                for shard in manifest.shards:
                    shard.check_files(len(manifest.names))
            except DataError:
                latest = load_index_manifest(Path(folder))
                if latest.revision == manifest.revision:
                    raise
                manifest = latest  # a writer replaced the index and deleted the older files
            else:
                return cls(Path(folder), manifest)

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._manifest.shards)

    def __repr__(self) -> str:
        """Return the folder, the numbers of images and labels, and the recognizer."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def names(self) -> list[str]:
        """Label names of the index, length c."""
        return list(self._manifest.names)

    @property
    def model(self) -> str:
        """Fingerprint of the recognizer that predicted the log-odds."""
        return self._manifest.model

    @property
    def calibration(self) -> str:
        """Description of the calibration of the log-odds."""
        return self._manifest.calibration

    @property
    def paths(self) -> list[str]:
        """Absolute paths of all images, in row order."""
        shards = self._manifest.shards
        return [path for shard in shards for path in shard.active_file_states["path"].to_pylist()]

    def search(self, query: str | Query, k: int = 20) -> HitList:
        """Return the ``k`` images that match a query with the highest probability, by exact search.

        Args:
            query: Query such as ``"fork & apple & !knife"``; see `parse`.
            k: Number of images, >= 1. If the index has fewer images, all images are returned.

        Returns:
            Images, sorted by decreasing probability, as a list that a notebook shows as a table.
            Images of equal probability are sorted by raw score, then by row number.

        Raises:
            InputError: If the query violates the grammar of `parse`, or ``k`` is not a whole number
                of at least 1.
            UnknownName: If a label of the query is not in the index.
            DataError: If the data of a queried label is damaged on disk.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(
                f"k, the number of images, must be a whole number of at least 1; got {k}."
            )
        query = parse(query) if isinstance(query, str) else query
        literals = query_to_columns(query, self._manifest.names)
        shards = self._manifest.shards
        for shard in shards:
            shard.verify_checksums([column for column, _ in literals])
        starts = np.cumsum([0] + [shard.n_rows for shard in shards])
        parts = [conjunction_search_top_k(shard.sorted_logits, literals, k) for shard in shards]
        best = merge_conjunction_search_rows(parts, starts.tolist()).select_best(k)
        hits: dict[int, Hit] = {}
        for shard, start in zip(shards, starts, strict=False):
            in_shard = (best.rows >= start) & (best.rows < start + shard.n_rows)
            rows = best.rows[in_shard]
            shard_hits = self._hits(shard, rows - start, best.scores[in_shard], literals)
            hits |= zip(rows.tolist(), shard_hits, strict=True)
        return HitList((hits[row] for row in best.rows.tolist()), query)

    def add(self, predictions: Predictions) -> None:
        """Add images; images that are already in the index are replaced.

        An indexed image that the predictions list as unreadable is removed from the index.

        Args:
            predictions: Predictions of the recognizer that created the index.

        Raises:
            InputError: If recognizer, calibration, label names or feature width differ from those
                of the index, or the predictions violate a condition of `create`.
            NotFitted: If the predictions are not calibrated.
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        manifest = self._manifest
        check_recognizer_of_ingestion(manifest, predictions)
        new_rows, unreadable = (
            predictions_to_ingestion_rows(predictions),
            skipped_reasons_of_ingestion(predictions),
        )
        replaced = {*absolute_file_state_paths(predictions.paths), *unreadable}
        with self._locked():
            shards = [
                shard.with_removed_rows(shard.find_rows(list(replaced)))
                for shard in manifest.shards
            ]
            skipped = {
                path: reason for path, reason in manifest.skipped.items() if path not in replaced
            }
            self._write(shards, new_rows, skipped | unreadable)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove images from the index; the image files are not deleted.

        Args:
            paths: Paths of the images to remove.

        Raises:
            UnknownName: If an image is not in the index; in this case, no image is removed.
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        removed_paths = list(dict.fromkeys(absolute_file_state_paths(paths)))
        with self._locked():
            rows = [shard.find_rows(removed_paths) for shard in self._manifest.shards]
            if sum(map(len, rows)) < len(removed_paths):
                indexed = set(self.paths)
                unknown = [path for path in removed_paths if path not in indexed]
                raise UnknownName(
                    f"Images to remove must be in the index; {len(unknown)} of "
                    f"{len(removed_paths)} are not, such as {unknown[0]!r}. Leave out these images."
                )
            pairs = zip(self._manifest.shards, rows, strict=True)
            shards = [shard.with_removed_rows(shard_rows) for shard, shard_rows in pairs]
            self._write(shards, None, self._manifest.skipped)

    def changed_paths(self) -> list[str]:
        """Return the paths of indexed images whose file changed after the prediction."""
        return list(self.status().changed)

    def status(self, images: Iterable[str] | None = None) -> IndexStatus:
        """Compare the index with the files on disk.

        Args:
            images: Paths of the images that should be in the index. If None, only images that could
                not be read at prediction time are reported as not indexed.
        """
        return compute_index_status(self._manifest.shards, self._manifest.skipped, images or ())

    def _summary(self) -> Summary:
        properties = {
            "folder": str(self.folder),
            "images": len(self),
            "labels": len(self._manifest.names),
            "calibration": self.calibration,
            "model": self.model,
        }
        return Summary("Index", properties)

    def _write(
        self, shards: Sequence[Shard], new_rows: ShardRows | None, skipped: dict[str, str]
    ) -> None:
        """Write new rows as a shard, then ``index.json``."""
        all_shards, batches = _select_index_shards_to_rewrite(shards, new_rows)
        if batches:
            number = next_shard_number_in_index_manifest(self.folder)
            all_shards.append(write_shard(self.folder, number, batches))
        old = self._manifest
        for shard in all_shards:
            shard.check_files(len(old.names))
        manifest = IndexManifest(old.names, old.model, old.calibration, tuple(all_shards), skipped)
        save_index_manifest(self.folder, manifest)
        self._manifest = manifest

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the index and check that the index on disk is the opened revision."""
        load_index_manifest(
            self.folder
        )  # raises before a lock file is created in a folder without index
        with lock_index(self.folder):
            if load_index_manifest(self.folder).revision != self._manifest.revision:
                raise DataError(
                    f"{self.folder} was changed by another process after it was opened. Open the "
                    f"index again and repeat the change."
                )
            yield

    def _hits(
        self, shard: Shard, rows: RowNumbers, scores: Floats, literals: Sequence[QueryLiteral]
    ) -> list[Hit]:
        columns = [column for column, _ in literals]
        names = [self._manifest.names[column] for column in columns]
        logits = np.stack([shard.sorted_logits.logits[column, rows] for column in columns], axis=1)
        probabilities = expit(logits.astype(np.float64))
        paths = shard.file_states["path"].take(rows).to_pylist()
        return [
            Hit(path, probability, dict(zip(names, label_probabilities, strict=True)))
            for path, probability, label_probabilities in zip(
                paths, np.exp(scores).tolist(), probabilities.tolist(), strict=True
            )
        ]


def _select_index_shards_to_rewrite(
    shards: Sequence[Shard], new_rows: ShardRows | None
) -> tuple[list[Shard], list[ShardRows]]:
    """Return the shards that stay unchanged, and the rows to write as one new shard.

    The last shard is rewritten if most of its rows were removed, or if it has at most as many rows
    as the new shard. Therefore the number of shards is logarithmic in the number of additions.
    """
    unchanged = [shard for shard in shards if len(shard)]
    batches = [] if new_rows is None or not new_rows.file_states.num_rows else [new_rows]
    n_rows = sum(batch.file_states.num_rows for batch in batches)
    while unchanged and (
        len(unchanged[-1]) <= n_rows or 2 * len(unchanged[-1]) < unchanged[-1].n_rows
    ):
        last = unchanged.pop()
        batches.insert(0, last.read_active_rows())
        n_rows += len(last)
    return unchanged, batches
