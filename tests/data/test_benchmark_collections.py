"""Collections of the benchmarks are generated once and read afterwards."""

import pytest

from surelabel.data.benchmark_collections import BENCHMARK_COLLECTIONS, benchmark_collection_scenes
from surelabel.errors import UnknownName


def test_a_benchmark_is_drawn_once_and_read_afterwards(tmp_path):
    seen = []
    first = benchmark_collection_scenes(
        "scenes-80", split="validation", cache_folder=tmp_path, count=3, progress=seen.append
    )
    again = benchmark_collection_scenes(
        "scenes-80", split="validation", cache_folder=tmp_path, count=3, progress=seen.append
    )
    assert seen == [3]
    assert first.images.paths == again.images.paths
    assert first.main_labels == again.main_labels
    assert len(first) == 3


def test_an_unknown_benchmark_gets_the_list(tmp_path):
    with pytest.raises(UnknownName, match=r"collection must be one of scenes-80; got 'coco'\."):
        benchmark_collection_scenes("coco", split="test", cache_folder=tmp_path)


def test_benchmarks_have_the_stated_sizes():
    sizes = {split: s.count for split, s in BENCHMARK_COLLECTIONS["scenes-80"].items()}
    assert sizes == {"train": 20_000, "validation": 5_000, "test": 10_000}
