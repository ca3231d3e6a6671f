import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surelabel.data import (
    FailedImages,
    describe_prediction_run,
    find_part_rows,
    finished_prediction_rows,
    open_prediction_folder,
    read_failed_images,
    read_prediction_part,
    read_predictions,
    write_failed_images,
    write_prediction_part,
)
from surelabel.errors import DataError
from surelabel.records import Predictions, SkippedImage


@pytest.fixture
def run():
    paths = [f"{row}.jpg" for row in range(9)]
    return describe_prediction_run("0123abcd", ["lion"], "platt", paths, {})


@pytest.fixture
def folder(tmp_path, run):
    """A folder with two parts of four images, and one failed image."""
    open_prediction_folder(tmp_path, run)
    write(tmp_path, run, "a", [0, 1, 2, 3])
    write(tmp_path, run, "b", [4, 6, 7, 8])
    write_failed_images(tmp_path, run, failed([5]))
    return tmp_path


def write(folder, run, name, rows):
    values = np.array(rows, np.float32)[:, None]
    predictions = Predictions(
        [f"{row}.jpg" for row in rows], ["lion"], values, values, "platt", run.recognizer
    )
    return write_prediction_part(folder, run, name, predictions, np.array(rows, np.int64))


def failed(rows, reason="empty file"):
    return FailedImages(
        np.array(rows, np.int64), [SkippedImage(f"{row}.jpg", reason) for row in rows]
    )


def test_rows_name_their_part_and_position(folder):
    found = find_part_rows(folder)
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [found.files[part].name[5] for part in found.parts] == list("aaaabbbb")
    assert found.positions.tolist() == [0, 1, 2, 3] * 2
    assert finished_prediction_rows(folder).tolist() == list(range(9))


def test_a_folder_without_parts_has_no_rows(tmp_path, run):
    open_prediction_folder(tmp_path, run)
    assert len(find_part_rows(tmp_path)) == 0
    assert finished_prediction_rows(tmp_path).dtype == np.int64


def test_the_same_image_in_two_parts_names_both(folder, run):
    write(folder, run, "c", [2, 3])
    message = r"2 images occur in two parts, such as row 2 in part-a.parquet and part-c.parquet\."
    with pytest.raises(DataError, match=message):
        read_predictions(folder)


def test_failed_images_of_several_files_are_returned_once(folder, run):
    write_failed_images(folder, run, failed([8, 1]), name="second")
    write_failed_images(folder, run, failed([8], "of another file"), name="third")
    found = read_failed_images(folder)
    assert found.rows.tolist() == [1, 5, 8]
    assert found.images == tuple(SkippedImage(f"{row}.jpg", "empty file") for row in (1, 5, 8))


@pytest.mark.parametrize("name", ["part-a.parquet", "failed.parquet"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "folder"])
def test_a_damaged_file_is_named(folder, name, damage):
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage == "folder":
        (folder / name).mkdir()
    else:
        damaged = {"truncated": content[: len(content) // 2], "empty": b"", "text": b"text" * 9}
        (folder / name).write_bytes(damaged[damage])
    with pytest.raises(DataError, match=name) as caught:
        read_predictions(folder)
    assert "\n" not in str(caught.value)


def test_a_changed_byte_of_a_value_is_found(folder, run):
    file = write(folder, run, "a", [0, 1, 2, 3])
    column = pq.read_metadata(file).row_group(0).column(1)
    content = bytearray(file.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"part-a.parquet is damaged: .*Copy this file again, or"):
        read_predictions(folder)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([0, 1, 2, 9]), "row numbers must be strictly increasing and in"),
        (pa.array([-1, 1, 2, 3]), "row numbers must be strictly increasing and in"),
        (pa.array([1, 0, 2, 3]), "row numbers must be strictly increasing and in"),
        (pa.array([0.0, 1.0, 2.0, 3.0]), "row numbers must be integers"),
        (pa.array([0, 1, 2, None]), "row numbers must be integers"),
    ],
)
def test_rows_that_no_run_writes_are_damage(folder, column, reason):
    file = folder / "part-a.parquet"
    table = pq.read_table(file)
    index = table.column_names.index("row")
    pq.write_table(table.set_column(index, "row", column), file)
    with pytest.raises(DataError, match=f"part-a.parquet is damaged: {reason}"):
        find_part_rows(folder)


def test_a_part_of_another_run_is_refused(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    paths = [f"other/{row}.jpg" for row in range(9)]
    run = describe_prediction_run("0123abcd", ["lion"], "platt", paths, {})
    write(other, run, "c", [8]).rename(folder / "part-c.parquet")
    with pytest.raises(
        DataError, match=r"part-c.parquet must belong to the run in .*run.json; got"
    ):
        find_part_rows(folder)


def test_a_part_is_read_with_rows_hashes_and_vectors(folder, run):
    values = np.array([[1.0], [0.5]], np.float32)
    vectors = np.array([[1, 2, 3], [4, 5, 6]], np.float16)
    predictions = Predictions(
        ["8.jpg", "7.jpg"],
        ["lion"],
        values,
        values,
        "platt",
        "0123abcd",
        vectors,
        hashes=["x", "y"],
    )
    file = write_prediction_part(folder, run, "b", predictions, np.array([8, 7]))
    rows, found = read_prediction_part(file, run)
    assert rows.tolist() == [7, 8]
    assert (found.paths, found.hashes) == (["7.jpg", "8.jpg"], ["y", "x"])
    np.testing.assert_array_equal(found.features, vectors[::-1], strict=True)


def test_vectors_of_another_type_are_damage(folder, run):
    file = folder / "part-a.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("vector", pa.array([0.0] * 4)), file)
    with pytest.raises(DataError, match=r"part-a.parquet is damaged: vectors must be lists"):
        read_prediction_part(file, run)
