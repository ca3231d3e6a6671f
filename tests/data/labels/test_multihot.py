"""Multi-hot targets in .npz files, and in .npy files with lists of texts."""

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surelabel.data.labels import multihot
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages, RowSelection

NAN = np.nan
TARGETS = np.array([[1, 0, NAN], [0.5, 1, 0]])
PATHS = np.array(["a.jpg", "sub/c d.jpg"])
NAMES = np.array(["dog", "cat", "hot dog|x"])


def save(path, **arrays):
    np.savez_compressed(path, **({"targets": TARGETS, "paths": PATHS, "names": NAMES} | arrays))
    return path


def save_npy(folder, targets=TARGETS, paths="a.jpg\nsub/c d.jpg\n", names="dog\ncat\nhot dog|x"):
    np.save(folder / "x.npy", targets)
    (folder / "paths.txt").write_text(paths)
    (folder / "names.txt").write_text(names)
    return folder / "x.npy"


def cells(labelled):
    return np.where(labelled.known, labelled.targets, -1).tolist()


@pytest.mark.parametrize("kind", ["npz", "npy", "bytes"])
def test_targets_are_read_with_their_images_and_labels(folder, kind):
    if kind == "npy":
        path = save_npy(folder)
    else:
        texts = "S" if kind == "bytes" else "U"
        path = save(folder / "x.npz", paths=PATHS.astype(texts), names=NAMES.astype(texts))
    labelled = multihot.read(path)
    assert labelled.names == ["dog", "cat", "hot dog|x"]
    assert labelled.paths == [str(folder / "a.jpg"), str(folder / "sub/c d.jpg")]
    assert cells(labelled) == [[1, 0, -1], [0.5, 1, 0]]
    assert labelled.reading == "multi-hot float64 targets"
    reordered = multihot.read(path, images_root=folder, names=["owl", "hot dog|x", "cat", "dog"])
    assert cells(reordered) == [[-1, -1, 0, 1], [-1, 0, 1, 0.5]]
    with pytest.raises(DataError, match=r"must be in names, .* got 2 other labels: 'cat', 'hot"):
        multihot.read(path, names=["dog"])


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float16, np.float32])
def test_every_type_of_number_is_read(folder, kind):
    targets = np.asfortranarray([[1, 0, 0], [0, 1, 1]]).astype(kind)
    expected = [[1, 0, 0], [0, 1, 1]]
    assert cells(multihot.read(save(folder / "x.npz", targets=targets))) == expected
    assert cells(multihot.read(save_npy(folder, targets))) == expected


def test_minus_one_needs_a_meaning(folder):
    path = save(folder / "x.npz", targets=np.array([[1, 0, 0], [-1, 1, 0]]))
    message = r"x\.npz, row 1: the target of 'dog' is -1, .*Add --minus-one negative \(in Python"
    with pytest.raises(DataError, match=message):
        multihot.read(path)
    unknown = multihot.read(path, minus_one="unknown")
    assert cells(unknown) == [[1, 0, 0], [-1, 1, 0]]
    assert unknown.reading == "multi-hot int64 targets, where -1 is unknown"
    with pytest.raises(DataError, match=r"row 0: the target of 'cat' is 0, but -1 is negative"):
        multihot.read(path, minus_one="negative")
    both = multihot.read(path, minus_one="negative", zero="unknown")
    assert cells(both) == [[1, -1, -1], [0, 1, -1]]
    assert both.reading.endswith(", where -1 is negative and 0 is unknown")
    with pytest.raises(InputError, match="minus_one must be one of negative, unknown"):
        multihot.read(path, minus_one="absent")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"targets": TARGETS * 2}, r"row 0: the target of 'dog' must be in \[0, 1\] .*got 2\.0"),
        ({"targets": TARGETS - 0.75}, r"row 0: the target of 'cat' must be .*got -0\.75"),
        ({"targets": TARGETS + np.inf}, r"row 0: the target of 'dog' must be .*got inf"),
        ({"targets": np.full((2, 3), 255, np.uint8)}, r"row 0: the target of 'dog' .*got 255"),
        ({"targets": TARGETS[0]}, r"targets must be .* shape \(3,\) .*targets\.reshape\(-1, 1\)"),
        ({"targets": TARGETS.astype(complex)}, r"targets must be .* type complex128"),
        ({"targets": TARGETS.astype(str)}, r"targets must be .* type <U32"),
        (
            {"targets": TARGETS.astype(object)},
            r"in targets: an array of objects.*Save plain",
        ),
        ({"targets": TARGETS.T}, r"one column per name, \(2, 3\); got the shape \(3, 2\)"),
        ({"paths": PATHS[:1]}, r"one row per path .*, \(1, 3\); got the shape \(2, 3\)"),
        ({"paths": np.array([1, 2])}, r"the array paths must contain strings .*type int64"),
        ({"paths": PATHS[:, None]}, r"the array paths must .*shape \(2, 1\)"),
        ({"names": np.array([b"a", b"b", b"\xff"])}, r"the array names .*UTF-8.*at position 2"),
        (
            {"names": np.array(["dog", "cat", "dog"])},
            r"column 2: labels .*'dog', which is also",
        ),
        ({"names": np.array(["dog", " ", "x"])}, r"column 1: labels must be unique and not empty"),
        ({"names": np.array(["dog", "a\nb", "x"])}, r"a label must not contain a line break"),
        (
            {"targets": TARGETS[:, :0], "names": NAMES[:0]},
            r"must contain at least one label; got none",
        ),
        ({"paths": np.array(["a.jpg", "../x.jpg"])}, r"row 1 of paths: .*got '\.\./x\.jpg'"),
        ({"paths": np.array(["a.jpg", ""])}, r"row 1 of paths: .*got ''"),
        ({"paths": np.array(["a.jpg", "a.jpg"])}, r"each image once; got 1 repeated entry"),
        ({"paths": np.array(["a.jpg", "x.jpg"])}, r"must exist; 1 of 2 missing: '.*x\.jpg'"),
        ({"part": np.array(["train", "test"])}, r"must contain only the arrays .*also got 'part'"),
    ],
)
def test_an_invalid_array_is_refused(folder, arrays, message):
    path = save(folder / "x.npz", **arrays)
    with pytest.raises(DataError, match=rf"x\.npz.*{message}") as caught:
        multihot.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"paths": "a.jpg\n\nb.jpg"}, r"paths\.txt, line 2: expected one image path on each line"),
        ({"names": "dog\ncat\n\n"}, r"names\.txt, line 3: expected one label on each line"),
        ({"paths": "a.jpg\n../../b.jpg"}, r"paths\.txt, line 2: .*got '\.\./\.\./b\.jpg'"),
        ({"names": "dog\ncat"}, r"x\.npy: targets must have .*, \(2, 2\); got the shape \(2, 3\)"),
        ({"targets": np.array([["a"]], dtype=object)}, r"x\.npy is damaged: an array of objects"),
        (
            {"targets": np.array([[0, -1, 1], [1, 0, 1]])},
            r"x\.npy, row 0: the target of 'cat' is -1",
        ),
    ],
)
def test_an_invalid_file_beside_an_array_is_refused(folder, texts, message):
    path = save_npy(folder, **texts)
    with pytest.raises(DataError, match=message):
        multihot.read(path)


def test_missing_arrays_and_files_are_named(folder):
    np.savez(folder / "x.npz", targets=TARGETS, labels=NAMES)
    message = r"x\.npz must be .* missing keys: paths, names; keys of the file: 'targets', 'labels'"
    with pytest.raises(DataError, match=message):
        multihot.read(folder / "x.npz")
    path = save_npy(folder)
    (folder / "names.txt").unlink()
    with pytest.raises(
        DataError, match=r"names\.txt must contain one label on each line; .*missing"
    ):
        multihot.read(path)
    (folder / "x.npz").write_bytes(path.read_bytes())
    with pytest.raises(DataError, match=r"x\.npz must be .*got: a file with one array instead of"):
        multihot.read(folder / "x.npz")


def test_a_zip_bomb_is_refused_before_it_is_decompressed(folder):
    path = save(folder / "x.npz")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", b"x")
    content = bytearray(path.read_bytes())
    start = content.find(b"PK\x01\x02") + 24  # size of the first array in the central directory
    content[start : start + 4] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"got: arrays of 429496\d+ bytes, more than 4294967296"):
        multihot.read(path)


def test_only_files_of_targets_are_multihot_files(folder):
    assert multihot.is_multihot_file(save(folder / "x.npz"))
    assert multihot.is_multihot_file(save_npy(folder))
    np.savez(folder / "n.npz", targets=TARGETS, paths=PATHS)
    assert multihot.is_multihot_file(folder / "n.npz")
    assert not multihot.is_multihot_file(save(folder / "v.npz", features=TARGETS))
    assert not multihot.is_multihot_file(save(folder / "s.npz", scores=TARGETS))
    (folder / "d.npz").write_bytes(b"PK")
    for name in ("d.npz", "lost.npz", "lost.npy", "paths.txt"):
        assert not multihot.is_multihot_file(folder / name)


def test_images_that_cannot_be_written_are_refused(folder):
    images = LabelledImages([str(folder / "a.jpg")], ["dog"], [[1]])
    with pytest.raises(InputError, match=r"written to an \.npz file; got .*x\.npy"):
        multihot.write(images, folder / "x.npy")
    selected = LabelledImages(["a"], ["dog"], [[1]], row_selection=RowSelection(["random"], [0.5]))
    with pytest.raises(InputError, match="cannot store how each row was chosen"):
        multihot.write(selected, folder / "x.npz")
    with pytest.raises(InputError, match=r"A label must not contain a line break.*got 'a\\nb'"):
        multihot.write(LabelledImages(["a"], ["a\nb"], [[1]]), folder / "x.npz")
    with pytest.raises(DataError, match="must be valid UTF-8"):
        multihot.write(LabelledImages(["\udce9"], ["dog"], [[1]]), folder / "x.npz")
    assert not (folder / "x.npz").exists()


def test_paths_outside_of_the_folder_are_written_absolute(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    labelled = LabelledImages([str(folder / "a.jpg")], ["dog"], [[1]])
    for target, stored in ((folder, "a.jpg"), (other, str(folder / "a.jpg"))):
        multihot.write(labelled, target / "x.npz")
        assert np.load(target / "x.npz")["paths"].tolist() == [stored]
        again = multihot.read(target / "x.npz")
        assert (again.paths, again.names, cells(again)) == (labelled.paths, ["dog"], [[1]])


LABEL = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1
).filter(lambda text: text.strip() and "\0" not in text)


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_written_file_is_read_with_equal_targets(data):
    names = data.draw(st.lists(LABEL, min_size=1, max_size=4, unique=True))
    shape = (data.draw(st.integers(1, 4)), len(names))
    elements = st.sampled_from([0.0, 1.0, NAN]) | st.floats(0, 1)
    targets = data.draw(hnp.arrays(np.float64, shape, elements=elements))
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"{row}.jpg")) for row in range(shape[0])]
        for path in paths:
            Path(path).touch()
        multihot.write(LabelledImages(paths, names, targets), Path(folder, "x.npz"))
        labelled = multihot.read(Path(folder, "x.npz"))
    assert labelled.paths == paths
    assert labelled.names == names
    np.testing.assert_array_equal(np.where(labelled.known, labelled.targets, NAN), targets)
