"""Define the interface of the recognizer for a search: log-odds of sentences, image vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class SentenceScoring(Protocol):
    """Log-odds that images match sentences, computed from the image vectors of an index."""

    def logits(self, vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
        """Return log-odds in [-40, 40], ``(n, s)``, of n image vectors, ``(n, d)``."""

    def variances(self, vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float32] | None:
        """Return the variance of the score of each sentence, ``(n, s)``.

        If the method does not estimate variances, the value is None.
        """


class QueryEncoder(Protocol):
    """Recognizer of an index, for the sentences and the example of a query."""

    def score_sentences(self, sentences: Sequence[str]) -> SentenceScoring:
        """Return the object that computes the log-odds of sentences."""

    def encode_example(self, path: str) -> npt.NDArray[np.float32]:
        """Return the vector of an image file, ``(d,)``."""
