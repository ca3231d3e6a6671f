import json
import logging
import sys

import open_clip
import pytest
import torch
from safetensors.torch import save_file

from surelabel.cli.terminal_log import print_log_as_terminal_status

CONFIG = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 1},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


@pytest.fixture
def encoder(tmp_path_factory):
    """The name of a small encoder with random weights and the license cc-by-nc-4.0."""
    folder = tmp_path_factory.mktemp("encoder")
    preprocess_cfg = {"mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2]}
    content = {"model_cfg": CONFIG, "preprocess_cfg": preprocess_cfg}
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    torch.manual_seed(0)
    save_file(open_clip.CLIP(**CONFIG).state_dict(), folder / "open_clip_model.safetensors")
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    return f"local-dir:{folder}"


def test_the_first_run_of_an_encoder_prints_what_it_waits_for_and_the_license(home, run, encoder):
    done = run("tag", "images", "--labels", "lion, guitar", "--model", encoder)
    assert done.code == 0, done.err
    assert f"Loading the weights of {encoder} (3.3 MB)\n" in done.err
    assert f"License of {encoder}: cc-by-nc-4.0, according to the model card" in done.err
    assert "no commercial use" in done.err
    texts = [line for line in done.err.splitlines() if line.startswith("Encoding ")]
    assert any(f"texts with {encoder}" in line for line in texts)
    assert done.err.count("no interpolation and no resize_mode") == 1


def test_a_quiet_run_prints_no_status(home, run, encoder):
    done = run("tag", "images", "--labels", "lion, guitar", "--model", encoder, "--quiet")
    assert done.code == 0, done.err
    assert all(line.startswith("Note: ") for line in done.err.splitlines())


def test_the_license_is_in_the_model_card_of_a_saved_recognizer(home, run, encoder):
    assert run("calibrate", encoder, "labels.csv", "--out", "mine").code == 0
    card = (home / "mine" / "README.md").read_text()
    license = "cc-by-nc-4.0, according to the model card of the folder; no commercial use"
    assert f"| license of the encoder | {license} |" in card
    again = run("tag", "images", "--model", "mine")
    assert f": {license}\n" in again.err


def test_the_log_is_restored_after_a_command():
    logger, lines = logging.getLogger("surelabel"), []
    before = (logger.level, list(logger.handlers))
    with print_log_as_terminal_status(lines.append, quiet=False):
        logging.getLogger("surelabel.encoders").info("Loading %s", "x")
        logging.getLogger("surelabel.encoders").debug("detail")
    with print_log_as_terminal_status(lines.append, quiet=True):
        logging.getLogger("surelabel.encoders").info("Loading y")
        assert not logger.isEnabledFor(logging.WARNING)
    assert lines == ["Loading x"]
    assert (logger.level, logger.handlers) == before


def test_the_import_is_announced_only_if_it_is_still_to_come(run, home, monkeypatch):
    arguments = ("tag", "images", "--labels", "baker")
    assert "Importing torch" not in run(*arguments).err
    monkeypatch.delitem(sys.modules, "torch")
    assert "Importing torch and open_clip\n" in run(*arguments).err
    assert "Importing" not in run(*arguments, "--quiet").err
    assert "Importing" not in run("search", "index", "lion").err
    assert "Importing" not in run("show", "words").err


@pytest.mark.parametrize(
    "arguments",
    [
        "tag nowhere --labels lion",
        "tag images --labels lion --precision 0.9 --threshold 0.5",
        "tag images --labels lion --out tags.txt",
        "tag images --open",
        "fit nowhere.csv --out new",
        "fit labels.csv --out images",
        "calibrate tiny-vit nowhere.csv",
        "calibrate tiny-vit labels.csv --test nowhere.csv",
        "calibrate tiny-vit broken.csv",
        "evaluate nowhere/ labels.csv",
        "evaluate tiny-vit scenes-80",
        "index new images nowhere --labels lion",
        "search nowhere lion",
        "search index lion --text sentence",
    ],
)
def test_an_error_of_paths_or_options_comes_before_the_import(run, home, monkeypatch, arguments):
    (home / "broken.csv").write_text("path,lion\nimages/lost.jpg,1\n")
    monkeypatch.delitem(sys.modules, "torch")
    done = run(*arguments.split())
    assert done.code in (1, 2)
    assert "Error: " in done.err
    assert "Importing" not in done.err
