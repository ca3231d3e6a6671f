"""Links to the hits of a search."""

import os

import pytest

from surelabel.errors import DataError
from surelabel.retrieval import Hit
from surelabel.retrieval.hit_links import link_hits


def test_links_are_named_by_rank_probability_and_file(tmp_path):
    paths = []
    for number, name in enumerate(["b.jpg", "a.jpg", "b.jpg", "é" * 120 + ".jpg"]):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        path.write_text(name)
        paths.append(str(path))
    hits = [Hit(path, 0.9 - 0.1 * rank, {}) for rank, path in enumerate(paths)]
    missing = [Hit(str(tmp_path / "x.tar" / "c.jpg"), 0.1, {}), Hit("s3://bucket/d.jpg", 0.1, {})]
    assert link_hits([*hits, *missing], tmp_path / "new" / "links") == [hit.path for hit in missing]
    links = sorted((tmp_path / "new" / "links").iterdir())
    assert [str(link.resolve()) for link in links] == paths
    assert [link.name for link in links[:2]] == ["0001-0.900-b.jpg", "0002-0.800-a.jpg"]
    assert links[3].name.endswith("é.jpg")
    assert len(os.fsencode(links[3].name)) <= 255


def test_sorted_names_have_the_order_of_the_result_and_long_suffixes_keep_the_rank(tmp_path):
    name = "q." + "j" * 250
    (tmp_path / name).write_text("")
    link_hits([Hit(str(tmp_path / name), 0.5, {})] * 10_002, tmp_path / "links")
    links = sorted(os.listdir(tmp_path / "links"))
    assert [int(link.partition("-")[0]) for link in links] == list(range(1, 10_003))
    assert links[0].startswith("00001-0.500-q.jjj")


def test_a_folder_with_files_and_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"must be new or empty; .* is not empty"):
        link_hits([], tmp_path)
    with pytest.raises(DataError, match=r"^Links cannot be written to .* symbolic links"):
        link_hits([], tmp_path / "file")
