import pytest

from surelabel.data import read_scenes
from surelabel.data.emoji import find_font
from surelabel.errors import MissingPart


def has_font():
    try:
        return bool(find_font(None))
    except MissingPart:
        return False


@pytest.mark.skipif(not has_font(), reason="no colour-emoji font is installed")
def test_scenes_are_drawn_and_a_second_run_has_nothing_to_do(run, tmp_path):
    line = ["scenes", tmp_path / "scenes", "--count", "3", "--seed", "7"]
    assert run(*line).out == f"3 pictures in {tmp_path / 'scenes'}\n"
    assert len(read_scenes(tmp_path / "scenes")) == 3
    assert run(*line, "--json").code == 0
    other = run("scenes", tmp_path / "scenes", "--count", "3", "--seed", "8")
    assert other.code == 1
    assert "was begun with other settings: seed 7 there, seed 8 here" in other.err
