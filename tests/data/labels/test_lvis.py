import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.labels import lvis
from surelabel.errors import DataError

NAN = pytest.approx(np.nan, nan_ok=True)
HOST = "http://images.cocodataset.org"


def image(number, split="val2017", negative=(), not_exhaustive=()):
    """Return an image in the layout of the official file of LVIS v1."""
    return {
        "id": number,
        "license": 1,
        "height": 427,
        "width": 640,
        "coco_url": f"{HOST}/{split}/{number:012d}.jpg",
        "flickr_url": "http://farm7.staticflickr.com/6116/6255196340_da26cf2c9e_z.jpg",
        "date_captured": "2013-11-14 17:02:52",
        "neg_category_ids": list(negative),
        "not_exhaustive_category_ids": list(not_exhaustive),
    }


def category(number, name):
    return {
        "id": number,
        "name": name,
        "synset": f"{name}.n.01",
        "synonyms": [name, f"other_{name}"],
        "def": "a thing",
        "frequency": "f",
        "image_count": 3,
        "instance_count": 4,
    }


def annotation(image_id, category_id):
    return {
        "id": 10 * image_id + category_id,
        "image_id": image_id,
        "category_id": category_id,
        "bbox": [20.0, 30.0, 50.5, 60.25],
        "area": 320.5,
        "segmentation": [[20.0, 30.0, 70.5, 30.0, 70.5, 90.25]],
    }


def content(**changes):
    return {
        "info": {"description": "LVIS v1"},
        "annotations": [annotation(397133, 3), annotation(397133, 3), annotation(285, 4)],
        "categories": [category(4, "cat"), category(3, "dog_collar"), category(1, "owl")],
        "images": [
            image(397133, negative=[1], not_exhaustive=[3, 4]),
            image(285, "train2017", negative=[3]),
            image(724),
        ],
        "licenses": [],
    } | changes


@pytest.fixture
def root(tmp_path):
    for split, numbers in {"val2017": (397133, 724), "train2017": (285,)}.items():
        (tmp_path / split).mkdir()
        for number in numbers:
            (tmp_path / split / f"{number:012d}.jpg").touch()
    return tmp_path


def read(folder, value, **options):
    path = folder / "lvis_v1_val.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return lvis.read(path, **options)


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def test_annotated_is_positive_listed_is_negative_and_the_rest_is_unknown(root):
    labelled = read(root, content())
    assert labelled.names == ["cat", "dog_collar", "owl"]
    names = ["val2017/000000397133", "train2017/000000000285", "val2017/000000000724"]
    assert labelled.paths == [str(root / f"{name}.jpg") for name in names]
    assert by_nan(labelled) == [[NAN, 1, 0], [1, 0, NAN], [NAN, NAN, NAN]]
    assert "those in neg_category_ids are negative" in labelled.reading


def test_names_order_the_categories_and_others_are_unknown(root):
    labelled = read(root, content(), names=["owl", "zebra", "dog_collar", "cat"])
    assert by_nan(labelled)[0] == [0, NAN, 1, NAN]
    with pytest.raises(DataError, match="got 2 other labels: 'cat', 'owl'"):
        read(root, content(), names=["dog_collar"])


def test_images_lie_in_folders_of_coco_or_in_one_folder_or_at_file_name(root, tmp_path_factory):
    flat = tmp_path_factory.mktemp("flat")
    images = content()["images"]
    images[1]["file_name"] = "COCO_train2014_000000000285.jpg"  # LVIS v0.5, of a renamed file
    images[2]["file_name"] = "mine/724.png"
    (flat / "mine").mkdir()
    for name in ("000000397133.jpg", "000000000285.jpg", "000000000724.jpg", "mine/724.png"):
        (flat / name).touch()
    labelled = read(root, content(images=images), images_root=flat)
    names = ["000000397133.jpg", "000000000285.jpg", "mine/724.png"]
    assert labelled.paths == [str(flat / name) for name in names]


def test_images_that_do_not_exist_are_refused_with_their_first_path(root):
    (root / "train2017" / "000000000285.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of 3 missing: '.*/train2017/000000000285\.jpg'"):
        read(root, content())


def changed(number, **changes):
    images = content()["images"]
    images[number] |= changes
    return content(images=images)


def without(number, key):
    value = content()
    del value["images"][number][key]
    return value


BOTH = content()["annotations"] + [annotation(285, 3)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"images": [', "must be a COCO file in JSON; got: Expecting"),
        ("[]", "one JSON object; got a value of type list"),
        ({"images": []}, "must be an LVIS file .* missing or invalid entry: 'categories'"),
        (content(annotations=[{"image_id": 285}]), "missing or invalid entry: 'category_id'"),
        (content(images=["a.jpg"]), "missing or invalid entry: string indices"),
        (content(annotations=[annotation(5, 3)]), "such as image_id 5 with category_id 3"),
        (content(categories=[category(1, "owl"), category(2, "owl")]), "'owl' is repeated"),
        (content(images=[image(285), image(285)]), "the id 285 is repeated"),
        (
            content(annotations=BOTH),
            r"images\[1\]: a category must be either annotated or in neg_category_ids; got "
            r"'dog_collar' in both for the image 'train2017/000000000285\.jpg'",
        ),
        (without(2, "neg_category_ids"), r"images\[2\]: neg_category_ids .* got no such key"),
        (changed(1, neg_category_ids=3), r"images\[1\]: neg_category_ids must be a list .* got 3"),
        (changed(1, neg_category_ids=[9]), r"images\[1\]: neg_category_ids must .* got 9\. Remove"),
        (changed(0, not_exhaustive_category_ids=[8]), r"images\[0\]: not_exhaustive_.* got 8\. Re"),
        (without(2, "coco_url"), r"images\[2\]: an image must have coco_url or file_name; got nei"),
        (changed(0, coco_url="val2017/1.jpg"), r"images\[0\]: coco_url must be a URL such as"),
        (changed(0, coco_url=f"{HOST}/../x.jpg"), r"images\[0\]: an image must have a relative pa"),
        (changed(2, file_name="a/../../x.jpg"), r"images\[2\]: .* got 'a/\.\./\.\./x\.jpg'"),
        (changed(2, file_name="/etc/passwd"), r"images\[2\]: .* got '/etc/passwd'"),
        (changed(2, file_name="s3://bucket/x.jpg"), r"images\[2\]: .* got 's3://bucket/x\.jpg'"),
    ],
)
def test_a_file_that_is_not_lvis_or_not_safe_is_refused(root, value, message):
    with pytest.raises(DataError, match=rf"lvis_v1_val\.json.*{message}"):
        read(root, value)


def test_an_lvis_file_is_told_from_coco_by_its_key(root, monkeypatch):
    path = root / "lvis_v1_val.json"
    for block in (2**24, 70):  # blocks that divide the key
        monkeypatch.setattr(lvis, "_BLOCK_BYTES", block)
        path.write_text(json.dumps(content(), indent=1))
        assert lvis.is_lvis_file(path)
        path.write_text(json.dumps({"categories": [{"name": "neg_category_ids"}], "images": []}))
        assert not lvis.is_lvis_file(path)


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from("+-?n"), min_size=3, max_size=3), min_size=1, max_size=4))
def test_generated_files_are_read_as_they_were_written(tmp_path_factory, states):
    folder = tmp_path_factory.getbasetemp()
    images, annotations = [], []
    for number, row in enumerate(states):
        negative = [column for column, state in enumerate(row) if state == "-"]
        images.append(image(number, negative=negative, not_exhaustive=[0] if "n" in row else []))
        annotations += [annotation(number, c) for c, state in enumerate(row) if state == "+"]
        (folder / f"{number:012d}.jpg").touch()
    categories = [category(number, name) for number, name in enumerate("xyz")]
    value = content(images=images, annotations=annotations, categories=categories)
    expected = [[{"+": 1, "-": 0}.get(state, NAN) for state in row] for row in states]
    assert by_nan(read(folder, value)) == expected
