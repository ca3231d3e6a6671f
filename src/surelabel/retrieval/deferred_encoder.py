"""Defer the loading of the recognizer of an index until a query needs it."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.retrieval.query_encoding import QueryEncoder, SentenceScoring


class DeferredQueryEncoder:
    """Query encoder that a function loads at the first use.

    If the example of ``like:`` is an indexed image and the query has no sentence, the search needs
    no encoder and does not import the encoders.

    Args:
        load: Function that returns the encoder.
    """

    def __init__(self, load: Callable[[], QueryEncoder]) -> None:
        self._load = load

    @cached_property
    def _encoder(self) -> QueryEncoder:
        return self._load()

    def score_sentences(self, sentences: Sequence[str]) -> SentenceScoring:
        """Return the object that computes the log-odds of sentences."""
        return self._encoder.score_sentences(sentences)

    def encode_example(self, path: str) -> npt.NDArray[np.float32]:
        """Return the vector of an image file, ``(d,)``."""
        return self._encoder.encode_example(path)
