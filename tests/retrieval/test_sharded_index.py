"""Searching several indexes gives what one index of all rows gives."""

import os
from dataclasses import replace
from itertools import pairwise, product
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.errors import DataError, InputError, NotFitted, UnknownName
from surelabel.records import Predictions
from surelabel.retrieval import Index, ShardedIndex

NAMES = ["apple", "fork", "knife"]
QUERIES = ["fork", "!fork", "fork & apple", "apple & !knife", "!apple & !fork & knife"]


def predictions(logits, scores, start=0):
    paths = [f"/nowhere/{start + row:03}.jpg" for row in range(len(logits))]
    return Predictions(paths, NAMES, scores, logits, "platt on 500 images", "abc123")


def take(made, rows):
    paths = [made.paths[row] for row in rows]
    return Predictions(
        paths, NAMES, made.scores[rows], made.logits[rows], made.calibration, made.model
    )


@st.composite
def split_collections(draw):
    """Return predictions with many ties, the start of each shard, and removed rows."""
    n = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits, scores = random.integers(-2, 3, (2, n, 3)).astype(np.float32)
    starts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    removed = draw(st.sets(st.integers(0, n - 1), max_size=5))
    return predictions(logits, scores), [0, *starts, n], removed


@settings(max_examples=6)  # each writes up to six indexes and searches them often
@given(split_collections(), st.integers(2, 50))
def test_shards_split_at_random_give_rows_scores_order_and_ties_of_one_index(collection, some):
    made, starts, removed = collection
    with TemporaryDirectory() as folder:
        one = Index.create(f"{folder}/one", made, root="/nowhere")
        one.remove([made.paths[row] for row in removed])
        for part, (start, end) in enumerate(pairwise(starts)):
            shard = Index.create(
                f"{folder}/{part}", take(made, np.arange(start, end)), root="/nowhere"
            )
            if rows := [row for row in removed if start <= row < end]:
                shard.remove([made.paths[row] for row in rows])
        sharded = ShardedIndex.open([f"{folder}/{part}" for part in range(len(starts) - 1)])
        assert len(sharded) == len(one)
        for query, k, minimum, precision in product(
            QUERIES, (None, 1, some), (0.0, 0.2, 0.6), (None, 0.3, 0.7)
        ):
            limits = {"min_probability": minimum, "precision": precision}
            assert sharded.search(query, k, **limits) == one.search(query, k, **limits)


@pytest.fixture
def shards(tmp_path):
    random = np.random.default_rng(0)
    for part in range(2):
        logits = random.standard_normal((4, 3)).astype(np.float32)
        Index.create(tmp_path / str(part), predictions(logits, logits, 4 * part), root="/nowhere")
    return tmp_path


def test_an_image_in_two_shards_is_named_when_they_are_opened(shards):
    first, second = (Index.open(shards / str(part)) for part in range(2))
    sharded = ShardedIndex([first, second])
    logits = np.full((2, 3), -9, np.float32)
    first.add(predictions(logits, logits, 900))
    second.add(predictions(logits, logits, 901))
    expected = r"/nowhere/901\.jpg is in .*0 and in .*1 \(1 common image in total\)\. Build"
    with pytest.raises(DataError, match=expected):
        ShardedIndex.open([shards / "0", shards / "1"])
    assert len(sharded.search("fork", 5)) == 5
    with pytest.raises(DataError, match=r"in only one of the indexes; /nowhere/901.jpg is in two"):
        sharded.search("fork")  # it was added after the indexes were opened
    second.remove(["/nowhere/901.jpg"])
    assert len(ShardedIndex.open([shards / "0", shards / "1"])) == 11


def test_images_are_compared_by_absolute_paths_after_a_move(shards):
    logits = np.zeros((2, 3), np.float32)
    Index.create(shards / "2", predictions(logits, logits, 0), root="/")  # nowhere/000.jpg
    with pytest.raises(DataError, match=r"/nowhere/000.jpg is in .* \(2 common images in"):
        ShardedIndex.open([shards / "0", shards / "2"])
    moved = Index.open(shards / "2", root="/moved")
    assert len(ShardedIndex([Index.open(shards / "0"), moved])) == 6


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("names", ["apple", "fork", "spoon"], "label list"),
        ("names", ["fork", "apple", "knife"], "label list"),
        ("model", "other", "recognizer"),
        ("calibration", "isotonic on 9 images", "calibration"),
    ],
)
def test_indexes_of_other_predictions_are_refused(shards, field, value, what):
    logits = np.zeros((1, 3), np.float32)
    other = replace(predictions(logits, logits, 900), **{field: value})
    Index.create(shards / "2", other, root="/nowhere")
    with pytest.raises(InputError, match=rf"must have the same {what}; .*2 differ"):
        ShardedIndex.open([shards / "0", shards / "2"])


def test_no_index_and_an_index_twice_are_refused(shards):
    with pytest.raises(InputError, match="at least one index; got none"):
        ShardedIndex.open([])
    os.symlink(shards / "0", shards / "link")
    with pytest.raises(InputError, match="Each index must be given only once"):
        ShardedIndex.open([shards / "0", shards / "link"])


def test_the_errors_of_one_index_are_those_of_several(shards):
    sharded = ShardedIndex.open([shards / "0", shards / "1"])
    with pytest.raises(UnknownName, match="fokr"):
        sharded.search("fokr")
    with pytest.raises(InputError, match="k, the number of images"):
        sharded.search("fork", 0)
    with pytest.raises(DataError, match=r"index\.json"):
        ShardedIndex.open([shards / "0", shards / "none"])


def test_a_precision_needs_calibrated_probabilities(tmp_path):
    logits = np.zeros((1, 3), np.float32)
    made = replace(predictions(logits, logits), calibration="model")
    Index.create(tmp_path / "a", made, root="/nowhere")
    with pytest.raises(NotFitted, match="A minimum precision needs probabilities"):
        ShardedIndex.open([tmp_path / "a"]).search("fork", precision=0.5)


def test_a_summary_states_the_numbers(shards):
    text = repr(ShardedIndex.open([shards / "0", shards / "1"]))
    assert text.startswith("ShardedIndex(indexes=2, images=8, labels=3")
