import json

import pytest

from surelabel.data.captions import jsonl
from surelabel.errors import DataError


def read(folder, *lines, read=jsonl.read, **options):
    path = folder / "captions.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts))
    return read(path, **options)


def test_a_line_has_one_caption_or_several(tmp_path):
    lines = [
        {"image": "a.jpg", "caption": "A  dog ."},
        "",
        {"image": "sub/b.jpg", "captions": ["a cat", "a kitten"], "width": 3},
        {"image": "c.jpg", "captions": []},
        {"image": "a.jpg", "caption": "a puppy"},
    ]
    captions = read(tmp_path, *lines)
    assert captions.texts == ["A dog .", "a cat", "a kitten", "a puppy"]
    names = ["a.jpg", "sub/b.jpg", "sub/b.jpg", "a.jpg"]
    assert captions.paths == [str(tmp_path / name) for name in names]
    assert read(tmp_path, lines[0], images_root="r").paths == ["r/a.jpg"]


def test_pairs_have_the_ids_of_the_lines(tmp_path):
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    pairs = read(
        tmp_path,
        {"image": "b.jpg", "image_id": 9, "captions": ["a cat", "x"], "caption_ids": [5, "f"]},
        {"image": "a.jpg", "image_id": "k", "caption": "a dog", "caption_id": 10**30},
        {"image": "b.jpg", "image_id": 9, "caption": "y", "caption_id": 3},
        read=jsonl.read_pairs,
    )
    assert pairs.image_ids == [9, "k"]
    assert pairs.caption_ids == [5, "f", 10**30, 3]
    assert pairs.image_rows.tolist() == [0, 0, 1, 0]
    assert pairs.captions == ["a cat", "x", "a dog", "y"]


def test_pairs_without_ids_and_images_without_captions_are_read(tmp_path):
    (tmp_path / "a.jpg").touch()
    lines = [{"image": f"{n}.jpg", "captions": []} for n in "cadeb"]
    expected = r"without a caption are ignored: 4 in .*, such as '.*b\.jpg', .*, '.*d\.jpg', …"
    with pytest.warns(UserWarning, match=expected):
        pairs = read(tmp_path, *lines, {"image": "a.jpg", "caption": "x"}, read=jsonl.read_pairs)
    assert (pairs.captions, pairs.image_ids, pairs.caption_ids) == (["x"], None, None)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [{"image": "a.jpg", "caption": "x", "image_id": 1}, {"image": "b.jpg", "caption": "y"}],
            "line 2: the image id must be an integer or a string; got",
        ),
        (
            [
                {"image": "a.jpg", "caption": "x", "image_id": 1},
                {"image": "a.jpg", "caption": "y", "image_id": 2},
            ],
            "line 2: .* must have the same image id; got 2 here and 1 in line 1",
        ),
        (
            [{"image": n, "caption": "x", "image_id": 1} for n in ("a.jpg", "b.jpg")],
            "line 2: each image must have a unique id; 1 is also the id in line 1",
        ),
        (
            [{"image": "a.jpg", "captions": ["x", "y"], "caption_ids": [1, 1]}],
            "line 1: each caption must have a unique id; 1 is also the id in line 1",
        ),
        (
            [{"image": "a.jpg", "caption": "x", "caption_id": 1.5}],
            "line 1: the caption id must be an integer or a string; got 1.5",
        ),
        (
            [{"image": "lost.jpg", "caption": "x"}],
            r"1 of \d files are missing, such as '.*lost\.jpg'",
        ),
    ],
)
def test_invalid_ids_and_missing_images_are_refused(tmp_path, lines, message):
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=message):
        read(tmp_path, *lines, read=jsonl.read_pairs)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "at least one caption; got none"),
        ("{", "line 1: expected one JSON object; got '{'"),
        ("[1]", 'line 1: expected {"image"'),
        ({"caption": "x"}, 'line 1: expected {"image"'),
        ({"image": "a.jpg"}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "captions": "a dog"}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "caption": "x", "captions": ["y"]}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "captions": ["y"], "caption_id": 1}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "captions": ["y"], "caption_ids": []}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "captions": ["y"], "caption_ids": 3}, 'line 1: expected {"image"'),
        ({"image": "a.jpg", "caption": None}, "line 1: expected a caption; got None"),
        ({"image": "a.jpg", "captions": ["x", 3]}, "line 1: expected a caption; got 3"),
        ({"image": 3, "caption": "x"}, "line 1: every caption must have an image path; got 3"),
        ({"image": " ", "captions": []}, "line 1: every caption must have an image path; got ' '"),
        (
            '{"image": "a", "image": "b", "caption": "x"}',
            "an object that contains the key 'image' twice",
        ),
        ("[" * 100_000, "line 1: expected one JSON object; got .*nested too deeply"),
    ],
)
def test_a_file_that_is_no_list_of_captions_is_refused_on_one_line(tmp_path, line, message):
    with pytest.raises(DataError, match=rf"captions\.jsonl.*{message}") as caught:
        read(tmp_path, line)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
