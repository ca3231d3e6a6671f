import json

import pytest

from surelabel.data.captions import coco
from surelabel.errors import DataError

IMAGES = [{"id": 7, "file_name": "a.jpg"}, {"id": 3, "file_name": "sub/b.jpg"}]


def read(folder, value, **options):
    path = folder / "captions.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return coco.read(path, **options)


def content(*pairs, **changes):
    annotations = [{"id": 1, "image_id": image, "caption": text} for image, text in pairs]
    return {"images": IMAGES, "annotations": annotations} | changes


def test_captions_come_in_the_order_of_the_annotations(tmp_path):
    captions = read(tmp_path, content((3, "A dog .\n"), (7, "two  cats"), (3, "a puppy")))
    assert captions.texts == ["A dog .", "two cats", "a puppy"]
    assert captions.paths == [str(tmp_path / p) for p in ("sub/b.jpg", "a.jpg", "sub/b.jpg")]


def test_images_root_replaces_the_folder_of_the_file(tmp_path):
    captions = read(tmp_path, content((7, "a dog")), images_root="/photos")
    assert captions.paths == ["/photos/a.jpg"]


def read_pairs(folder, value, *names, **options):
    read(folder, value)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    return coco.read_pairs(folder / "captions.json", **options)


def annotations(*entries):
    keys = ("image_id", "id", "caption")
    return [dict(zip(keys, entry, strict=True)) for entry in entries]


def test_pairs_keep_the_ids_of_images_and_captions(tmp_path):
    value = content(annotations=annotations((3, 90, "A dog ."), (7, 12, "a  cat"), (3, 11, "x")))
    pairs = read_pairs(tmp_path, value, "a.jpg", "sub/b.jpg")
    assert pairs.paths == [str(tmp_path / "sub/b.jpg"), str(tmp_path / "a.jpg")]
    assert pairs.captions == ["A dog .", "a cat", "x"]
    assert pairs.image_rows.tolist() == [0, 1, 0]
    assert (pairs.image_ids, pairs.caption_ids) == ([3, 7], [90, 12, 11])
    assert pairs.relevance is None


def test_annotations_without_ids_give_captions_without_ids(tmp_path):
    value = content(annotations=[{"image_id": 7, "caption": "a dog"}], images=IMAGES[:1])
    pairs = read_pairs(tmp_path, value, "a.jpg")
    assert (pairs.image_ids, pairs.caption_ids) == ([7], None)


def test_images_without_a_caption_are_counted_and_named(tmp_path):
    value = content(annotations=annotations((3, 1, "a dog")))
    with pytest.warns(
        UserWarning, match=r"without a caption are ignored: 1 in .*captions\.json.*a\.jpg'"
    ):
        pairs = read_pairs(tmp_path, value, "sub/b.jpg")
    assert pairs.image_ids == [3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"annotations": annotations((3, 1, "x"), (7, 1, "y"))},
            "must have a unique id; 1 is also the id in annotation 1",
        ),
        (
            {"annotations": [*annotations((3, 1, "x")), {"image_id": 7, "caption": "y"}]},
            "annotation 2: the caption id must be an integer or a string; got None",
        ),
        ({"annotations": annotations((3, True, "x"), (7, 1, "y"))}, "caption id .*; got True"),
        ({"annotations": annotations((3, [1], "x"), (7, 1, "y"))}, r"caption id .*; got \[1\]"),
        (
            {"images": [{"id": 7.5, "file_name": "a.jpg"}]}
            | {"annotations": annotations((7.5, 1, "x"))},
            "image id must be an integer .*; got 7.5",
        ),
        (
            {"images": [{"id": i, "file_name": "a.jpg"} for i in (3, 7)]}
            | {"annotations": annotations((3, 1, "x"), (7, 2, "y"))},
            "annotation 2: .* must have the same image id; got 7 here and 3 in annotation 1",
        ),
        (
            {"annotations": annotations((3, 1, "x"), (7, 2, "y"))}
            | {"images": [{"id": 7, "file_name": "a.jpg"}, {"id": 3, "file_name": "lost.jpg"}]},
            "files of all captions must exist; 1 of 2 files are missing, such as '.*lost.jpg'",
        ),
    ],
)
def test_pairs_with_invalid_ids_or_missing_images_are_refused(tmp_path, changes, message):
    with pytest.raises(DataError, match=message) as caught:
        read_pairs(tmp_path, content(**changes), "a.jpg", "sub/b.jpg")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "must be a COCO file in JSON; got: Expecting"),
        ("[1]", "one JSON object; got a value of type list"),
        ('{"a":' * 100_000, "must be a COCO file in JSON; got: .* too deeply"),
        (
            content(annotations=[{"image_id": 7, "category_id": 1}]),
            "invalid entry: 'caption'.*read them with read_labels",
        ),
        ({"images": IMAGES}, "missing or invalid entry: 'annotations'"),
        ({"annotations": []}, "missing or invalid entry: 'images'"),
        (content(images=[{"id": 7}]), "missing or invalid entry: 'file_name'"),
        (content(([7], "a dog")), "missing or invalid entry: .*unhashable"),
        (content(annotations={"a": 1}), "missing or invalid entry: string indices"),
        (
            content((5, "a dog")),
            "must refer to an image of the file; got image_id 5",
        ),
        (content(images=IMAGES * 2), "must be unique; the id 7 is repeated"),
        (content((7, "a dog"), (7, " ")), "annotation 2: expected a caption; got ' '"),
        (content((7, None)), "annotation 1: expected a caption; got None"),
        (
            content((7, "a\0b")),
            r"annotation 1: a caption must not contain .*; got '\\x00' after 'a'",
        ),
        (content((7, "a \ud800")), r"annotation 1: a caption must not contain .*; got '\\ud800'"),
        (content((7, "x" * 10_001)), "at most 10000 characters; got 10001 characters: 'xxx"),
        (content(), "must contain at least one caption; got none"),
        (
            content((7, "a dog"), images=[{"id": 7, "file_name": ""}]),
            "every caption must have an image path; got ''",
        ),
    ],
)
def test_a_file_that_is_no_coco_captions_is_refused_on_one_line(tmp_path, value, message):
    with pytest.raises(DataError, match=rf"captions\.json.*{message}") as caught:
        read(tmp_path, value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
