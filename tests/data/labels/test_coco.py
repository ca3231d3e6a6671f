import json

import pytest

from surelabel.data.labels import coco
from surelabel.errors import DataError


def content(**changes):
    return {
        "images": [
            {"id": 7, "file_name": "a.jpg"},
            {"id": 3, "file_name": "b.jpg"},
            {"id": 5, "file_name": "sub/c d.jpg"},
        ],
        "categories": [{"id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}],
        "annotations": [
            {"image_id": 7, "category_id": 1, "iscrowd": 1},
            {"image_id": 7, "category_id": 1, "iscrowd": 0},
            {"image_id": 5, "category_id": 90, "iscrowd": 0},
            {"image_id": 5, "category_id": 1, "iscrowd": 0},
        ],
    } | changes


def read(folder, value, **options):
    path = folder / "instances.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return coco.read(path, **options)


def test_instances_become_labels_crowds_count_and_the_rest_is_absent(folder):
    labelled = read(folder, content())
    assert labelled.names == ["toothbrush", "person"]
    assert labelled.paths == [str(folder / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert labelled.targets.tolist() == [[0, 1], [0, 0], [1, 1]]
    assert labelled.known.all()


def test_names_order_the_categories_and_others_are_unknown(folder):
    labelled = read(folder, content(), names=["person", "zebra", "toothbrush"])
    assert labelled.targets.tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert labelled.known.tolist() == [[True, False, True]] * 3
    with pytest.raises(DataError, match="which has 1 label; got 1 other label: 'tooth"):
        read(folder, content(), names=["person"])


def test_no_annotation_at_all_is_all_absent(folder):
    assert not read(folder, content(annotations=[])).targets.any()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "must be a COCO file in JSON; got: Expecting"),
        ("[1]", "one JSON object; got a value of type list"),
        ({}, "must be a COCO file with images.*missing or invalid entry: 'categories'"),
        (content(images=[{"id": 1}]), "missing or invalid entry: 'file_name'"),
        (content(images=3), "missing or invalid entry: 'int' object"),
        (content(images=[{"id": [1], "file_name": "a.jpg"}]), "invalid entry: .*unhashable"),
        (content(images=[]), "images and categories of the file; got unknown ids in 4 annotations"),
        (
            content(categories=[{"id": 1, "name": "person"}]),
            "such as image_id 5 with category_id 90",
        ),
        (
            content(categories=[{"id": 1, "name": "cat"}, {"id": 90, "name": "cat"}]),
            "must be unique; 'cat' is repeated. Rename the repeated categories",
        ),
        (content(images=[], annotations=[]), "at least one image with labels"),
        (
            content(
                images=[{"id": i, "file_name": f"{n}.jpg"} for n, i in enumerate([7, 3, 5, 7])]
            ),
            "must be unique; the id 7 is repeated.",
        ),
        (
            content(categories=[{"id": i, "name": f"{n}"} for n, i in enumerate([90, 1, 90])]),
            "must be unique; the id 90 is repeated.",
        ),
    ],
)
def test_a_file_that_is_not_coco_is_refused(folder, value, message):
    with pytest.raises(DataError, match=rf"instances\.json.*{message}"):
        read(folder, value)


def test_images_that_do_not_exist_are_refused(folder):
    with pytest.raises(
        DataError, match=r"All images of .* must exist; 3 of 3 missing.*relative to .*sub"
    ):
        read(folder, content(), images_root=folder / "sub")
