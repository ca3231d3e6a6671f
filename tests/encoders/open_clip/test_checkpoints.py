import importlib.util
import json
import re
from types import SimpleNamespace

import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, MissingPart
from surelabel.records import EncoderLicense

WEIGHTS_FILE = "open_clip_model.safetensors"


@pytest.fixture
def folder(checkpoint):
    """A model as open_clip writes it."""
    return checkpoint()


@pytest.fixture
def architecture(tmp_path_factory, model_cfg):
    """The small architecture under a name that open_clip knows, without a folder."""
    file = tmp_path_factory.mktemp("configs") / "small-vit-for-tests.json"
    file.write_text(json.dumps(model_cfg))
    open_clip.add_model_config(file)
    return file.stem


def changed(folder, **parts):
    """Return the name of the checkpoint after changing sections of its configuration."""
    file = folder / "open_clip_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **parts}))
    return f"local-dir:{folder}"


def test_a_local_folder_gives_the_model_and_preprocessing_in_it(folder, preprocess_cfg):
    towers = load_encoder(f"local-dir:{folder}")
    stored = load_file(folder / "open_clip_model.safetensors")
    state = towers.model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in stored.items())
    assert towers.name == f"local-dir:{folder}"
    assert towers.preprocess_cfg == {**preprocess_cfg, "size": [32, 32], "fill_color": 0}
    assert towers.width == 24


@pytest.mark.parametrize("missing", ["open_clip_config.json", "open_clip_model.safetensors"])
def test_a_folder_that_lacks_a_file_says_which(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(DataError, match=rf"must contain .* Missing: {missing}.*\. Copy the files"):
        load_encoder(f"local-dir:{folder}")


def test_mean_and_std_are_demanded_and_the_rest_has_the_defaults_of_open_clip(
    folder, preprocess_cfg
):
    partial = {key: preprocess_cfg[key] for key in ("mean", "std")}
    name = changed(folder, preprocess_cfg=partial)
    with pytest.warns(UserWarning, match="no interpolation and no resize_mode") as warned:
        encoder = load_encoder(name)
    assert len(warned) == 1
    assert encoder.preprocess_cfg["interpolation"] == "bicubic"
    assert encoder.preprocess_cfg["resize_mode"] == "shortest"
    encoder.save(folder / "saved")
    assert load_encoder(f"local-dir:{folder / 'saved'}").fingerprint == encoder.fingerprint
    with pytest.raises(ConfigError, match="; got no mean, std, interpolation, resize_mode"):
        load_encoder(changed(folder, preprocess_cfg={}))


@pytest.mark.parametrize("damage", [{"embed_dim": 25}, {"text_cfg": {}}])
def test_weights_of_another_architecture_are_refused(folder, model_cfg, damage):
    with pytest.raises(
        DataError, match=r"must contain (a tokenizer and )?all weights of its architecture"
    ):
        load_encoder(changed(folder, model_cfg={**model_cfg, **damage}))


@pytest.mark.parametrize(
    ("damage", "key"),
    [
        (None, "model_cfg"),
        ("ViT-B-16", "model_cfg"),
        ({"embed_dim": 24}, "vision_cfg"),
        ({"embed_dim": 24, "vision_cfg": [32, 8], "text_cfg": {}}, "vision_cfg"),
        ({"embed_dim": 24, "vision_cfg": {}, "text_cfg": None}, "text_cfg"),
    ],
)
def test_a_config_whose_parts_are_no_objects_says_which(folder, damage, key):
    with pytest.raises(DataError, match=rf"open_clip_config\.json must contain {key}, an object"):
        load_encoder(changed(folder, model_cfg=damage))


@pytest.mark.parametrize("nothing", [None, "bicubic", [0.5]])
def test_preprocessing_that_is_no_object_is_refused(folder, architecture, nothing):
    with pytest.raises(ConfigError, match=r"open_clip_config\.json must contain preprocess_cfg"):
        load_encoder(changed(folder, preprocess_cfg=nothing))
    (folder / "open_clip_model.json").write_text(json.dumps({"preprocess_cfg": nothing}))
    with pytest.raises(ConfigError, match=r"open_clip_model\.json must contain preprocess_cfg"):
        load_encoder(f"{architecture}/{folder}/open_clip_model.safetensors")


def test_damaged_files_are_refused_by_name(folder):
    weights = folder / "open_clip_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:10_000])
    with pytest.raises(DataError, match=r"model\.safetensors is damaged: .*header.* Copy the"):
        load_encoder(f"local-dir:{folder}")
    (folder / "open_clip_config.json").write_text("{")
    with pytest.raises(DataError, match=r"open_clip_config\.json must be a JSON file"):
        load_encoder(f"local-dir:{folder}")
    (folder / "open_clip_config.json").write_text("{}")
    with pytest.raises(DataError, match="must contain model_cfg"):
        load_encoder(f"local-dir:{folder}")
    (folder / "open_clip_config.json").write_text("[]")
    with pytest.raises(DataError, match=r"must contain a JSON object; got list"):
        load_encoder(f"local-dir:{folder}")


def test_a_text_tower_that_needs_another_package_says_how_to_install_it(
    folder, model_cfg, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = {**model_cfg["text_cfg"], "hf_tokenizer_name": "owner/tokenizer"}
    with pytest.raises(MissingPart, match=r"pip install 'surelabel\[texts\]'"):
        load_encoder(changed(folder, model_cfg={**model_cfg, "text_cfg": text}))


def test_the_name_of_a_folder_says_nothing_about_the_text_tower(
    folder, preprocess_cfg, monkeypatch
):
    find = importlib.util.find_spec
    missing = lambda name, *rest: None if name == "transformers" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", missing)
    renamed = folder.rename(folder.with_name("siglip-vs-clip"))
    assert load_encoder(f"local-dir:{renamed}").width == 24
    about = json.dumps({"preprocess_cfg": preprocess_cfg})
    (renamed / "open_clip_model.json").write_text(about)
    with pytest.raises(MissingPart, match=r"pip install 'surelabel\[texts\]'"):
        load_encoder(f"ViT-B-16-SigLIP/{renamed}/open_clip_model.safetensors")


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".bin"])
def test_a_single_file_is_loaded_with_the_preprocessing_beside_it(
    folder, architecture, preprocess_cfg, suffix
):
    state = load_file(folder / "open_clip_model.safetensors")
    file = folder / f"mine{suffix}"
    save_file(state, file) if suffix == ".safetensors" else torch.save(state, file)
    name = f"{architecture}/{file}"
    with pytest.raises(ConfigError, match=r"mine\.json must contain .*; got no mean, std, "):
        load_encoder(name)
    file.with_suffix(".json").write_text(json.dumps({"preprocess_cfg": preprocess_cfg}))
    whole = load_encoder(f"local-dir:{folder}")
    assert load_encoder(name).fingerprint == whole.fingerprint


@pytest.mark.parametrize("file", ["open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"])
def test_a_pickle_of_tensors_in_a_folder_is_loaded_if_there_is_no_safetensors_file(folder, file):
    name = f"local-dir:{folder}"
    expected = load_encoder(name).fingerprint
    torch.save(load_file(folder / WEIGHTS_FILE), folder / file)
    (folder / WEIGHTS_FILE).unlink()
    assert load_encoder(name).fingerprint == expected


def test_a_pickle_is_refused_and_none_of_its_code_runs(folder, architecture, preprocess_cfg):
    for suffix in (".ckpt", ".pkl"):
        with pytest.raises(DataError, match="Convert the file to safetensors"):
            load_encoder(f"{architecture}/{folder}/mine{suffix}")
    state = load_file(folder / WEIGHTS_FILE)
    for suffix in (".bin", ".pth", ".pt"):
        (folder / "mine.json").write_text(json.dumps({"preprocess_cfg": preprocess_cfg}))
        torch.save({**state, "model": Trap(folder / "sprung")}, folder / f"mine{suffix}")
        with pytest.raises(DataError, match=rf"mine\{suffix} must contain only tensors; .*\(getat"):
            load_encoder(f"{architecture}/{folder}/mine{suffix}")
    assert not (folder / "sprung").exists()
    with pytest.raises(DataError, match=r"other\.pt does not exist"):
        load_encoder(f"{architecture}/{folder}/other.pt")


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_command_of_the_error_converts_a_pickle_that_is_refused(folder, wrapped):
    name, expected = f"local-dir:{folder}", load_encoder(f"local-dir:{folder}").fingerprint
    state = load_file(folder / WEIGHTS_FILE)
    (folder / WEIGHTS_FILE).unlink()
    content = {"state_dict": state} if wrapped else dict(state)
    content["arguments"] = SimpleNamespace(lr=0.1)
    torch.save(content, folder / "open_clip_pytorch_model.bin")
    with pytest.raises(DataError, match=r"\(types\.SimpleNamespace\).* once: python -c") as refused:
        load_encoder(name)
    exec(re.search(r'python -c "(.*)"\. Then', str(refused.value))[1])  # the user runs it
    assert load_encoder(name).fingerprint == expected


class Trap:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (type(self.file).touch, (self.file,))


def test_a_missing_tokenizer_is_named_with_its_repository_and_files(folder, model_cfg):
    text = {**model_cfg["text_cfg"], "hf_tokenizer_name": "owner/tokenizer"}
    name = changed(folder, model_cfg={**model_cfg, "text_cfg": text})
    expected = r"must contain the tokenizer of owner/tokenizer; .* tokenizer\.json, .*spiece\.model"
    with pytest.raises(DataError, match=expected):
        load_encoder(name)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"The tokenizer of local-dir:.* cannot be loaded \("):
        load_encoder(name)


def test_the_license_in_the_model_card_is_kept_by_every_version_of_an_encoder(folder):
    name = f"local-dir:{folder}"
    assert load_encoder(name).license == EncoderLicense()
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    encoder = load_encoder(name)
    assert encoder.license == EncoderLicense("cc-by-nc-4.0", "the model card of the folder")
    assert encoder.license.permits_commercial_use is False
    assert encoder.with_image_size(64).license == encoder.license
    assert encoder.with_network(encoder.trainable_network()).license == encoder.license
    encoder.save(folder / "saved")
    assert load_encoder(f"local-dir:{folder / 'saved'}").license == encoder.license
