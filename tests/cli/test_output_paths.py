import os

import pytest

from surelabel.cli.output_paths import (
    validate_terminal_output_folder,
    validate_terminal_output_path,
)
from surelabel.errors import DataError


def test_a_place_below_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file is a file; give another path"):
        validate_terminal_output_path(None, None, str(tmp_path / "file" / "deep" / "below"))


def test_a_place_without_a_name_is_refused_instead_of_written_nowhere():
    with pytest.raises(DataError, match="must not be empty; give a path"):
        validate_terminal_output_path(None, None, " ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_is_closed_is_refused_at_once(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(DataError, match=r"no write permission for .*closed; give another path"):
        validate_terminal_output_path(None, None, str(tmp_path / "closed" / "new"))


def test_a_folder_that_is_written_whole_cannot_be_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="must not contain the current folder"):
        validate_terminal_output_folder(None, None, ".")
    assert validate_terminal_output_folder(None, None, "new") == "new"
    assert validate_terminal_output_folder(None, None, None) is None


@pytest.mark.parametrize("place", ["new/deeper", "file", "."])
def test_a_place_that_can_be_written_or_replaced_passes(place, tmp_path):
    (tmp_path / "file").write_text("")
    assert validate_terminal_output_path(None, None, str(tmp_path / place)) == str(tmp_path / place)
