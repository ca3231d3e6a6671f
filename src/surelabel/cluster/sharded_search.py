"""Search several indexes, each of which is opened by an actor of a Ray cluster."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surelabel.cluster.ray_connection import connect_to_ray, first_line_of_ray_error
from surelabel.errors import DataError, SurelabelError
from surelabel.retrieval import Index
from surelabel.retrieval.merged_index import MergedIndex

CPUS_PER_ACTOR = 0.01  # so that a cluster with few cores can hold many indexes


class IndexHolder:
    """Actor that holds an opened index; errors are returned, so that they keep their type."""

    def __init__(self, folder: str, root: str | None) -> None:
        self._folder, self._root = folder, root
        self._index: Index | None = None

    def call(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method of ``IndexSearcher``, or the error that was raised.

        Args:
            method: Name of the method, or ``description`` for the description of the index.
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


@contextmanager
def open_cluster_index(
    folders: Sequence[str | Path], *, address: str = "local", root: str | Path | None = None
) -> Iterator[MergedIndex]:
    """Open several indexes in actors of a Ray cluster, until the end of the ``with`` block.

    The actors are spread over the nodes. Each node must have access to the folders of the indexes.

    Args:
        folders: Folders of the indexes.
        address: ``local``, ``auto`` or HOST:PORT; see ``connect_to_ray``.
        root: Root folder of the images of all indexes, if they were moved; see ``Index.open``.

    Raises:
        MissingPart: If Ray is not installed.
        ConfigError: If the cluster does not respond, or has other versions of packages.
        InputError: If there is no index, if an index is given twice, or if labels, recognizer or
            calibration differ.
        DataError: If a folder is not an index, if an index is damaged, if an image is in two
            indexes, or if an actor fails.
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
                    "A search process of the cluster failed: "
                    f"{first_line_of_ray_error(error)}. Free memory, and search again."
                ) from error
            for result in results:
                if isinstance(result, SurelabelError):
                    raise result
            return list(results)

        try:
            descriptions = call("description", [()] * len(paths))
            yield MergedIndex(call, lambda: descriptions)
        finally:
            for actor in actors:
                ray.kill(actor)
