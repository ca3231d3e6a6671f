import os
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surelabel.data import xmp_sidecars
from surelabel.data.xmp_packets import HIERARCHICAL_SUBJECT, SUBJECT, SURELABEL
from surelabel.data.xmp_sidecar_paths import read_sidecar
from surelabel.data.xmp_sidecars import (
    remove_sidecar_tags,
    write_sidecar_tags,
)
from surelabel.errors import DataError, InputError
from surelabel.files import atomic_file
from surelabel.records import LabelTree, Predictions

LIGHTROOM = (Path(__file__).parent / "sidecars" / "lightroom.xmp").read_bytes()
NAMES = ["wolf", "owl", "rocket"]


@pytest.fixture
def folder(tmp_path):
    """Two images, the first with a sidecar of Lightroom."""
    for name in ("a.jpg", "b.JPG"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "a.xmp").write_bytes(LIGHTROOM)
    return tmp_path


def predictions(folder, shown=((0, 1, 1), (1, 0, 0)), *, calibration="platt", model="0123"):
    logits = np.array([[-3, 0, 2], [4, -5, -6]], np.float32)
    paths = [str(folder / name) for name in ("a.jpg", "b.JPG")]
    mask = np.array(shown, bool)
    return Predictions(paths, NAMES, logits, logits, calibration, model=model, shown=mask)


def subject(path):
    return read_sidecar(str(path)).texts(SUBJECT)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_shown_labels_become_keywords_the_most_probable_first(folder):
    changes = write_sidecar_tags(predictions(folder), "stem")
    assert (changes.written, changes.unchanged, changes.refused) == (2, 0, [])
    assert subject(folder / "a.xmp") == ["Animals", "Dog", "Müller & Söhne", "rocket", "owl"]
    written = read_sidecar(str(folder / "b.xmp"))
    assert written.texts(SUBJECT) == written.texts(HIERARCHICAL_SUBJECT) == ["wolf"]
    assert written.texts((SURELABEL, "probabilities")) == ["0.9820"]
    assert names_in(folder) == ["a.jpg", "a.xmp", "b.JPG", "b.xmp"]


def test_labels_of_a_tree_become_hierarchical_keywords(folder):
    tree = LabelTree({"owl": "wolf", "rocket": "owl"})
    shown = predictions(folder, [(1, 1, 1), (1, 0, 0)])
    write_sidecar_tags(shown, "full", label_tree=tree)
    written = read_sidecar(str(folder / "a.jpg.xmp"))
    assert written.texts(SUBJECT) == ["rocket", "owl", "wolf"]
    assert written.texts(HIERARCHICAL_SUBJECT) == ["wolf|owl|rocket", "wolf|owl", "wolf"]
    assert write_sidecar_tags(shown, "full", label_tree=tree).unchanged == 2
    assert remove_sidecar_tags(shown.paths, "full").written == 2
    assert names_in(folder) == ["a.jpg", "a.xmp", "b.JPG"]


def test_the_same_tags_change_nothing_and_other_tags_replace_them(folder):
    write_sidecar_tags(predictions(folder), "stem")
    state = (folder / "a.xmp").stat()
    again = write_sidecar_tags(predictions(folder), "stem")
    assert (again.written, again.unchanged) == (0, 2)
    assert (folder / "a.xmp").stat().st_ino == state.st_ino
    other = write_sidecar_tags(predictions(folder, [(1, 0, 0), (0, 0, 0)], model="45"), "stem")
    assert (other.written, other.unchanged) == (2, 0)
    assert subject(folder / "a.xmp") == ["Animals", "Dog", "Müller & Söhne", "wolf"]
    assert not (folder / "b.xmp").exists()  # contained nothing else


def test_sidecars_that_the_caller_refuses_are_listed_and_not_written(folder):
    image = str(folder / "a.jpg")
    changes = write_sidecar_tags(predictions(folder), "stem", refused={image: "two images"})
    assert changes.written == 1
    assert [(r.path, r.reason) for r in changes.refused] == [(str(folder / "a.xmp"), "two images")]
    assert (folder / "a.xmp").read_bytes() == LIGHTROOM


def test_an_image_without_a_shown_label_gets_no_sidecar(folder):
    write_sidecar_tags(predictions(folder, np.zeros((2, 3))), "full")
    assert names_in(folder) == ["a.jpg", "a.xmp", "b.JPG"]


def test_removal_restores_the_folder(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_sidecar_tags(predictions(folder), "stem")
    changes = remove_sidecar_tags(predictions(folder).paths, "stem")
    assert (changes.written, changes.unchanged) == (2, 0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert remove_sidecar_tags(predictions(folder).paths, "stem").unchanged == 2


def test_images_keep_their_bytes_and_modification_times(folder):
    images = [folder / name for name in ("a.jpg", "b.JPG")]
    for image in images:
        os.utime(image, ns=(1_000, 2_000))
    for naming in ("stem", "full"):
        write_sidecar_tags(predictions(folder), naming)
        remove_sidecar_tags(map(str, images), naming)
    assert [(i.read_bytes(), i.stat().st_mtime_ns) for i in images] == [
        (b"a.jpg", 2_000),
        (b"b.JPG", 2_000),
    ]


def test_without_calibration_scores_are_recorded(folder):
    write_sidecar_tags(predictions(folder, calibration=None), "full")
    assert names_in(folder) == ["a.jpg", "a.jpg.xmp", "a.xmp", "b.JPG", "b.JPG.xmp"]
    packet = read_sidecar(str(folder / "a.jpg.xmp"))
    assert packet.texts((SURELABEL, "scores")) == ["2.0000", "0.0000"]
    assert (folder / "a.xmp").read_bytes() == LIGHTROOM


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_an_existing_sidecar_keeps_its_permission_bits(folder, mode):
    (folder / "a.xmp").chmod(mode)
    write_sidecar_tags(predictions(folder), "stem")
    assert stat.S_IMODE((folder / "a.xmp").stat().st_mode) == mode


BOMB = b"""<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>"""
BAD = {
    "entities": (
        BOMB + LIGHTROOM,
        "expected a writable XMP packet in UTF-8; got a document type or an entity",
    ),
    "truncated": (
        LIGHTROOM[:-30],
        r"expected a writable XMP packet in UTF-8; got XML that is not well-formed",
    ),
    "empty": (b"", "not well-formed"),
    "no list": (LIGHTROOM.replace(b"rdf:Bag", b"rdf:bag"), "with other content than a list"),
    "marked": (LIGHTROOM + b"<?xpacket end='r'?>", "a packet that is marked as read-only"),
}


OF_RAW_IMAGE = LIGHTROOM.replace(
    b"xmp:Rating=", b'p:SidecarForExtension="NEF" xmp:Rating='
).replace(b"xmlns:dc=", b'xmlns:p="http://ns.adobe.com/photoshop/1.0/" xmlns:dc=')
CHANGES = {
    "write": lambda folder: write_sidecar_tags(predictions(folder), "stem"),
    "remove": lambda folder: remove_sidecar_tags(predictions(folder).paths, "stem"),
}


def refusal(folder, change):
    """Return the reason why the first sidecar is refused; the second must be written."""
    write_sidecar_tags(predictions(folder, [(0, 0, 0), (0, 1, 0)]), "stem")
    changes = CHANGES[change](folder)
    (refused,) = changes.refused
    assert (refused.path, changes.written) == (str(folder / "a.xmp"), 1)
    return refused.reason


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("change", CHANGES)
def test_a_bad_sidecar_is_left_as_it_is_and_the_others_are_written(folder, name, change):
    data, message = BAD[name]
    (folder / "a.xmp").write_bytes(data)
    state = (folder / "a.xmp").stat()
    assert re.search(message, refusal(folder, change))
    assert (folder / "a.xmp").read_bytes() == data
    assert (folder / "a.xmp").stat().st_mtime_ns == state.st_mtime_ns


@pytest.mark.usefixtures("deadline")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes")
def test_a_link_a_pipe_and_a_folder_are_refused(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "other.xmp"
    outside.write_bytes(LIGHTROOM)
    for make, kind in (
        (lambda path: path.symlink_to(outside), "got a symbolic link"),
        (lambda path: path.symlink_to("nowhere"), "got a symbolic link"),
        (os.mkfifo, "got another kind of file"),
        (Path.mkdir, "got another kind of file"),
    ):
        sidecar = folder / "a.xmp"
        sidecar.unlink()
        make(sidecar)
        assert refusal(folder, "write") == f"expected a regular file; {kind}"
        assert outside.read_bytes() == LIGHTROOM
        if sidecar.is_dir():
            sidecar.rmdir()
            sidecar.touch()


def test_a_read_only_file_is_refused(folder):
    (folder / "a.xmp").chmod(0o444)
    assert refusal(folder, "write") == "the file is read-only"
    assert (folder / "a.xmp").read_bytes() == LIGHTROOM


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root can write every folder"
)
def test_a_folder_without_write_permission_is_refused(folder):
    folder.chmod(0o555)
    reasons = {image.reason for image in write_sidecar_tags(predictions(folder), "stem").refused}
    folder.chmod(0o755)
    assert reasons == {f"there is no write permission for the folder {folder}"}


def test_a_large_file_is_refused_without_reading_all_of_it(folder):
    with (folder / "a.xmp").open("wb") as file:
        file.truncate(2**40)
    assert "must have at most 67108864 bytes; got 1099511627776" in refusal(folder, "write")


def test_a_sidecar_whose_name_is_too_long_is_refused_and_all_others_are_written(folder):
    image = folder / f"{'x' * 251}.jpg"
    image.touch()
    paths = [str(image), str(folder / "b.JPG")]
    for naming in ("stem", "full"):
        changes = write_sidecar_tags(replace(predictions(folder), paths=paths), naming)
        [refused] = changes.refused
        assert (refused.reason, changes.written) == ("File name too long", 1)
    assert {"b.xmp", "b.JPG.xmp"} <= set(names_in(folder))


def test_a_change_by_another_program_during_the_write_is_kept(folder, monkeypatch):
    n_changes = []

    def edit_by_hand(path, **options):
        if len(n_changes) < 2:
            n_changes.append(path)
            text = (folder / "a.xmp").read_bytes()
            (folder / "a.xmp").write_bytes(text.replace(b">Animals<", b">Holiday Animals<"))
        return atomic_file(path, **options)

    monkeypatch.setattr(xmp_sidecars, "atomic_file", edit_by_hand)
    changes = write_sidecar_tags(predictions(folder, [(0, 0, 1), (0, 0, 0)]), "stem")
    assert (changes.written, len(n_changes)) == (1, 2)
    assert subject(folder / "a.xmp")[0] == "Holiday Animals"
    assert subject(folder / "a.xmp")[-1] == "rocket"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the file size")
def test_a_full_disk_is_an_error_and_leaves_every_sidecar_as_it_is(folder):
    import resource  # does not exist on Windows

    write_sidecar_tags(predictions(folder, [(0, 0, 0), (0, 1, 0)]), "stem")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DataError, match=r"a\.xmp cannot be written: File too large"):
            write_sidecar_tags(predictions(folder), "stem")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert write_sidecar_tags(predictions(folder), "stem").written == 2


def test_a_sidecar_of_an_image_that_is_elsewhere_is_refused(folder):
    (folder / "a.xmp").write_bytes(OF_RAW_IMAGE)
    assert refusal(folder, "write") == (
        "the sidecar states that it belongs to an image with the suffix .nef; give --sidecar-name "
        "full to write a.jpg.xmp"
    )
    assert (folder / "a.xmp").read_bytes() == OF_RAW_IMAGE
    assert remove_sidecar_tags([str(folder / "a.jpg")], "stem").refused == []


def test_labels_that_cannot_be_keywords_and_missing_selections_are_refused(folder):
    with pytest.raises(InputError, match="got predictions without shown labels"):
        write_sidecar_tags(replace(predictions(folder), shown=None), "stem")
    with pytest.raises(InputError, match="separates the levels"):
        write_sidecar_tags(replace(predictions(folder), names=["a", "b", "a|b"]), "stem")
