from dataclasses import replace

import numpy as np

from surelabel.recognizer.prediction_joining import join_prediction_blocks
from surelabel.records import EncodingStats, Predictions, SkippedImage

NAMES = ["lion", "guitar"]


def block(*paths, skipped=(), stats=None):
    scores = np.array([[len(path), ord(path[0])] for path in paths], np.float32).reshape(-1, 2)
    return Predictions(
        paths,
        NAMES,
        scores,
        logits=scores / 100,
        features=scores.astype(np.float16),
        skipped=[SkippedImage(path, "empty file") for path in skipped],
        encoding_stats=stats,
        hashes=[f"hash of {path}" for path in paths] or None,
    )


def test_one_block_is_returned_as_it_is(tmp_path):
    only = block("a")
    assert join_prediction_blocks(iter([only]), n_images=1, folder=tmp_path) is only


def test_rows_are_in_the_order_of_the_blocks_and_counts_are_added(tmp_path):
    blocks = [
        block("a", "bb", skipped=["c"], stats=EncodingStats(1, 2.0, 3.0, 4)),
        block(skipped=["d", "e"]),
        block("f", stats=EncodingStats(10, 20.0, 30.0, 40)),
    ]
    joined = join_prediction_blocks(iter(blocks), n_images=6, folder=tmp_path)
    assert joined.paths == ["a", "bb", "f"]
    assert joined.hashes == ["hash of a", "hash of bb", "hash of f"]
    assert [image.path for image in joined.skipped] == ["c", "d", "e"]
    assert joined.encoding_stats == EncodingStats(11, 22.0, 33.0, 44)
    expected = [[1, ord("a")], [2, ord("b")], [1, ord("f")]]
    np.testing.assert_array_equal(joined.scores, expected)
    np.testing.assert_array_equal(joined.features, expected)
    np.testing.assert_allclose(joined.logits, np.array(expected) / 100)


def test_the_vectors_of_several_blocks_are_in_a_file_without_a_name(tmp_path):
    joined = join_prediction_blocks(iter([block("a"), block("b")]), n_images=2, folder=tmp_path)
    assert isinstance(joined.features, np.memmap)
    assert not list(tmp_path.iterdir())


def test_blocks_without_logits_have_none_when_joined(tmp_path):
    scores, vectors = np.ones((1, 2), np.float32), np.ones((1, 3), np.float16)
    blocks = [Predictions(path, NAMES, scores, features=vectors) for path in "ab"]
    joined = join_prediction_blocks(iter(blocks), n_images=2, folder=tmp_path)
    assert joined.logits is None


def test_uncertainties_of_blocks_are_joined_in_order(tmp_path):
    blocks = [
        replace(b, uncertainty=b.scores**2, uncertainty_kind="match_variance")
        for b in (block("a", "bb"), block(skipped=["c"]), block("d"))
    ]
    joined = join_prediction_blocks(iter(blocks), n_images=4, folder=tmp_path)
    np.testing.assert_array_equal(joined.uncertainty, joined.scores**2)
    assert (joined.uncertainty.shape, joined.uncertainty_kind) == ((3, 2), "match_variance")
