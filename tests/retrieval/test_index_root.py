"""Stored paths: inside the root they are relative, and none leaves it."""

import os

import pytest

from surelabel.errors import DataError
from surelabel.retrieval.index_root import IndexRoot, common_index_root

PATHS = ["/old/a.jpg", "/old/b/c.jpg", "/new/a.jpg", "/new/b/ä.jpg", "/oldest/a.jpg", "/old/new/x"]


def test_paths_in_the_root_are_relative_and_others_are_absolute():
    root = IndexRoot.at("/old")
    assert [root.stored_path(path) for path in PATHS] == ["a.jpg", "b/c.jpg", *PATHS[2:5], "new/x"]
    assert [root.resolve(root.stored_path(path)) for path in PATHS] == PATHS
    assert IndexRoot.at("/").stored_path("/a/b.jpg") == "a/b.jpg"


def test_a_moved_root_moves_its_images_and_no_others():
    moved = IndexRoot("/old", "/new/home")
    stored = ["a.jpg", "/old/b/c.jpg", "/oldest/a.jpg"]
    expected = ["/new/home/a.jpg", "/new/home/b/c.jpg", "/oldest/a.jpg"]
    assert [moved.resolve(path) for path in stored] == expected


@pytest.mark.parametrize(
    "root", [IndexRoot.at("/old"), IndexRoot("/old", "/new"), IndexRoot("/old", "/old/new")]
)
def test_the_stored_forms_of_a_path_are_those_that_lead_to_it(root):
    candidates = [*PATHS, *(os.path.relpath(path, "/old") for path in PATHS[:2]), "x", "new/x"]
    for path in {*PATHS, *map(root.resolve, candidates)}:
        forms = {form for form in candidates if root.resolve(form) == path}
        assert forms <= set(root.stored_forms(path))
        assert {root.resolve(form) for form in root.stored_forms(path)} <= {path}


@pytest.mark.parametrize(
    "path", ["../a.jpg", "b/../../a.jpg", "b/..", "..", "", ".", "./a", "b//a"]
)
def test_a_relative_path_that_leaves_the_root_is_refused(path):
    with pytest.raises(DataError, match=r"inside the root of the index; got .*damaged or unsafe"):
        IndexRoot.at("/old").resolve(path)


def test_the_root_of_new_images_is_their_common_folder():
    assert common_index_root(["/a/b/c.jpg", "/a/b/d/e.jpg"], "/x") == "/a/b"
    assert common_index_root(["/a/b/c.jpg"], "/x") == "/a/b"
    assert common_index_root(["/a/b.jpg", "/ab/b.jpg"], "/x") == "/"
    assert common_index_root([], "/x") == "/x"
