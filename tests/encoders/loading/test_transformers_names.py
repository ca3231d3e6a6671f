"""Models of transformers by their names on the hub, from a local hub."""

import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from surelabel.encoders import load_encoder
from surelabel.errors import DataError

sys.path.append(str(Path(__file__).parents[1] / "transformers"))

from small_models import write_small_model

CARD = "---\nlicense: apache-2.0\n---\n\n# A model\n"


@pytest.fixture
def repository(hub):
    folder = hub.repository("google/tipsv2-small")
    write_small_model("TIPSv2", folder)
    (folder / "README.md").write_text(CARD)
    (folder / "modeling_tips.py").write_text("raise SystemExit\n")
    return folder


def test_a_repository_is_downloaded_once_with_its_license(hub, repository, log_lines, monkeypatch):
    encoder = load_encoder("transformers:google/tipsv2-small")
    assert str(encoder.license) == "apache-2.0, according to its model card; permits commercial use"
    assert any("Loading the weights of transformers:google/tipsv2-small" in x for x in log_lines)
    assert not any("modeling_tips.py" in request for request in hub.requests)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    n_requests = len(hub.requests)
    again = load_encoder("transformers:google/tipsv2-small")
    assert len(hub.requests) == n_requests
    assert again.fingerprint == encoder.fingerprint
    sentences = ["a red dog", "the cat"]
    local = load_encoder(f"transformers:{repository}").encode_sentences(sentences)
    assert torch.equal(again.encode_sentences(sentences), local)


def test_a_missing_file_of_a_repository_is_named_with_all_that_are_needed(hub, repository):
    (repository / "model.safetensors").rename(repository / "pytorch_model.bin")
    with pytest.raises(
        DataError, match=r"needs the file model\.safetensors, which google/tipsv2-small does not"
    ):
        load_encoder("transformers:google/tipsv2-small")
    with pytest.raises(DataError, match=r"transformers:google/other needs the file config\.json"):
        load_encoder("transformers:google/other")
