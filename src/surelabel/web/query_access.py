"""Restrict the queries of HTTP clients, and share one recognizer among the threads of the server.

A client must not name files of the server. The example of ``like:`` is therefore compared with the
paths of the index, and never opened.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.retrieval import Query
from surelabel.retrieval.query_encoding import QueryEncoder, SentenceScoring
from surelabel.storage.image_paths import join_image_path


class SharedQueryEncoder:
    """Encoder of sentences, which is loaded at its first use. One thread at a time encodes.

    Args:
        load: Function that returns the encoder.
    """

    def __init__(self, load: Callable[[], QueryEncoder]) -> None:
        self._load = load
        self._encoder: QueryEncoder | None = None
        self._lock = Lock()

    def score_sentences(self, sentences: Sequence[str]) -> SentenceScoring:
        """Return the object that computes the log-odds of sentences."""
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder.score_sentences(sentences)

    def encode_example(self, path: str) -> npt.NDArray[np.float32]:
        """Refuse the example of a query, because a client must not name files of the server.

        Raises:
            InputError: Always. An indexed image is found before this method is called.
        """
        raise InputError(
            f"The example of like: must be an indexed image; got {path}. Give the path of a hit, "
            "which is absolute or relative to the root of the index."
        )


def with_example_in_root(query: Query, root: str) -> Query:
    """Return a query with the absolute path of its example.

    A relative path refers to the root of the index. An absolute path and a URL remain unchanged.

    Args:
        query: Query of a client.
        root: Absolute path of the root of the index.
    """
    if query.like is None:
        return query
    path = join_image_path(root, query.like.path)
    return replace(query, like=replace(query.like, path=path))
