"""Search of several indexes, each of which is held by an actor of a Ray cluster."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surelabel.cluster.ray_connection import connect_to_ray, first_line_of_ray_error
from surelabel.errors import DataError, SurelabelError
from surelabel.retrieval import HitList, Index, Query, parse
from surelabel.retrieval.index_search import (
    IndexDescription,
    check_merged_indexes,
    search_merged_indexes,
)
from surelabel.retrieval.search_limits import SearchLimits

CPUS_PER_ACTOR = 0.01  # so that a cluster with few cores can hold many indexes


class IndexHolder:
    """Actor that holds an opened index; errors are returned, so that they keep their type."""

    def __init__(self, folder: str, root: str | None) -> None:
        self._folder, self._root = folder, root
        self._index: Index | None = None

    def call(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method of ``IndexSearcher``, the description, or an error.

        Args:
            method: Name of the method, or ``description``.
            arguments: Arguments of the method.
        """
        try:
            if self._index is None:
                self._index = Index.open(self._folder, root=self._root)
            if method == "description":
                return self._index.description
            return getattr(self._index.searcher, method)(*arguments)
        except SurelabelError as error:
            return error


class ClusterIndex:
    """Indexes that actors of a Ray cluster hold, which are searched as one index.

    Args:
        call: Function that calls a method of each actor at the same time, with its arguments.
        descriptions: Descriptions of the indexes.

    Raises:
        InputError: If an index is given twice, or labels, recognizer or calibration differ.
    """

    def __init__(
        self,
        call: Callable[[str, Sequence[tuple[Any, ...]]], list[Any]],
        descriptions: Sequence[IndexDescription],
    ) -> None:
        check_merged_indexes(descriptions)
        self._call, self._descriptions = call, descriptions

    def __len__(self) -> int:
        return sum(index.n_images for index in self._descriptions)

    @property
    def names(self) -> list[str]:
        """Label names of the indexes, length c."""
        return list(self._descriptions[0].names)

    @property
    def calibration(self) -> str:
        """Description of the calibration of the log-odds."""
        return self._descriptions[0].calibration

    def search(
        self,
        query: str | Query,
        k: int | None = 20,
        *,
        min_probability: float = 0.0,
        precision: float | None = None,
    ) -> HitList:
        """Return the images of all indexes that match a query, as ``ShardedIndex.search``.

        Args:
            query: Query such as ``"fork & apple & !knife"``; see ``Index.search``.
            k: Maximum number of images, >= 1. If None, the number of images has no limit.
            min_probability: Minimum probability that an image matches the query, in [0, 1].
            precision: Minimum expected precision of the result, in [0, 1]. If None, there is no
                minimum.

        Raises:
            InputError, NotFitted, UnknownName: As for ``Index.search``.
            DataError: As for ``ShardedIndex.search``, and if an actor fails.
        """
        limits = SearchLimits(k, min_probability, precision)
        limits.check_calibration(self.calibration)
        query = parse(query) if isinstance(query, str) else query
        row_counts = [index.n_rows for index in self._descriptions]
        return search_merged_indexes(self._call, row_counts, query, limits)


@contextmanager
def open_cluster_index(
    folders: Sequence[str | Path], *, address: str = "local", root: str | Path | None = None
) -> Iterator[ClusterIndex]:
    """Open several indexes in actors of a Ray cluster, until the end of the ``with`` block.

    The actors are spread over the nodes. Each node sees the folders of the indexes.

    Args:
        folders: Folders of the indexes.
        address: ``local``, ``auto`` or HOST:PORT; see ``connect_to_ray``.
        root: Root folder of the images of all indexes, if they were moved; see ``Index.open``.

    Raises:
        MissingPart: If Ray is not installed.
        ConfigError: If the cluster does not answer, or has other versions of packages.
        InputError: If there is no index, one is given twice, or labels, recognizer or calibration
            differ.
        DataError: If a folder is no index, an index is damaged, or an actor fails.
    """
    paths = [os.path.realpath(folder) for folder in folders]
    with connect_to_ray(address, recognizer_bytes=0):
        import ray

        make_remote: Any = ray.remote(num_cpus=CPUS_PER_ACTOR, scheduling_strategy="SPREAD")
        holder = make_remote(IndexHolder)
        absolute_root = None if root is None else os.path.abspath(root)
        actors = [holder.remote(path, absolute_root) for path in paths]

        def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
            try:
                results = ray.get(
                    [
                        actor.call.remote(method, *values)
                        for actor, values in zip(actors, arguments, strict=True)
                    ]
                )
            except ray.exceptions.RayError as error:
                raise DataError(
                    "Each actor must hold its index until the end of the search; got: "
                    f"{first_line_of_ray_error(error)}. Free memory, and search again."
                ) from error
            for result in results:
                if isinstance(result, SurelabelError):
                    raise result
            return list(results)

        try:
            yield ClusterIndex(call, call("description", [()] * len(paths)))
        finally:
            for actor in actors:
                ray.kill(actor)
