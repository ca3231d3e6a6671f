"""Rescored indexes: new labels and log-odds of the stored vectors, without removed images."""

from dataclasses import replace

import numpy as np
import pytest

from surelabel.errors import DataError, InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index, label_encoding
from surelabel.retrieval.index_rescoring import IndexScoring


def predictions(n, start=0, *, features=True):
    random = np.random.default_rng(start)
    logits = random.standard_normal((n, 2)).astype(np.float32)
    vectors = random.standard_normal((n, 3)).astype(np.float16) if features else None
    paths = [f"/nowhere/{start + row:03}.jpg" for row in range(n)]
    return Predictions(paths, ["a", "b"], logits, logits, "by hand", "model", vectors)


def score(vectors):
    """Log-odds of three labels: the sums of two components, and raw scores twice as large."""
    logits = (vectors + np.roll(vectors, 1, axis=1)).astype(np.float32)
    return logits, 2 * logits


SCORING = IndexScoring(["x", "b", "z"], "other", "new", score)


def test_all_rows_that_were_not_removed_have_new_labels_and_log_odds(tmp_path):
    index = Index.create(tmp_path, predictions(30))
    index.add(predictions(4, 30))
    index.remove(["/nowhere/003.jpg", "/nowhere/031.jpg"])
    reader, paths, vectors = (
        Index.open(tmp_path),
        index.paths,
        np.concatenate([*index.image_vectors()]),
    )
    before = reader.search("a & !b", 5)
    index.rescore(SCORING)
    for found in (index, Index.open(tmp_path)):
        assert (found.names, found.model, found.calibration) == (["x", "b", "z"], "other", "new")
        assert found.paths == paths
        assert found.description.n_rows == 32
        assert np.array_equal(np.concatenate([*found.image_vectors()]), vectors)
        logits = score(vectors)[0].astype(float)
        expected = 1 / (1 + np.exp(-logits[:, 0])) / (1 + np.exp(logits[:, 2]))
        np.testing.assert_allclose(found.probabilities("x & !z"), expected, rtol=1e-6)
    assert reader.search("a & !b", 5) == before  # a reader that opened the index before


def test_an_index_without_vectors_or_with_invalid_scores_stays_as_it_was(tmp_path):
    bare = Index.create(tmp_path / "bare", predictions(3, features=False))
    with pytest.raises(InputError, match=r"only from image vectors; .*bare does not"):
        bare.rescore(SCORING)
    index = Index.create(tmp_path / "index", predictions(3))
    content = (tmp_path / "index" / "index.json").read_bytes()
    wrong = IndexScoring(
        ["x"], "", "", lambda v: (np.full((len(v), 1), 41.0), np.zeros((len(v), 1)))
    )
    with pytest.raises(InputError, match=r"Log-odds must be in \[-40, 40\].*'image 0'"):
        index.rescore(wrong)
    assert (tmp_path / "index" / "index.json").read_bytes() == content
    with pytest.raises(InputError, match="distinct and not empty"):
        IndexScoring(["x", "x"], "", "", score)


def test_without_vectors_the_stored_raw_scores_are_calibrated(tmp_path):
    made = predictions(30, features=False)
    made = replace(made, scores=3 * made.scores - 1)
    index = Index.create(tmp_path, made)
    index.remove(made.paths[4:6])
    scoring = IndexScoring("ab", "other", "new", score, lambda scores: scores / 2)
    index.rescore(scoring)
    scores = np.delete(made.scores, [4, 5], axis=0).astype(float)
    np.testing.assert_allclose(
        index.probabilities("b"), 1 / (1 + np.exp(-scores[:, 1] / 2)), rtol=1e-6
    )
    index.rescore(scoring)  # the raw scores are still the same
    np.testing.assert_allclose(
        index.probabilities("a"), 1 / (1 + np.exp(-scores[:, 0] / 2)), rtol=1e-6
    )


def test_labels_without_raw_scores_are_not_calibrated(tmp_path, monkeypatch):
    monkeypatch.setattr(label_encoding, "SMALL_SHARD_ROWS", 5)
    made = predictions(30, features=False)
    index = Index.create(tmp_path, replace(made, scores=3 * made.scores - 1))
    with pytest.raises(InputError, match="image vectors or raw scores of all labels"):
        index.rescore(IndexScoring("ab", "other", "new", score, lambda scores: scores))


def test_damaged_vectors_are_not_scored(tmp_path):
    Index.create(tmp_path, predictions(3))
    file = tmp_path / "features-000.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"features-000\.npy is damaged"):
        Index.open(tmp_path).rescore(SCORING)
    assert Index.open(tmp_path).names == ["a", "b"]
