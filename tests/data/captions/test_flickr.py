import pytest

from surelabel.data.captions import flickr
from surelabel.errors import DataError


def read(folder, data, read=flickr.read, **options):
    path = folder / "Flickr8k.token.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read(path, **options)


def test_each_line_is_an_image_a_number_and_a_caption(tmp_path):
    captions = read(tmp_path, "\ufeffa.jpg#0\tA dog , running .\r\n\r\na#b.jpg#12\ttwo\tcats \n")
    assert captions.texts == ["A dog , running .", "two cats"]
    assert captions.paths == [str(tmp_path / "a.jpg"), str(tmp_path / "a#b.jpg")]
    assert read(tmp_path, "a.jpg#0\tx", images_root="r").paths == ["r/a.jpg"]


def test_the_ids_of_pairs_are_the_image_and_the_token(tmp_path):
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    text = "b.jpg#0\ta bus\na.jpg#0\ta dog\na.jpg#1\ta puppy\n"
    pairs = read(tmp_path, text, read=flickr.read_pairs)
    assert pairs.image_ids == ["b.jpg", "a.jpg"]
    assert pairs.caption_ids == ["b.jpg#0", "a.jpg#0", "a.jpg#1"]
    assert pairs.image_rows.tolist() == [0, 1, 1]
    assert pairs.captions == ["a bus", "a dog", "a puppy"]


def test_a_repeated_number_and_a_missing_image_are_refused(tmp_path):
    (tmp_path / "a.jpg").touch()
    with pytest.raises(
        DataError, match=r"line 2: each caption .*'a\.jpg#0' is also the id in line 1"
    ):
        read(tmp_path, "a.jpg#0\tx\na.jpg#0\ty\n", read=flickr.read_pairs)
    with pytest.raises(
        DataError, match=r"must exist; 2 of 3 files are missing, such as '.*b\.jpg'"
    ):
        read(tmp_path, "a.jpg#0\tx\nb.jpg#0\ty\nc.jpg#0\ty\n", read=flickr.read_pairs)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "at least one caption; got none"),
        ("a.jpg#0\ta dog\nb.jpg#1 a cat\n", "line 2: expected an image, #.* got 'b.jpg#1 a cat'"),
        ("a.jpg\ta dog\n", r"line 1: expected an image, #.* got 'a\.jpg\\ta dog'"),
        ("a.jpg#x\ta dog\n", "line 1: expected an image"),
        ("#0\ta dog\n", "line 1: expected an image"),
        ("a.jpg#0\t\n", "line 1: expected an image"),
        ("a.jpg#0\ta\0b\n", r"line 1: a caption must not contain .*; got '\\x00'"),
        ("a\0.jpg#0\ta\n", "line 1: every caption must have an image path"),
        (f"a.jpg#0\t{'x' * 10_001}\n", "line 1: .*at most 10000 characters; got 10001"),
        (b"a.jpg#0\tcaf\xe9\n", "line 1: expected text in UTF-8"),
    ],
)
def test_a_file_that_is_no_list_of_tokens_is_refused_on_one_line(tmp_path, data, message):
    with pytest.raises(DataError, match=rf"token\.txt.*{message}") as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
