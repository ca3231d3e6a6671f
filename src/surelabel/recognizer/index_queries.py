"""Encode the sentences and the example image of a query with the recognizer of an index."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from surelabel.errors import InputError
from surelabel.recognizer.index_recognizer import recognizer_of_index
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.sentence_log_odds import SentenceLogOdds, sentence_scorer
from surelabel.retrieval import Index


class IndexQueryEncoder:
    """Recognizer of an index, which is loaded when a query needs it.

    Attributes:
        index: Index of images.
    """

    def __init__(self, index: Index, model: str | None, device: str) -> None:
        self.index = index
        self._model, self._device = model, device

    @cached_property
    def recognizer(self) -> Recognizer:
        """Return the recognizer of the index, which is loaded at the first use."""
        return recognizer_of_index(self.index, self._model, device=self._device)

    def score_sentences(self, sentences: Sequence[str]) -> SentenceLogOdds:
        """Return a function that computes the log-odds of sentences; see ``sentence_scorer``.

        Args:
            sentences: Sentences, length s.
        """
        return sentence_scorer(self.index, self.recognizer, sentences)

    def encode_example(self, path: str) -> npt.NDArray[np.float32]:
        """Return the vector of an image file, ``(d,)``.

        Args:
            path: Path of the image.

        Raises:
            DataError: If the image cannot be read.
            InputError: If the recognizer has no image vectors.
        """
        vectors = self.recognizer.predict([path]).features
        if vectors is None:
            raise InputError(
                f"like: needs image vectors; {self.recognizer.encoder.name} computes no image "
                "vectors. Use a recognizer that encodes images."
            )
        return np.asarray(vectors[0], np.float32)


def query_encoder(
    index: Index, model: str | None = None, *, device: str = "cpu"
) -> IndexQueryEncoder:
    """Return an encoder of sentences and example images, with the recognizer of an index.

    The recognizer is loaded at the first use.

    Args:
        index: Index of images.
        model: Saved recognizer or name of an encoder. If None, the name that the index records is
            used.
        device: PyTorch device of the encoder.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import surelabel as sl
        >>> images = sl.collection("scenes-80", split="test").take(range(8))
        >>> recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion"])
        >>> with TemporaryDirectory() as folder:
        ...     index = sl.Index.create(folder, recognizer.predict(images))
        ...     encoder = sl.query_encoder(index, "tiny-vit")
        ...     hits = index.search('~"a lion"', k=3, encoder=encoder)
        >>> len(hits), list(hits[0].terms)
        (3, ['~"a lion"'])
    """
    return IndexQueryEncoder(index, model, device)
