import io
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from surelabel.data.image_extras import HEIC, IMAGE_EXTRAS, RAW
from surelabel.data.image_sources import FOLDER_LINK, describe_ignored_files, find_images
from surelabel.data.images import COMMON_SUFFIXES, IMAGE_SUFFIXES
from surelabel.errors import DataError


@pytest.fixture
def album(tmp_path):
    for name in ["b.JPG", "a.png", "notes.md", ".hidden.jpg", "sub/c.webp", ".git/d.jpg"]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def below(folder, paths):
    return [Path(p).relative_to(folder).as_posix() for p in paths]


def without_extras(monkeypatch, *extras):
    """Hide the packages of extras, as if they were not installed."""
    hidden = {extra.package for extra in extras}
    monkeypatch.setattr(
        "surelabel.data.image_extras.find_spec", lambda name: None if name in hidden else True
    )


@pytest.mark.filterwarnings("ignore:1 file without an image suffix is ignored")
def test_a_folder_gives_its_images_sorted_without_hidden_ones(album):
    assert below(album, find_images([album])) == ["a.png", "b.JPG", "sub/c.webp"]


@pytest.mark.filterwarnings("ignore:1 file without an image suffix is ignored")
def test_the_same_image_by_two_ways_comes_once(album, monkeypatch):
    monkeypatch.chdir(album)
    assert find_images(["b.JPG", "./b.JPG", "sub/../b.JPG", album]) == [
        "b.JPG",
        str(album / "a.png"),
        str(album / "sub/c.webp"),
    ]


def test_a_list_is_relative_to_its_folder_or_the_working_directory(album, tmp_path, monkeypatch):
    monkeypatch.chdir(album / "sub")
    chosen = album / "chosen.txt"
    chosen.write_bytes(b"\xef\xbb\xbfsub/c.webp\r\n\r\n  a.png \nc.webp\nlost.jpg\n")
    found = find_images([chosen])
    assert found == [str(album / "sub/c.webp"), str(album / "a.png"), "lost.jpg"]


def test_a_dash_reads_the_list_from_standard_input(album, monkeypatch):
    monkeypatch.chdir(album)
    monkeypatch.setattr("sys.stdin", io.StringIO("a.png\nb.JPG\na.png\n"))
    assert find_images(["-"]) == ["a.png", "b.JPG"]


def test_a_file_named_outright_is_taken_whatever_its_suffix(album):
    assert below(album, find_images([album / "notes.md"])) == ["notes.md"]


def test_nothing_found_says_what_was_looked_for_and_where(tmp_path):
    for number in range(12):
        (tmp_path / f"{number}.csv").touch()
    with pytest.raises(
        DataError,
        match=r"\(\.apng .* \.webp, HEIC, RAW\); got 0 images among 12 files in .* 12 files "
        r"without an image suffix are ignored: 12 \.csv\. Give a",
    ):
        find_images([tmp_path])
    with pytest.raises(DataError, match=r"Expected images .* got no source"):
        find_images([])


def test_a_place_that_does_not_exist_is_named(album):
    with pytest.raises(DataError, match=r"nowhere does not exist\. Check the path"):
        find_images([album, album / "nowhere"])


@pytest.mark.usefixtures("deadline")
@pytest.mark.filterwarnings("ignore:1 symbolic link to a folder is not followed")
def test_special_files_are_listed_and_do_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.jpg"))
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    (tmp_path / "folder").symlink_to(tmp_path)  # is not followed
    names = ["loop.jpg", "pipe.jpg", "socket.jpg", "zero.jpg"]
    assert below(tmp_path, find_images([tmp_path])) == names
    assert below(tmp_path, find_images([tmp_path / name for name in names])) == names


def test_a_symbolic_link_without_target_does_not_exist(tmp_path):
    (tmp_path / "dangling.jpg").symlink_to("gone.jpg")
    with pytest.raises(DataError, match=r"dangling\.jpg does not exist\. Check the path"):
        find_images([tmp_path / "dangling.jpg"])


@pytest.fixture
def unprivileged_folder():
    """A folder of a user whose permissions apply; they do not apply to root."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    if user == 0:
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


def test_a_folder_without_permission_is_named(unprivileged_folder):
    for name in ("closed", "open"):
        (unprivileged_folder / name).mkdir()
        (unprivileged_folder / name / "a.jpg").touch()
    (unprivileged_folder / "closed").chmod(0)
    with pytest.warns(UserWarning, match="closed cannot be read: Permission denied. The images"):
        assert below(unprivileged_folder, find_images([unprivileged_folder])) == ["open/a.jpg"]
    (unprivileged_folder / "closed").chmod(0o700)
    assert len(find_images([unprivileged_folder])) == 2


def test_names_that_are_not_utf8_are_listed(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    (tmp_path / name).touch()
    assert below(tmp_path, find_images([tmp_path])) == [name]


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


def test_ignored_files_but_sidecars_are_counted_by_suffix_in_one_warning(tmp_path):
    names = ["a.jpg", "b.xmp", "c.XMP", "d.mp4", "e.mov", "f.txt", "g.json", "h.aae", "README"]
    touch(tmp_path, *names, ".DS_Store", "sub/i.mov")
    with pytest.warns(UserWarning) as caught:  # noqa: PT030
        assert below(tmp_path, find_images([tmp_path])) == ["a.jpg"]
    assert [str(warning.message) for warning in caught] == [
        "7 files without an image suffix are ignored: 2 .mov, 1 without suffix, 1 .aae, 1 .json, "
        "2 with other suffixes."
    ]


def test_without_the_extras_heic_and_raw_are_ignored_with_the_remedy(tmp_path, monkeypatch):
    touch(tmp_path, "a.jpg", "b.HEIC", "c.heif", "d.heic", "e.CR2", "f.txt")
    without_extras(monkeypatch, HEIC, RAW)
    with pytest.warns(UserWarning) as caught:  # noqa: PT030
        assert below(tmp_path, find_images([tmp_path])) == ["a.jpg"]
    assert [str(warning.message) for warning in caught] == [
        "3 HEIC images are ignored; to read HEIC, run pip install 'surelabel[heic]'. 1 RAW image "
        "is ignored; to read RAW, run pip install 'surelabel[raw]'. 1 file without an "
        "image suffix is ignored: 1 .txt."
    ]
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(DataError, match=r"got 0 images .* 3 HEIC images are ignored; .* Give a "):
        find_images([tmp_path])
    assert below(tmp_path, find_images([tmp_path / "b.HEIC"])) == ["b.HEIC"]


@pytest.mark.parametrize("missing", IMAGE_EXTRAS)
def test_with_one_extra_only_the_other_kind_is_ignored(missing, tmp_path, monkeypatch):
    touch(tmp_path, "a.heic", "b.dng")
    without_extras(monkeypatch, missing)
    with pytest.warns(UserWarning, match=f"^1 {missing.kind} image is ignored; [^.]*\\.$"):
        (found,) = below(tmp_path, find_images([tmp_path]))
    assert found == {"heic": "b.dng", "raw": "a.heic"}[missing.name]


def test_with_the_extras_every_image_is_found_without_a_warning(tmp_path):
    touch(tmp_path, "a.HEIC", "b.dng", "c.CR3", "d.jpg", "e.hif")
    assert len(find_images([tmp_path])) == 5


def test_suffixes_belong_to_one_kind():
    assert not HEIC.suffixes & RAW.suffixes
    assert not COMMON_SUFFIXES & (HEIC.suffixes | RAW.suffixes)
    assert COMMON_SUFFIXES | HEIC.suffixes | RAW.suffixes == IMAGE_SUFFIXES


def test_a_linked_folder_is_counted_and_not_followed(tmp_path):
    touch(tmp_path, "photos/a.jpg", "more/b.jpg")
    (tmp_path / "photos" / "linked").symlink_to(tmp_path / "more")
    with pytest.warns(UserWarning, match=r"^1 symbolic link to a folder is not followed\.$"):
        assert below(tmp_path, find_images([tmp_path / "photos"])) == ["photos/a.jpg"]


def test_a_raw_image_beside_a_jpeg_of_the_same_name_is_read_and_named(tmp_path):
    touch(tmp_path, "1.CR2", "1.JPG", "2.cr2", "sub/2.jpg", "3.dng", "3.heic")
    with pytest.warns(
        UserWarning,
        match=r"^2 RAW images have the same name as another image, such as .*1\.CR2 and ",
    ) as caught:
        assert len(find_images([tmp_path])) == 6
    assert "Both files are read as separate images. To read only one file of each pair," in str(
        caught[0].message
    )


def test_no_ignored_file_gives_no_description():
    assert describe_ignored_files({}) == ""
    assert describe_ignored_files({FOLDER_LINK: 2}).startswith("2 symbolic links to folders are ")


def test_a_url_is_not_downloaded():
    with pytest.raises(DataError, match=r"https://x\.org/a\.jpg: URLs are not downloaded"):
        find_images(["https://x.org/a.jpg"])
