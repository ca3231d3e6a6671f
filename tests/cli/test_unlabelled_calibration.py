import json
import shutil

import pytest

LABELS = ("--labels", "dog, bicycle")


@pytest.fixture
def model(random_checkpoint):
    return ("--model", f"local-dir:{random_checkpoint}")


def test_an_encoder_without_calibration_needs_the_option_to_index(home, run, model):
    refused = run("index", "new", "images", *LABELS, *model)
    assert refused.code == 1
    assert "(--calibrate-unlabelled; the result is not verified)" in refused.err
    assert not (home / "new").exists()
    done = run("index", "new", "images", *LABELS, *model, "--calibrate-unlabelled")
    assert done.code == 0
    counts, calibration = done.out.splitlines()
    assert counts.startswith("new contains 24 images and 2 labels. Images: 24 added")
    assert "on pseudo-labels of 24 images without labels. Not verified: no labels" in calibration


def test_an_index_keeps_its_calibration_and_can_be_searched_by_a_sentence(home, run, model):
    image = next((home / "images").iterdir())
    image.rename(home / "later.jpg")
    options = (*LABELS, *model, "--calibrate-unlabelled", "--json")
    first = json.loads(run("index", "new", "images", *options).out)
    (home / "later.jpg").rename(image)
    again = json.loads(run("index", "new", "images", *options).out)
    same = json.loads(run("index", "new", "images", *model, "--json").out)
    assert (first["added"], again["added"], same["added"]) == (23, 1, 0)
    assert first["calibration"] == again["calibration"] == same["calibration"]
    assert "23 images without labels" in first["calibration"]
    assert first["is_verified"] is again["is_verified"] is False
    header, *hits, note = run("search", "new", "--text", "a dog").out.splitlines()
    assert (header.split(), len(hits)) == (["all", '~"a', 'dog"', "path"], 20)
    assert note.startswith("Calibration: beta on pseudo-labels of 23 images without labels.")


def test_a_calibrated_model_is_not_calibrated_again(home, run):
    option, about = "--calibrate-unlabelled", "beta (selected by log loss) on 24 labelled images"
    for command in (("tag",), ("index", "new")):
        done = run(*command, "images", "--model", "recognizer", option)
        assert (done.code, done.out) == (1, "")
        assert f"got a calibrated model: {about}. Remove --calibrate-unlabelled" in done.err
    done = run("index", "index", "images", "--model", "recognizer", option)
    assert done.code == 1
    assert f"another calibration: {about}. Give a new folder" in done.err


def test_tags_of_an_encoder_without_calibration_have_probabilities(home, run, model):
    done = run("tag", "images", *LABELS, *model, "--calibrate-unlabelled", "--json")
    assert "on pseudo-labels of 24 images without labels.\nNot verified: no labels" in done.err
    tags = [tag for image in json.loads(done.out) for tag in image["tags"]]
    assert all(tag["probability"] >= 0.5 for tag in tags)
    assert len(json.loads(done.out)) == 24


def test_a_threshold_for_uncalibrated_scores_names_the_option(home, run, model):
    done = run("tag", "images", *LABELS, *model, "--threshold", "0.5")
    assert (done.code, done.out) == (1, "")
    assert "--threshold requires probabilities; the model is not calibrated." in done.err
    assert "these images without labels (--calibrate-unlabelled)" in done.err


@pytest.mark.parametrize("command", ["tag", "index new", "calibrate"])
def test_a_calibration_on_few_images_is_called_unreliable(home, run, random_checkpoint, command):
    model = f"local-dir:{random_checkpoint}"
    options = ("--model", model, "--calibrate-unlabelled")
    line = {"calibrate": ("calibrate", model, "images", "--unlabelled")}.get(
        command, (*command.split(), "images", *options)
    )
    for n_left, images in ((24, "24 images"), (1, "1 image")):
        for image in sorted((home / "images").iterdir())[n_left:]:
            image.unlink()
        shutil.rmtree("new", ignore_errors=True)
        done = run(*line, *LABELS)
        assert done.code == 0
        note = f"Note: The calibration without labels uses only {images}"
        assert done.err.count(note) == 1
        assert "Give 100 or more images in one command" in done.err


def test_100_images_are_enough_for_a_calibration_without_a_note(home, run, model):
    paths = sorted((home / "images").iterdir())
    for row in range(100 - len(paths)):
        shutil.copy(paths[row % len(paths)], home / "images" / f"copy-{row}.jpg")
    done = run("tag", "images", *LABELS, *model, "--calibrate-unlabelled", "--out", "tags.csv")
    assert "on pseudo-labels of 100 images" in done.err
    assert "The calibration without labels" not in done.err
