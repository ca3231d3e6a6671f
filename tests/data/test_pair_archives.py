import os

import numpy as np
import pytest

from surelabel.data import is_pair_archive, read_pair_archive
from surelabel.errors import DataError

GOOD = {
    "image_features": np.arange(6, dtype=np.float16).reshape(3, 2),
    "text_features": np.arange(20).reshape(5, 4),
    "image_rows": np.array([0, 1, 2, 2, 0], dtype=np.uint8),
}


def saved(folder, **changed):
    path = folder / "pairs.npz"
    np.savez(path, **{k: v for k, v in (GOOD | changed).items() if v is not None})
    return path


def test_vectors_of_different_width_come_back_with_their_rows(tmp_path):
    pairs = read_pair_archive(saved(tmp_path))
    assert pairs.image_vectors.dtype == pairs.text_vectors.dtype == np.float32
    np.testing.assert_array_equal(pairs.image_vectors, GOOD["image_features"])
    np.testing.assert_array_equal(pairs.text_vectors, GOOD["text_features"])
    assert pairs.image_rows.tolist() == [0, 1, 2, 2, 0]
    assert pairs.relevance is None


def test_a_damaged_or_missing_archive_has_no_vectors_of_captions(tmp_path):
    path = saved(tmp_path)
    assert is_pair_archive(path)
    assert not is_pair_archive(saved(tmp_path, text_features=None))
    content = bytearray(saved(tmp_path).read_bytes())
    content[content.find(b"PK\x01\x02")] = 0  # start of the directory of the archive
    path.write_bytes(content)
    assert not is_pair_archive(path)
    assert not is_pair_archive(tmp_path / "missing.npz")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"image_rows": None},
            "an archive of pairs; got: missing keys: image_rows; keys of the file: "
            "'image_features', 'text_features'",
        ),
        ({"image_features": None}, "got: missing keys: image_features; keys of"),
        (
            {"image_rows": np.array([0, 1, 2, 2, 3])},
            "invalid vectors or rows: image_rows .* below 3",
        ),
        ({"image_rows": np.array([0, 1, 2, 2, -1])}, "image_rows must be at least 0"),
        ({"image_rows": np.array([0.0, 1, 2, 2, 0])}, "image_rows must be a one-dimensional list"),
        ({"image_rows": np.array([0, 1])}, "one entry per caption, 5; got 2"),
        ({"image_features": np.ones(3)}, "image_features in .* one row per vector; got shape .3,."),
        (
            {"text_features": np.full((5, 4), "a")},
            "text_features in .* must be .* array of numbers .*<U1",
        ),
        ({"text_features": np.ones((5, 4), complex)}, "text_features in .* array of numbers"),
        ({"text_features": np.full((5, 4), np.nan)}, "text_vectors must be finite; got 5 rows"),
        ({"image_rows": np.array([0, None])}, "got: in image_rows: an array of objects"),
    ],
)
def test_an_archive_with_invalid_arrays_is_refused(tmp_path, changed, message):
    with pytest.raises(DataError, match=message) as caught:
        read_pair_archive(saved(tmp_path, **changed))
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("some text")
    with pytest.raises(DataError, match=r"text\.npz must be an archive of pairs"):
        read_pair_archive(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"lost\.npz cannot be read: No such file"):
        read_pair_archive(tmp_path / "lost.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match=r"pipe\.npz cannot be read: .* got a named pipe"):
        read_pair_archive(tmp_path / "pipe.npz")
