import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import open_clip
import pytest
from huggingface_hub import constants
from safetensors.torch import save_file

from surelabel.encoders.loading.hub_files import cached_or_downloaded_hub_file
from surelabel.encoders.loading.model_names import load_encoder
from surelabel.errors import ConfigError, DataError

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


@pytest.fixture(autouse=True)
def _hub_is_unreachable(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ViT-B-16/openai", "open_clip_model.safetensors of timm/vit_base_patch16_clip_224.openai"),
        ("hf-hub:owner/model", "open_clip_config.json of owner/model"),
    ],
)
def test_without_a_network_one_sentence_names_file_place_and_remedy_at_once(name, file):
    started = time.monotonic()
    with pytest.raises(DataError, match=f"{name} needs the file {file} from http.* local-dir:FOL"):
        load_encoder(name)
    assert time.monotonic() - started < 5


def test_working_offline_on_purpose_is_the_reason_given(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
        load_encoder("ViT-B-16/openai")


def test_a_name_that_the_hub_cannot_have_is_one_sentence_too():
    with pytest.raises(
        DataError, match=r"needs the file a of a/b/c .* cannot be downloaded \(Repo"
    ):
        cached_or_downloaded_hub_file("a/b/c", "a", encoder_name="hf-hub:a/b/c")


@pytest.fixture
def snapshot(tmp_path):
    """The folder where the hub's client keeps the files of ``owner/model``."""
    snapshot = tmp_path / "models--owner--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    return snapshot


def test_a_cached_file_needs_no_network(snapshot):
    (snapshot / "file.txt").write_text("")
    found = cached_or_downloaded_hub_file("owner/model", "file.txt", encoder_name="model")
    assert found == snapshot / "file.txt"


def kept(snapshot, **parts):
    about = {"model_cfg": CONFIG, "preprocess_cfg": PREPROCESS, **parts}
    (snapshot / "open_clip_config.json").write_text(json.dumps(about))
    save_file(open_clip.CLIP(**CONFIG).state_dict(), snapshot / "open_clip_model.safetensors")


def test_a_model_that_is_cached_is_built_without_the_network(snapshot, monkeypatch):
    kept(snapshot)
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **more: asked.append(address))
    found = load_encoder("hf-hub:owner/model")
    assert asked == []
    assert found.name == "hf-hub:owner/model"
    assert found.preprocess_cfg == {**PREPROCESS, "size": [32, 32], "fill_color": 0}
    assert found.fingerprint == load_encoder(f"local-dir:{snapshot}").fingerprint


def test_preprocessing_that_a_repository_leaves_out_is_never_guessed(snapshot):
    kept(snapshot, preprocess_cfg={})
    with pytest.raises(ConfigError, match=r"mean, std, .* missing\. Copy the values"):
        load_encoder("hf-hub:owner/model")
    kept(snapshot, model_cfg=None)
    with pytest.raises(DataError, match="must contain model_cfg"):
        load_encoder("hf-hub:owner/model")


def test_weights_in_a_pickle_are_not_even_looked_for(snapshot):
    kept(snapshot)
    (snapshot / "open_clip_model.safetensors").rename(snapshot / "open_clip_pytorch_model.bin")
    with pytest.raises(DataError, match=r"needs the file open_clip_model\.safetensors"):
        load_encoder("hf-hub:owner/model")


def test_a_named_model_that_is_kept_as_a_pickle_is_refused_with_the_reason():
    expected = r"pytorch_model\.bin of jienengchen/ViTamin-S, a pickle.* ViTamin-S/FILE\.safet"
    with pytest.raises(DataError, match=expected):
        load_encoder("ViTamin-S/datacomp1b")


class _Hub(BaseHTTPRequestHandler):
    """A hub that is there and has no file; owner/broken it cannot even look into."""

    def do_GET(self):
        status = 200 if self.path == "/" else 403 if "broken" in self.path else 404
        self.send_response(status)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


@pytest.fixture
def empty_hub(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), _Hub) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        yield
        server.shutdown()


def test_a_repository_without_the_file_says_what_is_read_and_what_is_not(empty_hub, snapshot):
    kept(snapshot)
    (snapshot / "open_clip_model.safetensors").unlink()
    expected = r"open_clip_model\.safetensors, which owner/model does not contain.* Pickle"
    with pytest.raises(DataError, match=expected):
        load_encoder("hf-hub:owner/model")


def test_a_hub_that_refuses_is_not_taken_for_one_without_the_file(empty_hub):
    with pytest.raises(DataError, match=r"cannot be downloaded \(An error .* use local-dir:FOLDER"):
        load_encoder("hf-hub:owner/broken")
