import shutil
from pathlib import Path

import numpy as np
import pytest

from surelabel.data.labels import read_labels, xmp
from surelabel.data.xmp_keywords import EMPTY_PACKET, XmpTags, add_xmp_tags
from surelabel.errors import DataError, InputError

SIDECARS = Path(__file__).parents[1] / "sidecars"
UNKNOWN = -1.0


def keywords(*texts, declared=None):
    """Return a packet with keywords of the user."""
    items = "".join(f"<rdf:li>{text}</rdf:li>" for text in texts)
    suffix = f"<p:SidecarForExtension>{declared}</p:SidecarForExtension>" if declared else ""
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:p="http://ns.adobe.com/photoshop/1.0/"><rdf:Description rdf:about="">'
        f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>{suffix}"
        "</rdf:Description></rdf:RDF>"
    ).encode()


@pytest.fixture
def album(tmp_path):
    """Four images, of which two have keywords of the user."""
    (tmp_path / "sub").mkdir()
    for name in ("a.jpg", "b.JPG", "c.png", "sub/d.jpg"):
        (tmp_path / name).touch()
    (tmp_path / "a.xmp").write_bytes(keywords("dog", "Holiday 2020"))
    (tmp_path / "sub" / "d.jpg.xmp").write_bytes(keywords("cat"))
    tags = XmpTags(["dog", "owl"], ["dog", "owl"], [0.9, 0.8], are_probabilities=True, model="m")
    (tmp_path / "c.xmp").write_bytes(add_xmp_tags(EMPTY_PACKET, tags))
    return tmp_path


def targets(labelled):
    return np.where(labelled.known, labelled.targets, UNKNOWN).tolist()


def test_keywords_are_positive_others_negative_and_images_without_keywords_unknown(album):
    labelled = read_labels(f"xmp:{album}")
    assert labelled.paths == [str(album / n) for n in ("a.jpg", "b.JPG", "c.png", "sub/d.jpg")]
    assert labelled.names == ["Holiday 2020", "cat", "dog"]
    assert targets(labelled) == [[1, 0, 1], [UNKNOWN] * 3, [UNKNOWN] * 3, [0, 1, 0]]
    assert labelled.reading == "keywords in XMP sidecars of 2 of 4 images"


def test_missing_labels_can_be_unknown(album):
    labelled = read_labels(f"xmp:{album}", missing="unknown")
    assert targets(labelled)[0] == [1, UNKNOWN, 1]
    assert targets(labelled)[3] == [UNKNOWN, 1, UNKNOWN]
    assert targets(read_labels(f"xmp:{album}", missing="negative"))[0] == [1, 0, 1]


def test_tags_of_this_package_are_never_read(album):
    tags = XmpTags(
        ["dog", "owl", "cat"],
        ["dog", "owl", "cat"],
        [0.9, 0.8, 0.7],
        are_probabilities=True,
        model="m",
    )
    before = read_labels(f"xmp:{album}")
    (album / "a.xmp").write_bytes(add_xmp_tags((album / "a.xmp").read_bytes(), tags))
    after = read_labels(f"xmp:{album}")
    assert (after.names, targets(after)) == (before.names, targets(before))


def test_packets_of_other_programs_are_read(tmp_path):
    for number, name in enumerate(("lightroom", "darktable", "digikam")):
        (tmp_path / f"{number}.jpg").touch()
        shutil.copy(SIDECARS / f"{name}.xmp", tmp_path / f"{number}.xmp")
    labelled = xmp.read(tmp_path)
    assert labelled.names == ["Animals", "Berlin", "Dog", "Germany", "Müller & Söhne", "Places"]
    assert targets(labelled) == [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1], [UNKNOWN] * 6]


def test_both_sidecars_of_an_image_are_read(album):
    (album / "a.jpg.xmp").write_bytes(keywords("cat"))
    assert targets(xmp.read(album))[0] == [1, 1, 1]


def test_spellings_that_differ_in_case_are_one_label(album):
    for name, word in (("b.JPG", "DOG"), ("c.png", "dog"), ("sub/d.jpg", "Dog")):
        (album / f"{name}.xmp").write_bytes(keywords(word))
    labelled = xmp.read(album)
    assert labelled.names == ["Holiday 2020", "dog"]
    assert labelled.targets[:, 1].tolist() == [1, 1, 1, 1]


def test_names_select_columns_and_other_keywords_are_refused(album):
    names = ["owl", "dog", "Holiday 2020", "cat"]
    assert targets(xmp.read(album, names=names))[0] == [0, 1, 1, 0]
    with pytest.raises(
        DataError, match=r"which has 1 label; got 2 other labels: 'Holiday 2020', 'cat'"
    ):
        xmp.read(album, names=["dog"])


def test_a_sidecar_of_two_images_is_refused_unless_it_states_its_image(album):
    (album / "a.tif").touch()
    with pytest.raises(
        DataError,
        match=r"a\.xmp can belong to a\.jpg or a\.tif\. Rename it to a\.jpg\.xmp or a\.tif\.xmp",
    ):
        xmp.read(album)
    (album / "a.xmp").write_bytes(keywords("dog", declared="TIF"))
    labelled = xmp.read(album)
    assert [Path(path).name for path in labelled.paths[:2]] == ["a.jpg", "a.tif"]
    assert targets(labelled)[:2] == [[UNKNOWN, UNKNOWN], [0, 1]]


def test_a_sidecar_of_an_image_that_is_elsewhere_is_not_read(album):
    (album / "a.xmp").write_bytes(keywords("wolf", declared="NEF"))
    assert xmp.read(album).names == ["cat"]


BOMB = b'<!DOCTYPE a [<!ENTITY b "bbbb">]>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BOMB + keywords("&b;"), r"a\.xmp must be XMP in UTF-8; got a document type or an entity"),
        (keywords("dog")[:-5], r"a\.xmp must be XMP in UTF-8; got XML that is not well-formed"),
        (
            keywords("a\tb"),
            r"a\.xmp: a keyword must not contain a control character, .* got 'a\\tb'",
        ),
    ],
)
def test_a_bad_sidecar_is_refused_and_named(album, data, message):
    (album / "a.xmp").write_bytes(data)
    with pytest.raises(DataError, match=message):
        xmp.read(album)


def test_a_folder_without_keywords_of_the_user_is_refused(tmp_path):
    (tmp_path / "a.jpg").touch()
    with pytest.raises(DataError, match=r"keywords of the user; got no keyword for 1 image\. Add"):
        read_labels(f"xmp:{tmp_path}")
    with pytest.raises(DataError, match="must be a folder of images with XMP sidecars"):
        read_labels(f"xmp:{tmp_path / 'a.jpg'}")


def test_options_that_do_not_apply_are_refused(album):
    with pytest.raises(InputError, match="--images-root cannot be given"):
        xmp.read(album, images_root=album)
    with pytest.raises(InputError, match="missing must be one of negative, unknown; got 'zero'"):
        xmp.read(album, missing="zero")
    with pytest.raises(InputError, match=r"ignore can be given only for csv, .* format xmp"):
        read_labels(f"xmp:{album}", ignore=["split"])
    (album / "a.csv").write_text("path,dog\na.jpg,1\n")
    with pytest.raises(InputError, match=r"missing can be given only for .*, xmp; got"):
        read_labels(album / "a.csv", missing="unknown")
