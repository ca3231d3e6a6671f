import gzip
import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from open_clip.tokenizer import default_bpe

from surelabel.encoders import load_encoder
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.export import export_text_tower
from surelabel.export.onnx_file import onnxruntime_runtime
from surelabel.export.text_tower import TextTowerGraph, check_text_tower_export


@pytest.fixture(scope="module")
def encoder(random_checkpoint):
    return load_encoder(f"local-dir:{random_checkpoint}")


@pytest.fixture(scope="module")
def report(encoder, tmp_path_factory):
    return export_text_tower(
        encoder, tmp_path_factory.mktemp("tower") / "text.onnx", ["dog", "cat"]
    )


def test_unit_vectors_are_those_of_the_encoder(encoder, report):
    sentences = ["a photo of a dog.", "An ünï 🎸", "x " * 200]
    tokens = encoder.tokenizer(sentences).numpy()
    vectors = onnxruntime_runtime(Path(report.path))([tokens])
    assert np.abs(vectors - encoder.encode_sentences(sentences).numpy()).max() < 1e-5
    assert report.input_names == ("token_ids",)
    assert (report.check.n_items, report.check.max_batch) == (2, 2)
    assert report.check.max_differences.keys() == {"onnxruntime", "openvino"}


def test_the_tokenizer_is_beside_the_file(encoder, report):
    folder = Path(report.tokenizer_folder)
    assert folder == Path(report.path).with_suffix(".tokenizer")
    settings = json.loads((folder / "tokenizer_settings.json").read_text())
    assert (settings["start_id"], settings["end_id"], settings["context_length"]) == (
        49406,
        49407,
        77,
    )
    assert settings["lower_case"] is True
    vocabulary = json.loads((folder / settings["vocabulary"]).read_text())
    assert vocabulary["dog</w>"] == encoder.tokenizer.encode("dog")[0]
    merges = (folder / settings["merges"]).read_text().splitlines()
    with gzip.open(default_bpe()) as stream:
        stored = stream.read().decode("utf-8").split("\n")
    assert merges[1:] == stored[1 : len(merges)]
    assert len(merges) == 49152 - 256 - 2 + 1


def test_the_metadata_describe_a_text_tower(encoder, report):
    model = onnx.load(report.path)
    metadata = json.loads({entry.key: entry.value for entry in model.metadata_props}["surelabel"])
    assert metadata["kind"] == "text_tower"
    assert metadata["fingerprint"] == encoder.fingerprint
    assert (metadata["scale"], metadata["width"]) == (encoder.scale, 24)


def test_existing_files_are_replaced_only_on_request(encoder, report, tmp_path):
    file = Path(report.path)
    with pytest.raises(DataError, match=r"text\.onnx exists"):
        check_text_tower_export(encoder, file, overwrite=False)
    check_text_tower_export(encoder, file, overwrite=True)
    os.mkdir(tmp_path / "new.tokenizer")
    with pytest.raises(DataError, match=r"new\.tokenizer exists"):
        check_text_tower_export(encoder, tmp_path / "new.onnx", overwrite=False)
    with pytest.raises(DataError, match=r"must be a folder of a tokenizer"):
        check_text_tower_export(encoder, tmp_path / "new.onnx", overwrite=True)
    with pytest.raises(InputError, match=r"must have the suffix \.onnx; got .*new\.pt2"):
        check_text_tower_export(encoder, tmp_path / "new.pt2", overwrite=False)


def test_an_encoder_without_texts_is_refused(tmp_path):
    encoder = PrecomputedFeatures(8)
    with pytest.raises(ConfigError, match="features:8 has no text tower"):
        check_text_tower_export(encoder, tmp_path / "a.onnx", overwrite=False)


def test_a_mask_of_the_padding_is_a_second_input(encoder):
    """Tokenizers of transformers return a mask, which some text towers need."""
    tower = TextTowerGraph(encoder)
    tower.is_open_clip, tower.context_length = False, 5
    mask = torch.ones(1, 5, dtype=torch.int64)
    tower.tokenizer = lambda *_, **__: {"input_ids": 2 * mask, "attention_mask": mask}
    assert [inputs.sum() for inputs in tower.tokenize(["a"])] == [10, 5]
