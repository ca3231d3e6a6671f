import os
import sys

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.recognizer.image_vector_file import ImageVectorFile


def test_vectors_are_read_as_they_were_written_and_the_file_has_no_name(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float16)
    with ImageVectorFile(tmp_path / "cache") as file:
        file.append(vectors[:2])
        file.append(vectors[2:])
        read = file.read(5)
    assert isinstance(read, np.memmap)
    np.testing.assert_array_equal(read, vectors)
    assert os.listdir(tmp_path / "cache") == []


def test_without_vectors_there_is_no_array(tmp_path):
    assert ImageVectorFile(tmp_path).read(0) is None
    with ImageVectorFile(tmp_path) as file:
        file.append(np.empty((0, 4), np.float16))
        assert file.read(0).shape == (0, 4)


def test_a_folder_that_cannot_be_written_is_replaced_by_the_temporary_folder(tmp_path):
    (tmp_path / "file").touch()
    with ImageVectorFile(tmp_path / "file" / "cache") as file:
        file.append(np.ones((1, 2), np.float16))
        np.testing.assert_array_equal(file.read(1), [[1, 1]])


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full exists on Linux only")
def test_a_full_disk_is_an_error_of_one_line(tmp_path, monkeypatch):
    full_disk = os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0)
    monkeypatch.setattr(
        "surelabel.recognizer.image_vector_file._open_image_vector_file", lambda folder: full_disk
    )
    with (
        ImageVectorFile(tmp_path) as file,
        pytest.raises(DataError, match=r"cannot be written to .*: No space left on device. Free"),
    ):
        file.append(np.ones((1, 2), np.float16))
