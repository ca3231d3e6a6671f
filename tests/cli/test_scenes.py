from surelabel.data import read_scenes


def test_scenes_are_drawn_and_a_second_run_has_nothing_to_do(run, tmp_path):
    line = ["scenes", tmp_path / "scenes", "--count", "3", "--seed", "7"]
    assert run(*line).out == f"Written: 3 images in {tmp_path / 'scenes'}\n"
    assert len(read_scenes(tmp_path / "scenes")) == 3
    assert run(*line, "--json").code == 0
    other = run("scenes", tmp_path / "scenes", "--count", "3", "--seed", "8")
    assert other.code == 1
    assert "seed 7; got seed 8" in other.err
