import json
import logging
import socket
import time

import open_clip
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from surelabel.encoders.loading.hub_files import cached_or_downloaded_hub_file, optional_hub_file
from surelabel.encoders.loading.model_names import load_encoder
from surelabel.errors import ConfigError, DataError, MissingPart

CONFIG = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 1},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
PREPROCESS = {
    "mean": [0.5, 0.4, 0.3],
    "std": [0.25, 0.25, 0.2],
    "interpolation": "bilinear",
    "resize_mode": "squash",
}
WEIGHTS, CONFIG_FILE = "open_clip_model.safetensors", "open_clip_config.json"


def download(repository, *files):
    return cached_or_downloaded_hub_file(repository, *files, encoder_name="model", remedy="Use x.")


def with_tokenizer():
    """The settings of a model with a tokenizer in another repository."""
    return {**CONFIG, "text_cfg": {**CONFIG["text_cfg"], "hf_tokenizer_name": "owner/words"}}


def write_checkpoint(folder, model_cfg=CONFIG, suffix=".safetensors", **sections):
    content = {"model_cfg": model_cfg, "preprocess_cfg": PREPROCESS, **sections}
    (folder / CONFIG_FILE).write_text(json.dumps(content))
    torch.manual_seed(0)
    state = open_clip.CLIP(**CONFIG).state_dict()
    if suffix == ".safetensors":
        save_file(state, folder / WEIGHTS)
    else:
        torch.save(state, folder / f"open_clip_pytorch_model{suffix}")


def write_tokenizer(folder):
    words = {"[UNK]": 0, "dog": 1, "cat": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


class TestWithoutNetwork:
    @pytest.fixture(autouse=True)
    def _hub_is_unreachable(self, monkeypatch, tmp_path):
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))

    @pytest.fixture
    def snapshot(self, tmp_path):
        """The folder where the hub's client keeps the files of ``owner/model``."""
        snapshot = tmp_path / "models--owner--model" / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        refs = snapshot.parents[1] / "refs"
        refs.mkdir()
        (refs / "main").write_text("abc")
        return snapshot

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            (
                "ViT-B-16/openai",
                "open_clip_model.safetensors or .* of timm/vit_base_patch16_clip_224.openai",
            ),
            ("hf-hub:owner/model", "open_clip_config.json of owner/model"),
        ],
    )
    def test_one_sentence_names_file_place_and_remedy_at_once(self, name, file):
        started = time.monotonic()
        expected = f"{name} needs the file {file}, which .* from http.*local-dir:F"
        with pytest.raises(DataError, match=expected):
            load_encoder(name)
        assert time.monotonic() - started < 5

    @pytest.mark.parametrize(
        ("name", "files"),
        [
            ("ViT-B-16-SigLIP2/webli", "; the tokenizer of timm/ViT-B-16-SigLIP2 .one of tokeniz"),
            ("roberta-ViT-B-32/laion2b_s12b_b32k", "tokenizer of roberta-base .*; config.json of"),
            ("hf-hub:owner/model", "; the files of the tokenizer, if open_clip_config.json conta"),
            ("ViTamin-S/datacomp1b", "json and pytorch_model.safetensors or pytorch_model.bin of"),
        ],
    )
    def test_the_remedy_lists_all_files_with_those_of_the_tokenizer(self, name, files):
        with pytest.raises(DataError, match=f"copy all these files.*: open_clip_config.*{files}"):
            load_encoder(name)

    def test_working_offline_on_purpose_is_the_reason_given(self, monkeypatch):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
            load_encoder("ViT-B-16/openai")

    def test_a_name_that_the_hub_cannot_have_is_one_sentence_too(self):
        with pytest.raises(
            DataError, match=r"the file a of a/b/c, which cannot be downloaded from .* \(Repo"
        ):
            download("a/b/c", "a")

    def test_a_cached_file_needs_no_network(self, snapshot):
        (snapshot / "file.txt").write_text("")
        assert download("owner/model", "other.txt", "file.txt") == snapshot / "file.txt"

    def test_an_optional_file_that_is_not_cached_is_none(self):
        assert optional_hub_file("owner/model", "README.md") is None

    def test_a_model_that_is_cached_is_built_without_the_network(self, snapshot, monkeypatch):
        write_checkpoint(snapshot)
        asked = []
        monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **more: asked.append(address))
        found = load_encoder("hf-hub:owner/model")
        assert asked == []
        assert found.name == "hf-hub:owner/model"
        assert found.preprocess_cfg == {**PREPROCESS, "size": [32, 32], "fill_color": 0}
        assert found.fingerprint == load_encoder(f"local-dir:{snapshot}").fingerprint

    def test_preprocessing_that_a_repository_leaves_out_is_never_guessed(self, snapshot):
        write_checkpoint(snapshot, preprocess_cfg={})
        with pytest.raises(ConfigError, match=r"got no mean, std, .*Add the values"):
            load_encoder("hf-hub:owner/model")
        write_checkpoint(snapshot, model_cfg=None)
        with pytest.raises(DataError, match="must contain model_cfg"):
            load_encoder("hf-hub:owner/model")


def test_a_model_is_downloaded_with_its_tokenizer_and_license_and_then_needs_no_hub(
    hub, log_lines, monkeypatch
):
    model = hub.repository("owner/model")
    write_checkpoint(model, with_tokenizer())
    (model / "README.md").write_text("---\nlicense: mit\n---\n# Model\n")
    write_tokenizer(hub.repository("owner/words"))
    encoder = load_encoder("hf-hub:owner/model")
    assert encoder.tokenizer(["cat dog"])[0, :2].tolist() == [2, 1]
    assert encoder.encode_labels(["cat"], ["a {}"]).shape == (1, 24)
    assert encoder.license.name == "mit"
    n_requests = len(hub.requests)
    size = f"{(model / WEIGHTS).stat().st_size / 1e6:,.1f} MB"
    address = constants.ENDPOINT
    first, tokenizer, weights, _, loading, license = log_lines
    assert first == f"Downloading {CONFIG_FILE} of owner/model from {address}"
    assert tokenizer == f"Downloading the tokenizer of owner/words from {address}"
    assert weights == f"Downloading {WEIGHTS} ({size}) of owner/model from {address}"
    assert loading == f"Loading the weights of hf-hub:owner/model ({size})"
    assert license.endswith(f": {encoder.license}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_encoder("hf-hub:owner/model").license == encoder.license
    assert len(hub.requests) == n_requests


def test_the_tokenizer_is_downloaded_before_the_weights_and_its_absence_is_named(hub):
    write_checkpoint(hub.repository("owner/model"), with_tokenizer())
    (hub.repository("owner/words") / "tokenizer_config.json").write_text("{}")
    with pytest.raises(DataError, match=r"needs the tokenizer of owner/words, .* no vocabulary"):
        load_encoder("hf-hub:owner/model")
    assert not any(WEIGHTS in request for request in hub.requests)


def test_a_missing_package_is_named_before_the_weights_are_downloaded(hub, monkeypatch):
    write_checkpoint(hub.repository("owner/model"), with_tokenizer())
    write_tokenizer(hub.repository("owner/words"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPart, match=r"pip install 'surelabel\[texts\]'"):
        load_encoder("hf-hub:owner/model")
    with pytest.raises(MissingPart, match=r"pip install 'surelabel\[texts\]'"):
        load_encoder("ViT-B-16-SigLIP/webli")
    assert not any("SigLIP" in request or WEIGHTS in request for request in hub.requests)


def test_a_pickle_of_tensors_is_downloaded_if_there_is_no_safetensors_file(hub):
    write_checkpoint(hub.repository("owner/pickle"), suffix=".pth")
    write_checkpoint(hub.repository("owner/model"))
    pickle, model = load_encoder("hf-hub:owner/pickle"), load_encoder("hf-hub:owner/model")
    assert pickle.fingerprint == model.fingerprint
    files = [request.rpartition("/")[2] for request in hub.requests if "owner/pickle" in request]
    tried = [file for file in dict.fromkeys(files) if file.startswith("open_clip_")]
    assert tried == [
        CONFIG_FILE,
        WEIGHTS,
        "open_clip_pytorch_model.safetensors",
        "open_clip_pytorch_model.bin",
        "open_clip_pytorch_model.pth",
    ]


def test_a_repository_in_another_format_names_the_same_weights_of_open_clip(hub):
    hub.repository("google/siglip2-base-patch16-256")
    with pytest.raises(
        DataError,
        match=r"which google/siglip2-base-patch16-256 does not contain\. The same weights are "
        "available as ViT-B-16-SigLIP2-256/webli or hf-hub:timm/ViT-B-16-SigLIP2-256",
    ):
        load_encoder("hf-hub:google/siglip2-base-patch16-256")
    with pytest.raises(
        DataError, match=r"hf-hub:timm/PE-Core-B-16 needs .*\)\. If you are offline"
    ):
        load_encoder("hf-hub:timm/PE-Core-B-16")


def test_a_repository_without_weights_names_the_files_that_are_read(hub):
    write_checkpoint(hub.repository("owner/model"), suffix=".pt")
    with pytest.raises(DataError, match=rf"{WEIGHTS} or .*\.bin, which owner/model does not con"):
        load_encoder("hf-hub:owner/model")


def test_a_hub_that_refuses_is_not_taken_for_one_without_the_file(hub):
    (hub.repository("owner/model") / "GATED").touch()
    with pytest.raises(DataError, match=r"cannot be downloaded from .* use local-dir:FOLDER"):
        load_encoder("hf-hub:owner/model")


def test_progress_bars_are_hidden_above_the_level_warning_only(hub, monkeypatch, capsys):
    monkeypatch.setenv("TQDM_POSITION", "-1")  # the client shows bars outside a terminal too
    folder, logger = hub.repository("owner/model"), logging.getLogger("surelabel")
    for file in ("first", "second"):
        (folder / file).write_bytes(bytes(1000))
    download("owner/model", "first")
    assert "first" in capsys.readouterr().err
    monkeypatch.setattr(logger, "level", logging.ERROR)
    logger.manager._clear_cache()
    download("owner/model", "second")
    assert capsys.readouterr().err == ""
    logger.manager._clear_cache()
