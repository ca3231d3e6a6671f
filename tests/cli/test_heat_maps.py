import shutil

import numpy as np
import pytest
from PIL import Image

from surelabel import Recognizer
from surelabel.cli.heat_maps import (
    heat_map_file_names,
    select_heat_map_labels,
    write_heat_maps,
)
from surelabel.cli.terminal import Terminal
from surelabel.errors import DataError


def test_each_image_gets_a_file_with_heat_maps(home, run):
    for path in sorted((home / "images").iterdir())[3:]:
        path.unlink()
    done = run("tag", "images", "--model", "recognizer", "--heat-maps", "places")
    stems = {path.stem for path in (home / "images").iterdir()}
    files = sorted((home / "places").iterdir())
    assert done.code == 0
    assert "Written: heat maps of 3 images, in places\n" in done.err
    assert {file.name for file in files} == {f"{stem}.heat-maps.png" for stem in stems}
    with Image.open(files[0]) as first:
        assert first.format == "PNG"
        assert np.asarray(first.convert("RGB")).std() > 20


def test_as_many_labels_are_drawn_as_are_asked_for(home, run):
    widths = []
    for count in ("1", "4"):
        line = ["images/" + next((home / "images").iterdir()).name, "--model", "recognizer"]
        assert run("tag", *line, "--heat-maps", "places", "--top-k", count).code == 0
        with Image.open(next((home / "places").iterdir())) as sheet:
            widths.append(sheet.width)
    assert widths[1] > widths[0]


def test_the_tags_are_printed_all_the_same(home, run):
    line = ["tag", *sorted((home / "images").iterdir())[:2], "--model", "recognizer"]
    assert run(*line, "--heat-maps", "places").out == run(*line).out


def test_images_that_are_called_alike_keep_their_own(home, run):
    one = sorted((home / "images").iterdir())[0]
    (home / "other").mkdir()
    shutil.copy(one, home / "other")
    line = [one.relative_to(home), f"other/{one.name}", "--model", "recognizer"]
    assert run("tag", *line, "--heat-maps", "places").code == 0
    assert len(list((home / "places").iterdir())) == 2
    assert heat_map_file_names(["x/a.png", "y/a.png", "a-2.png"]) == [
        "a.heat-maps.png",
        "a-2.heat-maps.png",
        "a-2-2.heat-maps.png",
    ]


@pytest.mark.parametrize(
    "names", [["a", "a", "a"], ["a-2", "a", "a", "a-2"], ["x/Cat", "cat", "CAT-2"], ["é" * 126] * 2]
)
def test_no_two_files_have_one_name_on_any_file_system(names):
    found = heat_map_file_names([f"{name}.jpg" for name in names])
    assert len({name.casefold() for name in found}) == len(names)
    assert max(len(name.encode()) for name in found) < 230


def test_a_image_with_the_longest_of_names_is_drawn_too(home, run):
    one = sorted((home / "images").iterdir())[0]
    shutil.copy(one, home / f"{'n' * 250}{one.suffix}")
    line = [f"{'n' * 250}{one.suffix}", "--model", "recognizer", "--heat-maps", "places"]
    assert run("tag", *line).code == 0
    assert len(list((home / "places").iterdir())) == 1


def test_a_image_that_is_gone_meanwhile_is_told(home):
    paths = sorted(f"images/{path.name}" for path in (home / "images").iterdir())[:2]
    recognizer = Recognizer.load("recognizer")
    predictions = recognizer.predict(paths)
    (home / paths[1]).unlink()
    terminal = Terminal(as_json=False, quiet=True, device="cpu", seed=0)
    with pytest.raises(DataError, match=f"{paths[1]} was tagged, but cannot be read a second time"):
        write_heat_maps(terminal, recognizer, select_heat_map_labels(predictions, None), "places")


def test_a_file_in_the_place_of_the_folder_is_told_before_anything_is_tagged(home, run):
    done = run("tag", "images", "--model", "recognizer", "--heat-maps", "labels.csv")
    assert done.code == 1
    assert "--heat-maps requires a folder; got the file labels.csv" in done.err
    assert done.out == ""


def test_an_encoder_without_regions_is_refused_before_anything_is_tagged(home, run):
    line = ["--model", "timm:test_resnet", "--set", "encoder.pretrained=false"]
    done = run("tag", "images", "--labels", "lion", *line, "--heat-maps", "places")
    assert done.code == 1
    assert done.out == ""
    assert not (home / "places").exists()
