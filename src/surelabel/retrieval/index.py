"""Define the image index: calibrated log-odds in a folder, searched without reading images."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Array
from surelabel.errors import DataError, InputError, UnknownName
from surelabel.progress import Progress
from surelabel.records import Predictions
from surelabel.retrieval.file_state import FileState, absolute_file_state_paths
from surelabel.retrieval.hits import HitList
from surelabel.retrieval.hnsw_building import build_index_graphs
from surelabel.retrieval.index_lock import lock_index
from surelabel.retrieval.index_manifest import (
    IndexManifest,
    IndexRecognizer,
    check_index_manifest_folder,
    delete_unlisted_index_files,
    load_complete_index_manifest,
    load_index_manifest,
)
from surelabel.retrieval.index_rescoring import IndexScoring, rescored_rows
from surelabel.retrieval.index_root import (
    IndexRoot,
    common_index_root,
    default_index_root,
    root_of_index_version_1,
)
from surelabel.retrieval.index_search import (
    IndexDescription,
    IndexSearcher,
    call_index_searchers,
    plan_merged_search,
    score_sentences_of_query,
    search_merged_indexes,
)
from surelabel.retrieval.index_status import (
    IndexStatus,
    compute_index_status,
    recorded_file_states,
)
from surelabel.retrieval.index_writing import (
    write_compacted_index,
    write_index_update,
    write_rescored_index,
)
from surelabel.retrieval.ingestion import (
    check_recognizer_of_ingestion,
    empty_manifest_for_ingestion,
    predictions_to_ingestion_rows,
    skipped_reasons_of_ingestion,
)
from surelabel.retrieval.query import Query, parse
from surelabel.retrieval.query_encoding import QueryEncoder
from surelabel.retrieval.search_approximation import (
    SearchApproximation,
    approximation_of_search,
)
from surelabel.retrieval.search_limits import SearchLimits
from surelabel.retrieval.shard_layout import INDEX_VERSION
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_search import SearchStep
from surelabel.retrieval.shards import Shard
from surelabel.retrieval.sparse_labels import check_drop_below
from surelabel.summaries import Summary


class Index:
    """Searchable index of images, opened by `create` or `open`.

    A lock allows one process to write at a time. New files are written first and ``index.json`` is
    replaced last, so the index does not change if a process is interrupted. The next process that
    writes deletes the files of an interrupted process.

    The path of an image in the folder `root` is stored relative to `root`. If the images were moved
    together, the index is opened with their new root. The path of an image outside of `root` is
    stored as an absolute path, which does not change with `root`.
    """

    def __init__(self, folder: Path, manifest: IndexManifest, root: IndexRoot) -> None:
        self.folder = folder
        self._manifest = manifest
        self._root = root

    @classmethod
    def create(
        cls,
        folder: str | Path,
        predictions: Predictions,
        *,
        root: str | Path | None = None,
        recognizer: IndexRecognizer | None = None,
        must_be_new: bool = False,
    ) -> "Index":
        """Write a new index. An existing index is replaced when the new index is complete.

        Args:
            folder: Folder of the index, which must be new, empty or an older index.
            predictions: Calibrated predictions of ``n`` images and ``c`` labels.
            root: Root folder of the images. If None, the root is the common parent folder of the
                images, or, without images, the parent folder of the index.
            recognizer: Name and labels of the recognizer, which a search by sentence loads again.
                If None, the name and the labels are not recorded.
            must_be_new: Whether to raise an error if the folder contains an index.

        Raises:
            NotFitted: If the predictions are not calibrated.
            InputError: If there is no label, if a label name is empty, or if a name or path occurs
                twice. Also if a path is not valid Unicode, a logit is outside [-40, 40], or a score
                is not finite.
            DataError: If the folder contains other files, cannot be written, or is being written by
                another process. Also if ``must_be_new`` is True and the folder contains an index.
        """
        check_index_manifest_folder(Path(folder))
        skipped = skipped_reasons_of_ingestion(predictions)
        if root is None:
            paths = [*absolute_file_state_paths(predictions.paths), *skipped]
            root = common_index_root(paths, default_index_root(folder))
        index_root = IndexRoot.at(os.path.abspath(root))
        manifest = replace(
            empty_manifest_for_ingestion(predictions, index_root.current), recognizer=recognizer
        )
        index = cls(Path(folder), manifest, index_root)
        new_rows = predictions_to_ingestion_rows(predictions, index_root)
        with lock_index(index.folder):
            if must_be_new and (index.folder / "index.json").exists():
                raise DataError(
                    f"Another process created an index in {folder} at the same time. Run the "
                    "command again to add the images to this index."
                )
            index._write([], new_rows, skipped)
        return index

    @classmethod
    def open(cls, folder: str | Path, *, root: str | Path | None = None) -> "Index":
        """Open an index, whose arrays stay on disk and are mapped into memory.

        Args:
            folder: Folder of the index.
            root: Root folder of the images, if the images were moved. If None, the root is the
                stored root. The next change of the index, such as `upgrade`, stores the new root.

        Raises:
            DataError: If the folder is not an index, a newer version of the package wrote the
                index, or a file is missing or damaged.
        """
        manifest = load_complete_index_manifest(Path(folder))
        stored_root = manifest.root or root_of_index_version_1(folder, manifest.shards)
        current_root = stored_root if root is None else os.path.abspath(root)
        return cls(Path(folder), manifest, IndexRoot(stored_root, current_root))

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._manifest.shards)

    def __repr__(self) -> str:
        """Return the folder, the numbers of images and labels, and the recognizer."""
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_markup()

    @property
    def names(self) -> list[str]:
        """Return the label names of the index, length c."""
        return list(self._manifest.names)

    @property
    def revision(self) -> str:
        """Return the identifier of the opened revision; each change of the index replaces it."""
        return self._manifest.revision

    @property
    def model(self) -> str:
        """Return the fingerprint of the recognizer that predicted the log-odds."""
        return self._manifest.model

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the engines other than ``torch fp32`` that computed features of the images."""
        return self._manifest.engines

    @property
    def calibration(self) -> str:
        """Return the description of the calibration of the log-odds."""
        return self._manifest.calibration

    @property
    def root(self) -> str:
        """Return the absolute path of the root folder of images with relative stored paths."""
        return self._root.current

    @property
    def recognizer(self) -> IndexRecognizer | None:
        """Return the name and labels of the recognizer, or None if they were not recorded."""
        return self._manifest.recognizer

    @property
    def description(self) -> IndexDescription:
        """Return the folder, labels, recognizer, calibration, and numbers of images and rows."""
        manifest = self._manifest
        return IndexDescription(
            str(self.folder),
            tuple(manifest.names),
            manifest.model,
            manifest.calibration,
            len(self),
            sum(shard.n_rows for shard in manifest.shards),
            self.drop_below,
            self.ann_recall,
        )

    @property
    def searcher(self) -> IndexSearcher:
        """Return the object that searches the index, alone or together with other indexes."""
        return IndexSearcher(self._manifest.names, self._manifest.shards, self._root)

    @property
    def paths(self) -> list[str]:
        """Return the absolute paths of all images, in row order.

        Raises:
            DataError: If a stored path leaves the root.
        """
        columns = [shard.active_column("path") for shard in self._manifest.shards]
        return [self._root.resolve(path) for column in columns for path in column.to_pylist()]

    @property
    def content_hashes(self) -> list[str | None]:
        """Return the content hash of each image file, in row order.

        If the file could not be read when the image was indexed, the hash is None.
        """
        columns = [shard.active_column("hash") for shard in self._manifest.shards]
        return [text for column in columns for text in column.to_pylist()]

    @property
    def vector_width(self) -> int | None:
        """Return the width d of the image vectors, or None without images or image vectors."""
        shards = self._manifest.shards
        return shards[0].feature_width if shards else None

    def image_vectors(self) -> Iterator[npt.NDArray[np.float16]]:
        """Yield the image vectors in blocks, ``(b, d)``, in the order of `paths`.

        Only one block at a time is read from disk. Without image vectors, no block is yielded.

        Raises:
            DataError: If the vectors are damaged. The checksum is compared after each shard.
        """
        for shard in self._manifest.shards:
            yield from shard.active_feature_blocks()

    def paths_of_rows(self, rows: Sequence[int]) -> list[str]:
        """Return the absolute paths of some images.

        Args:
            rows: Positions of the images in `paths`, each in [0, n).

        Raises:
            DataError: If a stored path leaves the root.
        """
        paths: dict[int, str] = {}
        start = 0
        for shard in self._manifest.shards:
            in_shard = [row for row in rows if start <= row < start + len(shard)]
            if in_shard:
                local_rows = [row - start for row in in_shard]
                if shard.is_active is not None:
                    local_rows = np.flatnonzero(shard.is_active)[local_rows].tolist()
                stored_paths = shard.paths.of_rows(local_rows)
                paths |= zip(in_shard, map(self._root.resolve, stored_paths), strict=True)
            start += len(shard)
        return [paths[row] for row in rows]

    def search(
        self,
        query: str | Query,
        k: int | None = 20,
        *,
        min_probability: float = 0.0,
        precision: float | None = None,
        offset: int = 0,
        encoder: QueryEncoder | None = None,
    ) -> HitList:
        """Return the images that match a query with the highest probability, by exact search.

        If the index is in sparse form or has graphs, the result can be approximate. `approximation`
        describes the approximations that affect a query.

        With ``precision``, the result ends at the last rank at which the mean probability of all
        images up to this rank is at least ``precision``. The mean includes the images before
        ``offset``, and ``k`` and ``min_probability`` also apply. The mean is the expected precision
        of the list. This estimate is not a guarantee, and is only as reliable as the calibration.

        Args:
            query: Query such as ``"fork & (apple | pear) & !knife"``; see `parse`.
            k: Maximum number of images, >= 1. If None, the number of images has no limit.
            min_probability: Minimum probability that an image matches the query, in [0, 1].
            precision: Minimum expected precision of the result, in [0, 1]. If None, there is no
                minimum.
            offset: Number of the best images that are left out, >= 0.
            encoder: Recognizer of the index, from ``sl.query_encoder``. It is required for
                sentences, and for an example of ``like:`` that is not in the index.

        Returns:
            Images, sorted by decreasing probability, as a list that a notebook shows as a table.
            Images of equal probability are sorted by raw score, then by row number. If the query
            has an example and neither labels nor sentences, images are sorted by similarity. Images
            are left out if the filters make a match impossible.

        Raises:
            InputError: If the query violates the grammar of `parse`, or if ``k``, ``offset`` or a
                minimum is out of range. Also if the query needs an encoder that is not given, or
                image vectors, dates or sizes that the index does not contain.
            NotFitted: If ``precision`` is given, and the probabilities of the index were not
                calibrated on images.
            UnknownName: If a label of the query is not in the index.
            DataError: If the data of a queried label are damaged on disk, or if the stored path of
                a hit leaves the root. Also if a file was truncated after the index was opened.
        """
        limits = SearchLimits(k, min_probability, precision, offset)
        limits.check_calibration(self.calibration)
        query = parse(query) if isinstance(query, str) else query
        call = call_index_searchers([self])
        return search_merged_indexes(call, [self.description.n_rows], query, limits, encoder)

    def explain(
        self, query: str | Query, k: int = 20, *, encoder: QueryEncoder | None = None
    ) -> list[SearchStep]:
        """Return the steps of a search, one for each shard and combination of filters.

        Args:
            query: Query; see `parse`.
            k: Number of images that are ranked, >= 1.
            encoder: Recognizer of the index; see `search`.

        Raises:
            InputError, UnknownName, DataError: As for `search`.
        """
        limits = SearchLimits(k)
        query = parse(query) if isinstance(query, str) else query
        return plan_merged_search(
            call_index_searchers([self]),
            [self.description.n_rows],
            query,
            limits.n_ranked or k,
            encoder,
        )

    def probabilities(self, query: str | Query, *, encoder: QueryEncoder | None = None) -> Array:
        """Return the probability that each image matches a query, ``(n,)``, in row order.

        If the filters make a match of an image impossible, its probability is 0.

        Args:
            query: Query such as ``"fork & (apple | pear) & !knife"``, without ``like:``; see
                `parse`.
            encoder: Recognizer of the index, required for sentences; see `search`.

        Raises:
            InputError: If the query violates the grammar of `parse`, contains ``like:``, or needs
                data that are missing, as for `search`.
            UnknownName: If a label of the query is not in the index.
            DataError: If the data of a queried label are damaged on disk.
        """
        query = parse(query) if isinstance(query, str) else query
        if query.like is not None:
            raise InputError(
                "A query for probabilities must not contain a like: term; got "
                f"{query.like}. Use Index.search, or remove the like: term."
            )
        return self.searcher.probabilities(query, score_sentences_of_query(query, encoder))

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
        new_rows = predictions_to_ingestion_rows(predictions, self._root)
        unreadable = skipped_reasons_of_ingestion(predictions)
        replaced = {*absolute_file_state_paths(predictions.paths), *unreadable}
        stored_paths = self._stored_forms(replaced)
        with self._locked():
            shards = [
                shard.with_removed_rows(shard.find_rows(stored_paths)) for shard in manifest.shards
            ]
            skipped = {p: reason for p, reason in self._skipped().items() if p not in replaced}
            engines = {*manifest.engines, *empty_manifest_for_ingestion(predictions, "").engines}
            self._manifest = replace(manifest, engines=tuple(sorted(engines)))
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
            stored_paths = self._stored_forms(removed_paths)
            rows = [shard.find_rows(stored_paths) for shard in self._manifest.shards]
            if sum(map(len, rows)) < len(removed_paths):
                indexed = set(self.paths)
                unknown = [path for path in removed_paths if path not in indexed]
                raise UnknownName(
                    f"Images to remove must be in the index; {len(unknown)} of "
                    f"{len(removed_paths)} are not, such as {unknown[0]!r}. Leave out these images."
                )
            pairs = zip(self._manifest.shards, rows, strict=True)
            shards = [shard.with_removed_rows(shard_rows) for shard, shard_rows in pairs]
            self._write(shards, None, self._skipped())

    def upgrade(self, recognizer: IndexRecognizer | None = None) -> None:
        """Convert an index of an earlier version, and delete files of interrupted processes.

        An index of an earlier version is written in the current version, without predicting again.
        A new root, given to `open`, is stored. If the process is killed, the index is unchanged or
        complete.

        Args:
            recognizer: Name and labels of the recognizer to record. If None, the recorded name and
                labels do not change.

        Raises:
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        with self._locked():
            recorded = self._manifest.recognizer
            self._manifest = replace(self._manifest, recognizer=recognizer or recorded)
            is_current = (
                self._manifest.version == INDEX_VERSION and self._manifest.recognizer == recorded
            )
            if is_current and self._root.stored == self._root.current:
                delete_unlisted_index_files(self.folder, self._manifest)
            else:
                self._write(self._manifest.shards, None, self._skipped())

    def compact(self, *, drop_below: float | None = None) -> None:
        """Write the index again as one shard without removed images, in the current version.

        With ``drop_below``, the index is written in *sparse form*, which takes less space. For each
        label, only probabilities of at least ``drop_below`` are stored. All smaller probabilities
        of the label are replaced by their mean, so results of searches are approximate. Raw scores
        are not stored. Images that are added later are stored exactly until the next call with
        ``drop_below``.

        The disk needs space for the old and the new index. Searches during the compaction, and
        searches of processes that opened the index before, use the old files. If the process is
        killed, the index is unchanged or complete.

        Args:
            drop_below: Lowest probability that is stored, in (0, 0.5]. If None, an index whose
                images are all in sparse form stays in this form. Otherwise, the current
                probabilities of all images are stored.

        Raises:
            InputError: If ``drop_below`` is outside (0, 0.5], or below that of an earlier call.
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        if drop_below is not None:
            check_drop_below(drop_below)
            drop_below = float(drop_below)
            if self.drop_below is not None and drop_below < self.drop_below:
                raise InputError(
                    f"drop_below must be at least that of the index, {self.drop_below:g}, because "
                    f"smaller probabilities are not stored; got {drop_below:g}. Compute the "
                    "probabilities again (`surelabel index INDEX --rescore`), or build the index "
                    "again (`surelabel index`)."
                )
        with self._locked():
            self._manifest = write_compacted_index(
                self.folder,
                self._manifest,
                self._root,
                self._skipped(),
                drop_below=drop_below,
            )
            self._root = IndexRoot.at(self._root.current)

    def rescore(self, scoring: IndexScoring) -> None:
        """Replace labels, log-odds and raw scores, computed from the stored image vectors.

        In an index without image vectors, new log-odds are computed from the stored raw scores,
        which do not change. No image is read. If the process is killed, the index is unchanged or
        complete.

        Args:
            scoring: New labels and the function that computes their scores; see
                ``rescore_index`` for a recognizer.

        Raises:
            InputError: If the index has neither image vectors nor raw scores of its labels, if a
                logit is outside [-40, 40], or if a raw score is not finite.
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        self.upgrade()
        with self._locked():
            manifest = replace(
                self._manifest,
                names=tuple(scoring.names),
                model=scoring.model,
                calibration=scoring.calibration,
                recognizer=scoring.recognizer,
            )
            self._manifest = write_rescored_index(
                self.folder,
                manifest,
                self._root,
                lambda shard: rescored_rows(shard, scoring),
                self._skipped(),
            )

    def build_ann(self, progress: Progress | None = None) -> float:
        """Write graphs for an approximate search of the images that are similar to an example.

        A search with ``like:`` then reads the graphs instead of all image vectors. Labels and
        sentences are still searched exactly. Parts of the index that have a valid graph are left
        unchanged. Images that are added later are searched exactly until the next call. `compact`
        and `rescore` write an index without graphs.

        Args:
            progress: Function that is called with the number of images in the new graphs, and with
                the final number.

        Returns:
            The recall@100: the mean share of the 100 nearest images that the search returns,
            measured for 100 sampled images of each shard.

        Raises:
            MissingPart: If usearch is not installed.
            InputError: If the index has at most 1,000,000 images, or no image vectors.
            DataError: If another process changed or is changing the index, or the index is damaged
                or cannot be written.
        """
        self.upgrade()
        with self._locked():
            self._manifest = build_index_graphs(self.folder, self._manifest, progress)
        recall = self.ann_recall
        assert recall is not None
        return recall

    @property
    def ann_recall(self) -> float | None:
        """Return the mean recall@100 of the graphs of `build_ann`, or None without a graph.

        It is the mean of the shards that have a graph, weighted by their numbers of images.
        """
        recalls = [
            (shard.hnsw.recall, len(shard))
            for shard in self._manifest.shards
            if shard.hnsw is not None and len(shard)
        ]
        if not recalls:
            return None
        return float(np.average([r for r, _ in recalls], weights=[n for _, n in recalls]))

    @property
    def drop_below(self) -> float | None:
        """Return the limit below which probabilities were replaced by their mean, or None.

        It is the largest ``drop_below`` of `compact` that affects images of the index. If it is
        None, searches of labels are exact.
        """
        shards = [shard for shard in self._manifest.shards if len(shard)]
        limits = [shard.drop_below for shard in shards if shard.drop_below is not None]
        return max(limits, default=None)

    @property
    def n_bytes(self) -> int:
        """Return the size of the files of all shards in bytes."""
        return sum(sum(shard.files.values()) for shard in self._manifest.shards)

    @property
    def stored_share(self) -> float | None:
        """Return the share of the log-odds that are stored, in [0, 1], or None without images.

        The share is below 1 if a part of the index is in sparse form; see `compact`.
        """
        n_labels, shards = len(self._manifest.names), self._manifest.shards
        n_stored, n_values = 0, sum(shard.n_rows for shard in shards) * n_labels
        for shard in shards:
            counts = shard.layout.sparse_counts
            n_stored += shard.n_rows * n_labels if counts is None else sum(counts)
        return n_stored / n_values if n_values else None

    def approximation(self, query: str | Query) -> SearchApproximation:
        """Return the approximations of the index that affect a query.

        Args:
            query: Query; see `parse`.

        Raises:
            InputError: If the query violates the grammar of `parse`.
        """
        query = parse(query) if isinstance(query, str) else query
        reads_graphs = query.like is not None and self.searcher.reads_graphs(query.like.count)
        recall = self.ann_recall if reads_graphs else None
        return approximation_of_search(query, self.drop_below, recall)

    def changed_paths(self) -> list[str]:
        """Return the paths of indexed images whose file changed after the prediction."""
        return list(self.status().changed)

    def status(self, images: Iterable[str] | None = None) -> IndexStatus:
        """Compare the index with the files on disk.

        Args:
            images: Paths of the images that should be in the index. If None, only images that could
                not be read at prediction time are reported as not indexed.

        Raises:
            DataError: If a stored path leaves the root, or the stored paths are damaged.
        """
        manifest = self._manifest
        return compute_index_status(manifest.shards, manifest.skipped, images or (), self._root)

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState | None]:
        """Return the size, modification time and hash of image files at prediction time.

        Args:
            paths: Paths of images; images that are not in the index are left out. If None, the
                states of all images of the index are returned.

        Returns:
            State of each image by absolute path. The state is None if the file could not be read.

        Raises:
            DataError: If a stored path leaves the root, or the stored paths are damaged.
        """
        absolute = None if paths is None else absolute_file_state_paths(paths)
        return recorded_file_states(self._manifest.shards, self._root, absolute)

    def _summary(self) -> Summary:
        properties = {
            "folder": str(self.folder),
            "root": self.root,
            "images": len(self),
            "labels": len(self._manifest.names),
            "calibration": self.calibration,
            "model": self.model,
        }
        if self.engines:
            properties["engines"] = ", ".join(self.engines)
        if self.drop_below is not None:
            properties["approximate"] = f"no probabilities below {self.drop_below:g} are stored"
        return Summary("Index", properties)

    def _skipped(self) -> dict[str, str]:
        """Return the reason for each image that could not be read, by absolute path."""
        skipped = self._manifest.skipped
        return {self._root.resolve(path): reason for path, reason in skipped.items()}

    def _stored_forms(self, paths: Iterable[str]) -> list[str]:
        return [form for path in paths for form in self._root.stored_forms(path)]

    def _write(
        self, shards: Sequence[Shard], new_rows: ShardRows | None, skipped: dict[str, str]
    ) -> None:
        """Write new rows and the rows of merged shards as one shard, then ``index.json``.

        Args:
            shards: Shards of the index, with removed rows.
            new_rows: New rows. If None, no rows are added.
            skipped: Reason for each image that could not be read, by absolute path.
        """
        self._manifest = write_index_update(
            self.folder, self._manifest, self._root, shards, new_rows, skipped
        )
        self._root = IndexRoot.at(self._root.current)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the index and check that the index on disk is the opened revision."""
        load_index_manifest(self.folder)  # raises an error before the lock creates a folder
        with lock_index(self.folder):
            if load_index_manifest(self.folder).revision != self._manifest.revision:
                raise DataError(
                    f"Another process changed {self.folder} after the index was opened. Open the "
                    "index again and repeat the change."
                )
            yield
