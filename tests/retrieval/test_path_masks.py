"""Masks of path patterns are cached, and do not depend on what was searched before."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.retrieval import path_masks, shard_writing
from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.path_masks import CACHED_PATTERNS, PathMasks
from surelabel.retrieval.shard_rows import ShardRows
from surelabel.retrieval.shard_writing import write_shard

PATHS = [f"/{folder}/{row:02}.jpg" for row in range(7) for folder in ("Sea", "sea", "se_a", "İ")]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Paths of a shard in row groups of three rows."""
    logits = np.zeros((1, len(PATHS)), np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_writing, "ROW_GROUP_SIZE", 3)
        rows = ShardRows.from_arrays(file_state_table(PATHS), logits, logits, None)
        return write_shard(tmp_path_factory.mktemp("shard"), 0, [rows]).paths


@given(st.lists(st.sampled_from(["/sea/%", "%\\_%", "/SEA/0_.JPG", "%", "", "/x"]), max_size=9))
def test_a_mask_is_that_of_a_regular_expression(paths, patterns):
    masks = PathMasks(paths)
    for pattern in patterns:
        regex = re.escape(pattern).replace("%", ".*").replace(r"\\_", "\0").replace("_", ".")
        regex = regex.replace("\0", "_")
        expected = [bool(re.fullmatch(regex, path, re.IGNORECASE)) for path in PATHS]
        assert masks.of_pattern(pattern).tolist() == expected


def test_a_prefix_is_removed_from_the_paths_that_have_it(paths):
    expected = [path.startswith("/Sea/") for path in PATHS]
    assert PathMasks(paths).of_pattern("0%", "/Sea/").tolist() == expected


def test_the_last_patterns_are_not_matched_again(paths, monkeypatch):
    masks, matched = PathMasks(paths), []
    match = path_masks.pc.match_like

    def recorded(strings, pattern, **options):
        matched.append(pattern)
        return match(strings, pattern, **options)

    monkeypatch.setattr(path_masks.pc, "match_like", recorded)
    first = masks.of_pattern("/sea/%")
    matched.clear()
    again = masks.of_pattern("/sea/%")
    assert np.array_equal(first, again)
    assert matched == []
    again[:] = False  # a mask that is returned can be changed
    assert np.array_equal(masks.of_pattern("/sea/%"), first)
    for number in range(CACHED_PATTERNS):
        masks.of_pattern(f"{number}%")
    assert "/sea/%" not in matched
    assert np.array_equal(masks.of_pattern("/sea/%"), first)
    assert "/sea/%" in matched
    assert len(masks._masks) == CACHED_PATTERNS


def test_several_threads_get_the_mask_of_their_own_pattern(paths):
    masks = PathMasks(paths)
    patterns = [f"/%/{number % 14:02}.jpg" for number in range(600)]  # more than the cache holds
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(masks.of_pattern, patterns))
    for pattern, mask in zip(patterns, found, strict=True):
        assert mask.tolist() == [path.endswith(pattern[-6:]) for path in PATHS]
    assert len(masks._masks) == CACHED_PATTERNS
