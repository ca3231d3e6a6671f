import time

import pytest
from huggingface_hub import constants

from surelabel.backbones.hub import hub_file
from surelabel.backbones.loading import load_backbone
from surelabel.errors import DataError


@pytest.fixture(autouse=True)
def _nobody_answers(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ViT-B-16/openai", "open_clip_model.safetensors of timm/vit_base_patch16_clip_224.openai"),
        ("hf-hub:somebody/model", "open_clip_config.json of somebody/model"),
    ],
)
def test_without_a_network_one_sentence_names_file_place_and_remedy_at_once(name, file):
    started = time.monotonic()
    with pytest.raises(DataError, match=f"{name} needs the file {file} from http.* local-dir:FOL"):
        load_backbone(name)
    assert time.monotonic() - started < 5


def test_working_offline_on_purpose_is_the_reason_given(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
        load_backbone("ViT-B-16/openai")


def test_a_name_that_the_hub_cannot_have_is_one_sentence_too():
    with pytest.raises(
        DataError, match=r"needs the file a of a/b/c .* cannot be downloaded \(Repo"
    ):
        hub_file("a/b/c", ["a"], asked_for="hf-hub:a/b/c")


def test_a_cached_file_needs_no_network(tmp_path):
    snapshot = tmp_path / "models--somebody--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "second.txt").write_text("")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    found = hub_file("somebody/model", ["first.txt", "second.txt"], asked_for="model")
    assert found == snapshot / "second.txt"
