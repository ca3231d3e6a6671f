import numpy as np
import pytest

from surelabel.data.labels import voc
from surelabel.errors import DataError

NAN = pytest.approx(np.nan, nan_ok=True)


def xml(filename, *objects):
    things = "".join(
        f"<object><name>{name}</name><difficult>{difficult}</difficult>"
        "<part><name>head</name></part></object>"
        for name, difficult in objects
    )
    return f"<annotation><filename>{filename}</filename>{things}</annotation>"


@pytest.fixture
def annotations(folder):
    (folder / "0.xml").write_text(xml("a.jpg", ("dog", 0), ("dog", 1), ("cat", 1)))
    (folder / "1.xml").write_text(xml("b.jpg"), encoding="utf-8-sig")
    (folder / "2.xml").write_text(
        "<annotation><filename> sub/c d.jpg </filename><object><name>cat</name></object>"
        "</annotation>"
    )
    return folder


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def test_objects_become_labels_and_only_difficult_ones_are_unknown(annotations):
    labelled = voc.read(annotations)
    assert labelled.names == ["cat", "dog"]
    assert labelled.paths == [str(annotations / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[NAN, 1], [0, 0], [1, 0]]


def test_names_never_mentioned_are_absent_and_labels_beyond_them_refused(annotations):
    assert by_nan(voc.read(annotations, names=["dog", "owl", "cat"]))[0] == [1, 0, NAN]
    with pytest.raises(DataError, match="which has 1 label; got 1 other label: 'cat'"):
        voc.read(annotations, names=["dog"])


def test_the_usual_folders_are_found(tmp_path):
    for name in ("Annotations", "JPEGImages"):
        (tmp_path / name).mkdir()
    (tmp_path / "JPEGImages" / "x.jpg").touch()
    (tmp_path / "Annotations" / "x.xml").write_text(xml("x.jpg", ("dog", 0)))
    expected = [str(tmp_path / "JPEGImages" / "x.jpg")]
    assert voc.read(tmp_path).paths == expected
    assert voc.read(tmp_path / "Annotations").paths == expected


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb">]><annotation><filename>&b;</filename></annotation>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BOMB.encode(), "must not declare a document type or an entity"),
        (BOMB.encode("utf-16"), "must be an XML file in UTF-8"),
        (b"<annotation>", "must be an XML file in UTF-8; got: no element found"),
        (b"", "must be an XML file in UTF-8; got: no element found"),
        (
            b"<svg><filename>a.jpg</filename></svg>",
            "must contain the root element <annotation>.*got the root element <svg>",
        ),
        (b"<annotation/>", "root element <annotation> without a <filename>"),
        (xml("a.jpg", (" ", 0)).encode(), "every object must have a name"),
    ],
)
def test_a_file_that_is_not_voc_or_not_safe_is_refused(annotations, data, message):
    (annotations / "1.xml").write_bytes(data)
    with pytest.raises(DataError, match=rf"1\.xml.*{message}"):
        voc.read(annotations)


def test_an_empty_folder_and_missing_images_are_refused(annotations):
    with pytest.raises(DataError, match=r"must be a folder of VOC annotations \(\*\.xml\)"):
        voc.read(annotations / "sub")
    (annotations / "a.jpg").unlink()
    with pytest.raises(DataError, match=r"All images of .* must exist; 1 of 3 missing: '.*a\.jpg"):
        voc.read(annotations)
