"""The recognizer of an index is loaded once, when a query needs it."""

import numpy as np

from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.retrieval.deferred_encoder import DeferredQueryEncoder


class RecordingEncoder:
    """Encoder whose vectors are constant, and whose sentences are their lengths."""

    def score_sentences(self, sentences):
        return [len(sentence) for sentence in sentences]

    def encode_example(self, path):
        return np.array([0.0, 1.0], np.float32)


def test_the_encoder_is_loaded_at_the_first_use_and_only_once():
    loads = []

    def load():
        loads.append(1)
        return RecordingEncoder()

    encoder = DeferredQueryEncoder(load)
    assert loads == []
    assert encoder.score_sentences(["a lion"]) == [6]
    assert encoder.encode_example("/a.jpg").tolist() == [0.0, 1.0]
    assert loads == [1]


def test_the_example_of_an_indexed_image_needs_no_encoder(tmp_path):
    logits, vectors = np.zeros((2, 1), np.float32), np.eye(2, dtype=np.float16)
    paths = [f"{tmp_path}/{name}.jpg" for name in "ab"]
    made = Predictions(paths, ["lion"], logits, logits, "by hand", "none", features=vectors)
    index = Index.create(tmp_path / "index", made)

    def load():
        raise AssertionError("the encoder was loaded")

    encoder = DeferredQueryEncoder(load)
    hits = index.search(f"like:{paths[1]}", encoder=encoder)
    assert [hit.path for hit in hits] == paths[::-1]
    other = DeferredQueryEncoder(RecordingEncoder)
    hits = index.search(f"like:{tmp_path}/new.jpg", encoder=other)
    assert [hit.path for hit in hits] == paths[::-1]
