"""Images in two indexes are found with hashes, and compared by their paths."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.errors import DataError
from surelabel.retrieval import path_overlap
from surelabel.retrieval.path_overlap import (
    check_no_image_is_in_two_indexes,
    hash_paths_of_index,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def call_lists(lists, hash_paths):
    """Return a function that answers for indexes whose images are lists of paths."""

    def call(method, arguments):
        if method == "path_hashes":
            return [hash_paths(paths) for paths in lists]
        return [
            [path for path in paths if np.isin(hash_paths([path]), hashes)[0]]
            for paths, (hashes,) in zip(lists, arguments, strict=True)
        ]

    return call


def hash_by_length(paths):
    return np.array([len(path) for path in paths], np.int64)


@given(st.lists(TEXTS, unique=True, max_size=20))
def test_a_hash_is_the_polynomial_of_the_bytes(paths):
    expected = [
        sum(byte * 256**place for place, byte in enumerate(path.encode())) % (2**61 - 1)
        for path in paths
    ]
    assert hash_paths_of_index(iter(paths)).tolist() == expected


@settings(max_examples=50)
@given(
    st.lists(st.sets(st.text("ab", min_size=1, max_size=6), max_size=12), max_size=4),
    st.sampled_from([hash_paths_of_index, hash_by_length]),
    st.integers(1, 3),
)
def test_an_image_in_two_indexes_is_named_also_if_other_hashes_are_equal(sets, hash_paths, at_once):
    lists, folders = list(map(sorted, sets)), [f"index-{n}" for n in range(len(sets))]
    is_repeated = sum(map(len, sets)) > len(set().union(*sets))
    call = call_lists(lists, hash_paths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_overlap, "HASHES_PER_CALL", at_once)
        if not is_repeated:
            assert check_no_image_is_in_two_indexes(call, folders) is None
            return
        with pytest.raises(DataError, match=r"; [ab]+ is in index-\d and in index-\d") as caught:
            check_no_image_is_in_two_indexes(call, folders)
    pattern = r"; ([ab]+) is in (index-\d) and in (index-\d)"
    path, first, second = re.search(pattern, str(caught.value)).groups()
    assert first != second
    assert all(path in sets[int(folder[-1])] for folder in (first, second))
