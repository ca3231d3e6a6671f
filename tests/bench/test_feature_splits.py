import numpy as np
import pytest

from surelabel.bench import load_feature_splits
from surelabel.errors import DataError


def test_a_file_of_vectors_becomes_three_parts(tmp_path, parts):
    names = ("train", "validation", "test")
    np.savez(
        tmp_path / "birds.npz",
        features=np.vstack([parts[name].features for name in names]),
        targets=np.vstack([np.where(parts[n].known, parts[n].targets, np.nan) for n in names]),
        names=np.array(["cat", "dog", "sofa"]),
        part=np.repeat(names, [len(parts[name]) for name in names]),
    )
    found = load_feature_splits(tmp_path / "birds.npz")
    assert (found.name, found.encoder) == ("birds", "features:8")
    for name in names:
        part = getattr(found, name)
        np.testing.assert_array_equal(part.features, parts[name].features)
        np.testing.assert_array_equal(part.known, parts[name].known)


def test_parts_that_are_missing_are_named(tmp_path):
    content = {"features": np.ones((3, 2)), "targets": np.eye(3, 2), "names": ["a", "b"]}
    np.savez(tmp_path / "no.npz", **content)
    with pytest.raises(DataError, match="got no rows of train, validation, test"):
        load_feature_splits(tmp_path / "no.npz")
    np.savez(tmp_path / "some.npz", **content, part=["train", "train", "test"])
    with pytest.raises(DataError, match="got no rows of validation"):
        load_feature_splits(tmp_path / "some.npz")


def test_a_file_that_needs_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "x.npz", features=np.array([{}], dtype=object), targets=[[1]], names=["a"])
    with pytest.raises(DataError, match=r"x\.npz .*plain arrays"):
        load_feature_splits(tmp_path / "x.npz")


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"PK no archive")
    with pytest.raises(DataError, match=r"x\.npz .*numpy\.savez"):
        load_feature_splits(tmp_path / "x.npz")
