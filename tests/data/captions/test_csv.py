import pytest

from surelabel.data.captions import csv
from surelabel.errors import DataError


def read(folder, data, **options):
    path = folder / "captions.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return csv.read(path, **options)


def test_quotes_commas_and_line_ends_of_windows_are_read(tmp_path):
    text = '\ufeffimage,caption\r\na.jpg,"A dog, and a cat"\r\n\r\nsub/b.jpg, two  "dogs"\r\n'
    captions = read(tmp_path, text)
    assert captions.texts == ["A dog, and a cat", 'two "dogs"']
    assert captions.paths == [str(tmp_path / "a.jpg"), str(tmp_path / "sub/b.jpg")]


def test_images_root_replaces_the_folder_of_the_file(tmp_path):
    assert read(tmp_path, "image,caption\na.jpg,x\n", images_root="r").paths == ["r/a.jpg"]


def test_an_absolute_path_remains(tmp_path):
    assert read(tmp_path, "image,caption\n/d/a.jpg,x\n").paths == ["/d/a.jpg"]


def test_pairs_have_each_image_once_in_the_order_of_the_lines(tmp_path):
    read(tmp_path, "image,caption\nb.jpg,A dog\na.jpg,a bus\nb.jpg,a puppy\n")
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    pairs = csv.read_pairs(tmp_path / "captions.csv")
    assert pairs.paths == [str(tmp_path / "b.jpg"), str(tmp_path / "a.jpg")]
    assert pairs.captions == ["A dog", "a bus", "a puppy"]
    assert pairs.image_rows.tolist() == [0, 1, 0]
    assert (pairs.image_ids, pairs.caption_ids, pairs.relevance) == (None, None, None)
    with pytest.raises(DataError, match=r"2 of \d files are missing, such as 'r/b\.jpg'"):
        csv.read_pairs(tmp_path / "captions.csv", images_root="r")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "the first line must be image,caption; got ''"),
        ("path,dog\na.jpg,1\n", "the first line must be image,caption; got 'path,dog'"),
        ("image;caption\na.jpg;x\n", "the first line must be image,caption; got 'image;caption'"),
        ("image,caption\n", "at least one caption; got none"),
        ("image,caption\na.jpg,A dog, a cat\n", "line 2: expected 2 columns.* got 3: 'a.jpg,A dog"),
        (
            "image,caption\na.jpg,x\n,A dog\n",
            "line 3: every caption must have .*image path; got ''",
        ),
        ("image,caption\na.jpg,\n", "line 2: expected a caption; got ''"),
        ("image,caption\na.jpg,a\0b\n", "line 2: a caption must not contain|line contains NUL"),
        (
            "image,caption\na\0.jpg,a\n",
            "line 2: every caption must have an image path|line contains NUL",
        ),
        (b"image,caption\na.jpg,caf\xe9\n", "must be a CSV file in UTF-8"),
        ("image,caption\na.jpg,x\n".encode("utf-16"), "must be a CSV file in UTF-8"),
        (f"image,caption\na.jpg,{'x' * 10_001}\n", "line 2: .*at most 10000 characters; got 10001"),
        (f'image,caption\na.jpg,"{"x" * 200_000}\n', "must be a CSV file .*field larger than"),
    ],
)
def test_a_file_that_is_no_table_of_captions_is_refused_on_one_line(tmp_path, data, message):
    with pytest.raises(DataError, match=rf"captions\.csv.*({message})") as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
