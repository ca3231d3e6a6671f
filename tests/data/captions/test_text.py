import pytest

from surelabel.data.captions import text
from surelabel.errors import DataError


def read(folder, data):
    path = folder / "captions.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return text.read(path)


def test_every_line_is_a_caption_and_empty_lines_are_ignored(tmp_path):
    captions = read(tmp_path, "\ufeffA dog , running .\r\n\r\n  two   cats  \n")
    assert captions.texts == ["A dog , running .", "two cats"]
    assert captions.paths is None


def test_texts_without_images_are_no_pairs(tmp_path):
    with pytest.raises(DataError, match=r"x\.txt contains captions without images\. Give COCO"):
        text.read_pairs(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "at least one caption; got none"),
        ("\n \n", "at least one caption; got none"),
        (b"caf\xe9", "must be text in UTF-8"),
        ("a dog".encode("utf-16"), "must be text in UTF-8"),
        ("a dog\na\0b", "must be text in UTF-8; got: a NUL byte"),
        ("a dog\n" + "x" * 10_001, "at most 10000 characters; got 10001"),
        ("a dog\na.jpg#0\tA dog .", r"line 2: expected one caption; .*a tab: 'a\.jpg#0"),
    ],
)
def test_a_file_that_is_no_list_of_captions_is_refused_on_one_line(tmp_path, data, message):
    with pytest.raises(DataError, match=rf"captions\.txt.*{message}") as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
