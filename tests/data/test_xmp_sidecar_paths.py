import os
from pathlib import Path

import pytest

from surelabel.data.xmp_keywords import XmpTags, add_xmp_tags
from surelabel.data.xmp_sidecar_paths import (
    check_sidecars,
    images_of_stem,
    is_sidecar_current,
    shared_sidecars,
    sidecar_path,
)
from surelabel.errors import DataError, InputError

LIGHTROOM = (Path(__file__).parent / "sidecars" / "lightroom.xmp").read_bytes()
OF_RAW_IMAGE = LIGHTROOM.replace(
    b"xmp:Rating=", b'p:SidecarForExtension="NEF" xmp:Rating='
).replace(b"xmlns:dc=", b'xmlns:p="http://ns.adobe.com/photoshop/1.0/" xmlns:dc=')


@pytest.fixture
def folder(tmp_path):
    """Two images, the first with a sidecar of Lightroom."""
    for name in ("a.jpg", "b.JPG"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "a.xmp").write_bytes(LIGHTROOM)
    return tmp_path


def test_the_two_namings_and_an_existing_suffix_in_upper_case(folder):
    image = str(folder / "x.y.jpg")
    assert sidecar_path(image, "stem") == str(folder / "x.y.xmp")
    assert sidecar_path(image, "full") == str(folder / "x.y.jpg.xmp")
    (folder / "x.y.XMP").write_bytes(LIGHTROOM)
    assert sidecar_path(image, "stem") == str(folder / "x.y.XMP")
    with pytest.raises(InputError, match="must be one of stem, full; got 'both'"):
        sidecar_path(image, "both")


def test_images_with_one_name_without_suffix_share_a_sidecar(folder):
    for name in ("c.CR2", "c.jpg", "c.txt", "d.jpg", "e.jpg"):
        (folder / name).touch()
    (folder / "sub").mkdir()
    (folder / "sub" / "d.cr2").touch()
    images = [str(folder / name) for name in ("a.jpg", "c.jpg", "d.jpg")]
    assert images_of_stem(images) == {images[1]: ["c.CR2", "c.jpg"]}
    with pytest.raises(
        DataError,
        match=r"c\.xmp can belong to c\.CR2 or c\.jpg\. Give --sidecar-name full, which uses "
        r"c\.CR2\.xmp and c\.jpg\.xmp, or move",
    ):
        check_sidecars(images, "stem")
    check_sidecars([images[0], images[2]], "stem")
    (folder / "c.xmp").write_bytes(LIGHTROOM)
    check_sidecars(images[1:], "full")


def test_a_sidecar_that_states_its_image_belongs_to_this_image_only(folder):
    for name in ("c.CR2", "c.jpg"):
        (folder / name).touch()
    data = OF_RAW_IMAGE.replace(b'"NEF"', b'"CR2"')
    (folder / "c.xmp").write_bytes(data)
    images = [str(folder / name) for name in ("a.jpg", "c.CR2", "c.jpg")]
    assert shared_sidecars(images, "stem") == {images[2]: ["c.CR2", "c.jpg"]}
    assert shared_sidecars(images, "full") == {}
    check_sidecars([str(folder / "c.CR2")], "stem")
    with pytest.raises(DataError, match=r"c\.xmp can belong to c\.CR2 or c\.jpg"):
        check_sidecars([str(folder / "c.jpg")], "stem")


def test_images_with_sidecars_of_the_other_naming_are_counted(folder):
    images = [str(folder / name) for name in ("a.jpg", "b.JPG")]
    with pytest.warns(
        UserWarning, match=r"such as a\.xmp, exist for 1 of 2 images\. .* give --sidecar-name stem"
    ):
        check_sidecars(images, "full")
    (folder / "a.jpg.xmp").write_bytes(LIGHTROOM)
    check_sidecars(images, "full")  # a warning would be an error


def test_a_sidecar_is_current_if_its_recognizer_wrote_it_after_the_image_was_changed(folder):
    image, sidecar = folder / "a.jpg", folder / "a.xmp"
    sidecar.write_bytes(add_xmp_tags(LIGHTROOM, XmpTags(["dog"], ["dog"], [0.9], True, "model-1")))
    os.utime(image, ns=(5, 5))
    os.utime(sidecar, ns=(5, 5))
    assert is_sidecar_current(str(image), "stem", "model-1")
    assert not is_sidecar_current(str(image), "stem", "model-2")
    assert not is_sidecar_current(str(image), "full", "model-1")
    os.utime(image, ns=(6, 6))
    assert not is_sidecar_current(str(image), "stem", "model-1")
    os.utime(image, ns=(5, 5))
    sidecar.write_bytes(b"<damaged")
    assert not is_sidecar_current(str(image), "stem", "model-1")
    assert not is_sidecar_current(str(folder / "missing.jpg"), "stem", "model-1")
