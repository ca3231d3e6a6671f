import importlib
import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from surelabel import Recognizer
from surelabel.encoders import load_encoder
from surelabel.encoders.open_clip.hugging_face_texts import (
    check_sentencepiece_package,
    hugging_face_text_config_folder,
    hugging_face_tokenizer,
    local_text_config,
)
from surelabel.errors import ConfigError, DataError, MissingPart, SurelabelError

# As the real package does, it runs the file that auto_map names if trust_remote_code is true.
STUB = """
import json
from pathlib import Path

CALLS = []


class AutoTokenizer:
    @staticmethod
    def from_pretrained(folder, **arguments):
        CALLS.append((folder, arguments))
        config = Path(folder) / "tokenizer_config.json"
        auto_map = json.loads(config.read_text()).get("auto_map", {}) if config.exists() else {}
        if arguments.get("trust_remote_code") and auto_map:
            module = auto_map["AutoTokenizer"].partition(".")[0]
            exec((Path(folder) / f"{module}.py").read_text())
        return AutoTokenizer()
"""
BERT = {"model_type": "bert", "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1}
TOKENIZER = {"hf_tokenizer_name": "owner/tokenizer"}


@pytest.fixture
def transformers(tmp_path, monkeypatch):
    """A package ``transformers`` that records the arguments of its tokenizers."""
    package = tmp_path / "packages" / "transformers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STUB)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    yield importlib.import_module("transformers")
    sys.modules.pop("transformers")


@pytest.fixture
def hostile(checkpoint, tmp_path):
    """A checkpoint whose tokenizer is a Python file that creates the file ``executed``."""
    kwargs = {"tokenizer_kwargs": {"trust_remote_code": True}}
    folder = checkpoint(text={**TOKENIZER, **kwargs})
    auto_map = {"auto_map": {"AutoTokenizer": "code.Tokenizer"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(auto_map))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()")
    return folder


def test_a_model_folder_cannot_run_its_python_file(transformers, hostile, tmp_path):
    with pytest.raises(SurelabelError, match=r"open_clip_config\.json .*got 'trust_remote_code'"):
        load_encoder(f"local-dir:{hostile}")
    assert not (tmp_path / "executed").exists()


def test_a_saved_recognizer_cannot_run_its_python_file(transformers, hostile, tmp_path):
    saved = tmp_path / "recognizer"
    Recognizer.zero_shot("tiny-vit", ["dog", "cat"]).save(saved)
    shutil.rmtree(saved / "encoder")
    shutil.copytree(hostile, saved / "encoder")
    with pytest.raises(SurelabelError, match=r"open_clip_config\.json .*got 'trust_remote_code'"):
        Recognizer.load(saved)
    assert not (tmp_path / "executed").exists()


def test_a_repository_of_the_hub_cannot_run_its_python_file(
    transformers, hostile, tmp_path, monkeypatch
):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for repository in ("owner--model", "owner--tokenizer"):
        cached = tmp_path / "hub" / f"models--{repository}"
        shutil.copytree(hostile, cached / "snapshots" / "abc")
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text("abc")
    with pytest.raises(SurelabelError, match=r"got 'trust_remote_code'"):
        load_encoder("hf-hub:owner/model")
    assert not (tmp_path / "executed").exists()


def test_harmless_settings_reach_the_tokenizer_without_remote_code(transformers, checkpoint):
    kwargs = {"tokenizer_kwargs": {"clean": "canonicalize", "strip_sep_token": True}}
    folder = checkpoint(text={**TOKENIZER, **kwargs})
    (folder / "vocab.txt").write_text("a\n")
    loaded = load_encoder(f"local-dir:{folder}")
    assert loaded.tokenizer.strip_sep_token
    assert loaded.tokenizer.context_length == 16
    assert loaded.tokenizer.clean_fn("A, dog") == "a dog"
    ((source, arguments),) = transformers.CALLS
    assert source == str(folder)
    assert arguments == {"cache_dir": None, "local_files_only": True, "trust_remote_code": False}


def test_the_tokenizer_of_a_repository_is_read_from_the_cache_of_the_hub(
    transformers, checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    model, tokenizer = (
        tmp_path / "hub" / f"models--owner--{name}" / "snapshots" / "abc"
        for name in ("model", "tokenizer")
    )
    for snapshot in (model, tokenizer):
        shutil.copytree(checkpoint(text=TOKENIZER), snapshot)
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("abc")
    with pytest.raises(
        DataError, match=r"needs the tokenizer of owner/tokenizer, .*HF_HUB_OFFLINE"
    ):
        load_encoder("hf-hub:owner/model")
    (tokenizer / "vocab.txt").write_text("a\n")
    assert load_encoder("hf-hub:owner/model").width == 24
    assert [folder for folder, _ in transformers.CALLS] == [str(tokenizer)]


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auto_map", {"AutoTokenizer": "code.Tokenizer"}),
        ("init_inputs", ["/etc/passwd"]),
        ("vocab_file", "/etc/passwd"),
        ("tokenizer_file", "../tokenizer.json"),
        ("sp_model_kwargs", {"model_file": "/etc/passwd"}),
        ("mecab_kwargs", {"mecab_option": "-r /etc/passwd"}),
    ],
)
def test_settings_of_a_tokenizer_name_neither_code_nor_files(
    transformers, tmp_path, name, key, value
):
    file = tmp_path / name
    file.write_text(json.dumps({key: value}))
    with pytest.raises(ConfigError, match=rf"{name} must not contain '{key}'"):
        hugging_face_tokenizer(tmp_path, {})
    assert transformers.CALLS == []
    file.write_text(json.dumps({"init_inputs": [], "vocab_file": None, "pad_token": "[PAD]"}))
    hugging_face_tokenizer(tmp_path, {})
    assert len(transformers.CALLS) == 1


@pytest.mark.parametrize("name", ["vocab.txt", "additional_chat_templates/a.jinja"])
def test_a_named_pipe_of_a_tokenizer_is_refused(transformers, tmp_path, name):
    folder = tmp_path / "tokenizer"
    (folder / name).parent.mkdir(parents=True)
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match=rf"{name} cannot be read: .* got a named pipe"):
        hugging_face_tokenizer(folder, {})


def test_only_settings_of_the_architecture_reach_a_text_tower(tmp_path):
    other = {"auto_map": {"AutoModel": "code.Model"}, "attn_implementation": "owner/kernel"}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**BERT, **other, "_name_or_path": "/tmp", "hidden_act": None}))
    with hugging_face_text_config_folder(file) as folder:
        assert os.listdir(folder) == ["config.json"]
        assert json.loads((Path(folder) / "config.json").read_text()) == BERT
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "surprise"}, "model_type in .* must be one of roberta, .*; got 'surprise'"),
        ({"model_type": ["bert"]}, r"model_type in .*; got \['bert'\]"),
        ({"hidden_size": 10**9}, "hidden_size in .* to 2097152; got 1000000000"),
        ({"num_hidden_layers": 257}, "num_hidden_layers in .* to 256; got 257"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps in .*; got nan"),
        ({"hidden_act": "../x"}, r"hidden_act in .*; got '\.\./x'"),
        ({"position_embedding_type": ["x"]}, r"position_embedding_type in .*; got \['x'\]"),
    ],
)
def test_settings_of_a_text_tower_have_accepted_values(tmp_path, settings, message):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(BERT | settings))
    with (
        pytest.raises(ConfigError, match=message),
        hugging_face_text_config_folder(file),
    ):
        pass


def test_the_text_tower_of_a_folder_is_never_downloaded(
    transformers, checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    addresses = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: addresses.append(address))
    folder = checkpoint(text={"hf_model_name": "owner/tower"})
    with pytest.raises(DataError, match=r"text_tower_config\.json.* config\.json of owner/tower"):
        load_encoder(f"local-dir:{folder}")
    assert addresses == []
    cached = tmp_path / "hub" / "models--owner--tower"
    (cached / "snapshots" / "abc").mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    (cached / "snapshots" / "abc" / "config.json").write_text(json.dumps(BERT))
    text_cfg = {"hf_model_name": "owner/tower"}
    assert local_text_config("m", folder, text_cfg) == cached / "snapshots" / "abc" / "config.json"
    (folder / "text_tower_config.json").write_text(json.dumps(BERT))
    assert local_text_config("m", folder, text_cfg) == folder / "text_tower_config.json"
    assert local_text_config("m", folder, {}) is None


def test_a_sentencepiece_model_without_the_package_is_named(tmp_path, monkeypatch):
    check_sentencepiece_package("m", tmp_path)
    (tmp_path / "spiece.model").touch()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPart, match=r"spiece\.model of m needs .* pip install sentencepiece"):
        check_sentencepiece_package("m", tmp_path)
    (tmp_path / "tokenizer.json").touch()
    check_sentencepiece_package("m", tmp_path)
