import io
import os
import zipfile

import numpy as np
import pytest

from surelabel.data import read_feature_archive
from surelabel.errors import DataError

GOOD = {
    "features": np.arange(1, 13, dtype=np.float32).reshape(4, 3),
    "targets": np.array([[1, 0], [0, np.nan], [1, 1], [0, 0]]),
    "names": np.array(["dog", "cat"]),
}


def saved(tmp_path, **changed):
    arrays = {k: v for k, v in (GOOD | changed).items() if v is not None}
    np.savez(tmp_path / "v.npz", **arrays)
    return tmp_path / "v.npz"


def test_what_was_saved_comes_back_with_nan_as_unknown(tmp_path):
    found = read_feature_archive(saved(tmp_path))
    np.testing.assert_array_equal(found.all_rows.features, GOOD["features"])
    assert found.all_rows.names == ["dog", "cat"]
    assert found.all_rows.known.tolist() == [
        [True, True],
        [True, False],
        [True, True],
        [True, True],
    ]
    assert found.all_rows.paths[2] == "v.npz, row 2"
    assert found.splits == {}


def test_an_archive_without_labels_has_features_and_splits(tmp_path):
    part = np.array(["test", "train", "train", "test"])
    file = saved(tmp_path, targets=None, names=None, part=part)
    found = read_feature_archive(file, with_labels=False)
    np.testing.assert_array_equal(found.all_rows.features, GOOD["features"])
    assert (found.all_rows.names, found.all_rows.targets.shape) == ([], (4, 0))
    assert found.splits["test"].paths == ["v.npz, row 0", "v.npz, row 3"]
    with_labels = read_feature_archive(saved(tmp_path), with_labels=False)
    assert with_labels.all_rows.names == []


@pytest.mark.parametrize("kind", ["U", "S"])
def test_parts_are_taken_by_name_also_from_bytes(tmp_path, kind):
    part = np.array(["test", "train", "train", "test"]).astype(kind)
    found = read_feature_archive(saved(tmp_path, part=part, names=GOOD["names"].astype(kind)))
    assert list(found.splits) == ["train", "test"]
    np.testing.assert_array_equal(found.splits["test"].features, GOOD["features"][[0, 3]])
    assert found.splits["train"].names == ["dog", "cat"]
    assert found.splits["train"].paths == ["v.npz, row 1", "v.npz, row 2"]


def test_half_precision_and_flags_are_taken(tmp_path):
    file = saved(
        tmp_path,
        features=GOOD["features"].astype(np.float16),
        targets=np.array([[True, False]] * 4),
    )
    found = read_feature_archive(file).all_rows
    assert found.features.dtype == np.float32
    assert found.targets.tolist() == [[1, 0]] * 4


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"targets": None},
            r"got: missing keys: targets; keys of the file: 'features', 'names'\. Save plain "
            r"arrays, not objects: numpy\.savez\(FILE, features=…, targets=…, names=…\)\.$",
        ),
        (
            {"features": None, "targets": None, "names": None, "X": np.eye(2)},
            "got: missing keys: features, targets, names; keys of the file: 'X'\\. Save",
        ),
        (
            {"names": np.array(["dog", None])},
            "must be a feature archive; got: in names: an array of objects, .* Save plain arrays",
        ),
        (
            {"features": np.array(5.0)},
            r"features in .* must be a two-dimensional array .*; got an array of shape \(\) .*one "
            r"row per item and one column per feature\.$",
        ),
        (
            {"features": np.zeros(4)},
            r"got an array of shape \(4,\) .*: for a single feature, features\.reshape\(-1, 1\)\.$",
        ),
        (
            {"features": np.array([["a"]] * 4)},
            r"shape \(4, 1\) and type <U1\. Convert the array .*: features\.astype\(float\)",
        ),
        ({"targets": np.array([["1", "0"]] * 4)}, "targets in .* must be .* of numbers"),
        (
            {"targets": np.array([[1, 0], [0, 1], [0, 2], [3, 0]])},
            r"v.npz contains invalid features or targets: targets must be .* got 2\.0 in row 2, "
            r"column 1",
        ),
        (
            {"targets": np.zeros((3, 2))},
            "v.npz contains invalid .* got 4 rows of features and 3 rows of targets",
        ),
        ({"names": np.array(["dog"])}, "one column per label, 1; got 2"),
        (
            {"features": np.array([[1, np.nan, 2], [1, 2, 3], [np.inf] * 3, [0, 0, 1]])},
            r"must be finite; got 4 invalid values \(.*3e38\) in 2 rows: 0, 2 ",
        ),
        ({"features": np.full((4, 1), np.nan)}, "in 4 rows: 0, 1, 2, 3 "),
        ({"part": np.array(["train"] * 3)}, "must contain 4 values, .* got 3 values: train"),
        ({"part": np.array(["dev"] * 4)}, "each one of train, validation, test; .*: dev"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(tmp_path, changed, says):
    with pytest.raises(DataError, match=says):
        read_feature_archive(saved(tmp_path, **changed))


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "one.npy", GOOD["features"])
    with pytest.raises(
        DataError,
        match=r"archive; got: a file with one array instead of several arrays\. Save plain",
    ):
        read_feature_archive(tmp_path / "one.npy")
    with pytest.raises(DataError, match=r"cannot be read: No such file .*\. Check the path"):
        read_feature_archive(tmp_path / "none.npz")
    (tmp_path / "empty.npz").touch()
    with pytest.raises(DataError, match=r"empty\.npz must be a feature archive"):
        read_feature_archive(tmp_path / "empty.npz")
    (tmp_path / "text.npz").write_text("some text")
    with pytest.raises(
        DataError,
        match=r"text\.npz must be a feature archive; got: a file that is not in the \.npz format\.",
    ):
        read_feature_archive(tmp_path / "text.npz")
    whole = saved(tmp_path).read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"half\.npz must be a feature archive"):
        read_feature_archive(tmp_path / "half.npz")


def test_an_archive_with_damaged_content_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "v.npz", **GOOD)
    content = bytearray((tmp_path / "v.npz").read_bytes())
    content[60:90] = b"\x55" * 30
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(DataError, match="must be a feature archive"):
        read_feature_archive(tmp_path / "v.npz")


def test_an_array_that_claims_more_than_the_memory_is_refused(tmp_path):

    saved(tmp_path)
    header = io.BytesIO()
    claim = {"descr": "<f4", "fortran_order": False, "shape": (10**15, 3)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        archive.writestr("features.npy", header.getvalue() + b"1234")
        archive.writestr("targets.npy", b"")
        archive.writestr("names.npy", b"")
    with pytest.raises(
        DataError,
        match=r"got: in features: an array whose header declares 120{15} bytes, followed by 4",
    ):
        read_feature_archive(tmp_path / "v.npz")


def test_a_header_that_python_cannot_parse_is_refused(tmp_path):
    file = saved(tmp_path)
    content = file.read_bytes()
    changed = content.replace(b"'shape': (4, 3), }", b"'shape': (4, 3  , ", 1)
    assert changed != content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["features.npy"] = members["features.npy"].replace(b"(4, 3), }", b"(4, 3  , ")
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(DataError, match=r"archive; got: in features: Cannot parse header"):
        read_feature_archive(file)


def test_an_unknown_compression_method_and_a_named_pipe_are_refused(tmp_path):
    content = bytearray(saved(tmp_path).read_bytes())
    content[content.find(b"PK\x01\x02") + 10] = 99
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(DataError, match="features uses the unsupported compression method 99"):
        read_feature_archive(tmp_path / "v.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match=r"pipe\.npz cannot be read: .* got a named pipe"):
        read_feature_archive(tmp_path / "pipe.npz")


def test_two_arrays_state_how_rows_were_chosen(tmp_path):
    keys, probability = ["random", "", "representative", ""], [0.5, np.nan, np.nan, np.nan]
    part = np.array(["test", "train", "train", "test"])
    path = saved(tmp_path, chosen_by=keys, inclusion_probability=probability, part=part)
    found = read_feature_archive(path)
    assert found.all_rows.row_selection.chosen_by == keys
    assert found.splits["test"].row_selection.is_random.tolist() == [True, False]
    assert read_feature_archive(saved(tmp_path)).all_rows.row_selection is None
    for changed in ({"chosen_by": keys}, {"inclusion_probability": probability}):
        with pytest.raises(DataError, match="must be given together"):
            read_feature_archive(saved(tmp_path, **changed))
    with pytest.raises(DataError, match=r"inclusion_probability must be in \(0, 1\]"):
        read_feature_archive(saved(tmp_path, chosen_by=keys, inclusion_probability=np.ones(4)))


def test_an_array_contains_the_identifiers_of_the_rows(tmp_path):
    names = ["a", "b", "c", "d"]
    assert list(read_feature_archive(saved(tmp_path, paths=names)).all_rows.paths) == names
    assert read_feature_archive(saved(tmp_path)).all_rows.paths[1].endswith("row 1")
    for wrong, counts in (
        (["a", "b", "c", "a"], "3 distinct strings among 4"),
        (["a"], "1 distinct"),
    ):
        with pytest.raises(
            DataError, match=f"must contain 4 distinct strings, one per row; got {counts}"
        ):
            read_feature_archive(saved(tmp_path, paths=wrong))
