import os

import pytest

from surelabel.errors import DataError
from surelabel.web.file_access import is_plain_file, open_servable_file, resolve_servable_file


@pytest.fixture
def root(tmp_path):
    """Return a root folder beside a folder with a secret."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "a.jpg").write_text("a")
    (outside / "secret.jpg").write_text("secret")
    return root


def test_a_file_in_the_root_is_served(root):
    assert resolve_servable_file(str(root / "a.jpg"), str(root)) == str(root / "a.jpg")


def test_the_root_can_be_a_link(root, tmp_path):
    os.symlink(root, tmp_path / "link")
    resolved = resolve_servable_file(str(tmp_path / "link" / "a.jpg"), str(tmp_path / "link"))
    assert resolved == str(root / "a.jpg")


def test_a_link_within_the_root_is_resolved(root):
    os.symlink("a.jpg", root / "b.jpg")
    assert resolve_servable_file(str(root / "b.jpg"), str(root)) == str(root / "a.jpg")


def test_a_plain_file_outside_of_the_root_is_served(root, tmp_path):
    path = str(tmp_path / "outside" / "secret.jpg")  # the index contains its absolute path
    assert resolve_servable_file(path, str(root)) == path


@pytest.mark.parametrize("kind", ["file", "folder", "chain"])
def test_a_link_out_of_the_root_is_refused(root, tmp_path, kind):
    if kind == "folder":
        os.symlink(tmp_path / "outside", root / "folder")
        path = root / "folder" / "secret.jpg"
    else:
        os.symlink(tmp_path / "outside" / "secret.jpg", root / "link.jpg")
        os.symlink("link.jpg", root / "chain.jpg")
        path = root / ("link.jpg" if kind == "file" else "chain.jpg")
    with pytest.raises(DataError, match="symbolic link out of the root"):
        resolve_servable_file(str(path), str(root))


def test_a_link_outside_of_the_root_is_refused(root, tmp_path):
    os.symlink(root / "a.jpg", tmp_path / "outside" / "link.jpg")
    with pytest.raises(DataError, match="symbolic link"):
        resolve_servable_file(str(tmp_path / "outside" / "link.jpg"), str(root))


def test_a_folder_whose_name_begins_like_the_root_is_outside(root, tmp_path):
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "a.jpg").write_text("a")
    os.symlink(tmp_path / "root-2" / "a.jpg", root / "link.jpg")
    with pytest.raises(DataError, match="symbolic link out of the root"):
        resolve_servable_file(str(root / "link.jpg"), str(root))


@pytest.mark.parametrize("name", ["missing.jpg", "", "pipe", "loop", "a.jpg\0", "a.jpg/b"])
def test_what_is_not_a_regular_file_is_refused(root, name):
    os.mkfifo(root / "pipe")
    os.symlink("loop", root / "loop")
    with pytest.raises((DataError, ValueError), match=r"not a regular file|null byte|link"):
        resolve_servable_file(f"{root}/{name}", str(root))


def test_a_member_of_an_archive_is_served_if_the_archive_is(root, tmp_path, tar_archive):
    tar_archive(root / "a.tar", [("x.jpg", b"x")])
    tar_archive(tmp_path / "outside" / "b.tar", [("x.jpg", b"x")])
    os.symlink(tmp_path / "outside" / "b.tar", root / "b.tar")
    path = resolve_servable_file(str(root / "a.tar" / "x.jpg"), str(root))
    assert path == str(root / "a.tar" / "x.jpg")
    assert not is_plain_file(path)
    with pytest.raises(DataError, match="symbolic link out of the root"):
        resolve_servable_file(str(root / "b.tar" / "x.jpg"), str(root))


def test_a_file_that_is_replaced_by_a_link_is_not_opened(root, tmp_path):
    path = root / "a.jpg"
    path.unlink()
    os.symlink(tmp_path / "outside" / "secret.jpg", path)
    with pytest.raises(DataError, match="cannot be opened"), open_servable_file(str(path)):
        pass


def test_a_folder_that_is_replaced_by_a_link_is_detected(root, tmp_path):
    os.symlink(tmp_path / "outside", root / "folder")
    path = str(root / "folder" / "secret.jpg")
    with pytest.raises(DataError, match="replaced"), open_servable_file(path):
        pass
