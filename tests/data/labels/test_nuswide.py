import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surelabel.data.labels import nuswide
from surelabel.errors import DataError, InputError

IMAGES = ["actor\\0001_21.jpg", "actor\\0002_22.jpg", "zoo\\0001_23.jpg"]
TARGETS = {"airport": [0, 0, 1], "animal": [1, 0, 1], "sky": [0, 1, 0]}
SPLITS = {  # rows of a list: files of its targets and of its tags
    "Imagelist.txt": ([0, 1, 2], "AllLabels/Labels_{}.txt", "AllTags1k.txt"),
    "TrainImagelist.txt": ([0, 2], "TrainTestLabels/Labels_{}_Train.txt", "Train_Tags1k.dat"),
    "TestImagelist.txt": ([1], "TrainTestLabels/Labels_{}_Test.txt", "Test_Tags1k.dat"),
}
TAGS = {"nature": [1, 0, 0], "blue": [0, 1, 1]}


def write_lines(file, lines):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes("".join(f"{line}\r\n" for line in lines).encode())


def write(root, images=IMAGES, targets=TARGETS, tags=TAGS, splits=SPLITS):
    """Write the files of NUS-WIDE in their layout, with the line ends of Windows."""
    write_lines(root / "Concepts81.txt", targets)
    write_lines(root / "NUS_WID_Tags/TagList1k.txt", tags)
    for name, (rows, target_file, tag_file) in splits.items():
        write_lines(root / "ImageList" / name, [images[row] for row in rows])
        for concept, column in targets.items():
            file = root / "Groundtruth" / target_file.format(concept)
            write_lines(file, [column[row] for row in rows])
        lines = ["\t".join(str(column[row]) for column in tags.values()) + "\t" for row in rows]
        write_lines(root / "NUS_WID_Tags" / tag_file, lines)
    for image in images:
        file = root.joinpath("Flickr", *image.split("\\"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.fixture
def root(tmp_path):
    write(tmp_path)
    return tmp_path


def images_of(labelled, root):
    return [os.path.relpath(path, root / "Flickr") for path in labelled.paths]


def test_the_folder_has_the_concepts_of_all_images(root):
    labelled = nuswide.read(root)
    assert labelled.names == ["airport", "animal", "sky"]
    assert images_of(labelled, root) == [
        "actor/0001_21.jpg",
        "actor/0002_22.jpg",
        "zoo/0001_23.jpg",
    ]
    assert labelled.targets.T.tolist() == list(TARGETS.values())
    assert labelled.known.all()
    assert labelled.reading == (
        "NUS-WIDE, images of Imagelist.txt, 3 concepts of Groundtruth/AllLabels"
    )


@pytest.mark.parametrize("name", SPLITS)
def test_an_image_list_selects_a_split(root, name):
    rows = SPLITS[name][0]
    labelled = nuswide.read(root / "ImageList" / name)
    assert images_of(labelled, root) == [IMAGES[row].replace("\\", "/") for row in rows]
    assert labelled.targets.T.tolist() == [[c[row] for row in rows] for c in TARGETS.values()]


@pytest.mark.parametrize("name", SPLITS)
def test_a_tag_matrix_selects_the_tags_of_a_split(root, name):
    rows, _, file = SPLITS[name]
    labelled = nuswide.read(root / "NUS_WID_Tags" / file)
    assert labelled.names == ["nature", "blue"]
    assert labelled.targets.T.tolist() == [[c[row] for row in rows] for c in TAGS.values()]
    assert labelled.reading.endswith(f"2 tags of {file}; a missing tag is negative")
    unknown = nuswide.read(root / "NUS_WID_Tags" / file, missing="unknown")
    np.testing.assert_array_equal(unknown.known, labelled.targets == 1)
    assert unknown.reading.endswith("a missing tag is unknown")


def test_a_path_relative_to_the_working_directory_is_read(root, monkeypatch):
    monkeypatch.chdir(root)
    assert nuswide.read("ImageList/TestImagelist.txt").paths == ["Flickr/actor/0002_22.jpg"]
    monkeypatch.chdir(root / "ImageList")
    expected = [str(root / "Flickr/actor/0002_22.jpg")]
    assert nuswide.read("TestImagelist.txt").paths == expected


def test_other_folders_and_names_are_options(root):
    (root / "Flickr").rename(root / "photos")
    (root / "ConceptsList").mkdir()
    (root / "Concepts81.txt").rename(root / "ConceptsList/Concepts81.txt")
    names = ["sky", "x", "animal", "airport"]
    labelled = nuswide.read(root, images_root=root / "photos", names=names)
    assert labelled.targets[:, 0].tolist() == TARGETS["sky"]
    assert labelled.known.tolist() == [[True, False, True, True]] * 3
    for folder in ("actor", "zoo"):
        (root / "photos" / folder).rename(root / folder)
    assert nuswide.read(root).paths[2] == str(root / "zoo/0001_23.jpg")


def test_the_layout_is_detected_by_the_names_of_its_files(root):
    assert nuswide.is_nuswide_path(root)
    assert nuswide.is_nuswide_path(root / "ImageList/TestImagelist.txt")
    assert nuswide.is_nuswide_path(root / "NUS_WID_Tags/Train_Tags1k.dat")
    for other in ("Flickr", "Concepts81.txt", "NUS_WID_Tags/TagList1k.txt", "ImageList/No.txt"):
        assert not nuswide.is_nuswide_path(root / other)
    (root / "ImageList/TestImagelist.txt").rename(root / "TestImagelist.txt")
    assert not nuswide.is_nuswide_path(root / "TestImagelist.txt")
    with pytest.raises(
        DataError, match=r"must be the folder of NUS-WIDE, or one of its files Imag"
    ):
        nuswide.read(root / "TestImagelist.txt")
    (root / "ImageList/Imagelist.txt").unlink()
    assert nuswide.is_nuswide_path(root)
    with pytest.raises(DataError, match=r"ImageList/Imagelist\.txt; this file is missing"):
        nuswide.read(root)


SKY = "Groundtruth/AllLabels/Labels_sky.txt"
TAG_FILE = "NUS_WID_Tags/AllTags1k.txt"
TAG_LIST = "NUS_WID_Tags/TagList1k.txt"
LIST = "ImageList/Imagelist.txt"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (SKY, "0\n2\n0\n", f"{SKY}, line 2: the target of an image must be 0 or 1; got '2'"),
        (SKY, "0\n\n0\n", f"{SKY}, line 2: the target of an image must be 0 or 1; got ''"),
        (
            SKY,
            "0\n1\n",
            f"{SKY} must have one line for each image of .*{LIST}; got 2 lines and 3 im",
        ),
        (SKY, "0\n1\n0\n1\n", f"{SKY} must have one line for each image of .*{LIST}; got 4 lines"),
        (SKY, None, f"{SKY} cannot be read: No such file"),
        (LIST, "a.jpg\n..\\b.jpg\nc.jpg\n", f"{LIST}, line 2: .*; got '../b.jpg'"),
        (
            LIST,
            "a.jpg\n\nc.jpg\n",
            f"{LIST}, line 2: an image must have a relative path .*; got ''",
        ),
        (LIST, "C:\\a.jpg\nb.jpg\nc.jpg\n", f"{LIST}, line 1: an image must have a relative path"),
        (LIST, "zoo\\x.jpg\nb.jpg\nc.jpg\n", "must exist; 3 of 3 missing"),
        (LIST, "zoo\\0001_23.jpg\n" * 3, "must contain each image once; got 2 repeated entries"),
        ("Concepts81.txt", "sky\nsky\n", "Concepts81.txt, line 2: .*; got 'sky', which is also on"),
        (
            "Concepts81.txt",
            "sky\n../sky\n",
            "Concepts81.txt, line 2: .* without /, .*; got '../sky'",
        ),
        ("Concepts81.txt", "", "Concepts81.txt, line 1: .*; got ''"),
        (
            "Concepts81.txt",
            None,
            "must contain Concepts81.txt or ConceptsList/Concepts81.txt; both",
        ),
        (TAG_FILE, "0 1\n0 x\n0 1\n", f"{TAG_FILE}, line 2: .*; got 2 values, one of which is 'x'"),
        (TAG_FILE, "0 1\n0\n0 1\n", f"{TAG_FILE}, line 2: expected 2 values, .*; got 1 value."),
        (TAG_FILE, "0 1\n\n0 1\n", f"{TAG_FILE}, line 2: expected 2 values, .*; got 0 values"),
        (
            TAG_FILE,
            "0 1\n0 1\n",
            f"{TAG_FILE} must have one line for each .*{LIST}; got 2 lines and",
        ),
        (
            TAG_FILE,
            "0 1\n" * 4,
            f"{TAG_FILE} must have one line for each .*{LIST}; got 4 lines and 3",
        ),
        (TAG_LIST, "blue\nblue\n", f"{TAG_LIST}, line 2: .*; got 'blue', which is also on line 1"),
    ],
)
def test_damaged_files_are_refused_with_their_names_and_lines(root, file, content, message):
    (root / file).unlink()
    if content is not None:
        (root / file).write_text(content)
    expected = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises(DataError, match=expected):
        nuswide.read(root / TAG_FILE if "Tag" in file else root)


def test_the_meaning_of_missing_tags_is_an_option_of_tags_only(root):
    for path, value in ((root, "unknown"), (root / TAG_FILE, "yes")):
        with pytest.raises(InputError, match=rf"missing must be one of .*; got '{value}'"):
            nuswide.read(path, missing=value)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_generated_files_are_read_as_they_were_written(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("nuswide")
    bits = st.lists(st.integers(0, 1), min_size=3, max_size=3)
    names = st.text("abcé _'(", min_size=1, max_size=5).filter(lambda text: text == text.strip())
    targets, tags = (data.draw(st.dictionaries(names, bits, min_size=1, max_size=4)) for _ in "ab")
    write(root, targets=targets, tags=tags)
    for path, columns in ((root, targets), (root / TAG_FILE, tags)):
        labelled = nuswide.read(path)
        assert labelled.names == list(columns)
        assert labelled.targets.T.tolist() == list(columns.values())
