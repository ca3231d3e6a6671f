import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from surelabel.encoders import TEMPLATES, load_encoder
from surelabel.errors import ConfigError, DataError


def test_it_is_a_width_and_nothing_else(tmp_path):
    stand_in = load_encoder("features:1280")
    stand_in.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert (again.name, again.width) == ("features:1280", 1280)
    assert again.fingerprint == stand_in.fingerprint != load_encoder("features:64").fingerprint
    assert again.patch_kinds == ()


def test_images_and_texts_are_refused_in_one_sentence_each():
    stand_in = load_encoder("features:3")
    images = "features:3 needs precomputed features of width 3; got image files. Give an .npz file"
    for call in (
        lambda: stand_in.preprocess(None),
        lambda: stand_in.encode_images(torch.zeros(1, 3, 8, 8)),
        lambda: stand_in.input_side,
        lambda: stand_in.with_image_size(96),
    ):
        with pytest.raises(ConfigError, match=images):
            call()
    with pytest.raises(ConfigError, match="features:3 has no text tower"):
        stand_in.encode_labels(["dog"], TEMPLATES["one"])
    with pytest.raises(ConfigError, match="features:3 computes one vector per image, but no trunk"):
        stand_in.encode_trunk_tokens(torch.zeros(1, 3, 8, 8))
    with pytest.raises(ConfigError, match="features:3 cannot be trained"):
        stand_in.trainable_network()


@pytest.mark.parametrize("width", ["", "0", "-3", "1.5", "x", "²", "9" * 5000, " 8"])
def test_a_width_that_is_no_whole_number_is_refused(width):
    with pytest.raises(ConfigError, match="WIDTH in features:WIDTH must be an integer"):
        load_encoder(f"features:{width}")


def test_a_saved_width_that_is_no_number_is_refused(tmp_path):
    load_encoder("features:8").save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    about = json.loads(file.read_text())
    for wrong in ("8", None, True, [8]):
        file.write_text(json.dumps({**about, "features": wrong}))
        with pytest.raises(DataError, match="must be an integer, the width"):
            load_encoder(f"local-dir:{file.parent}")
    file.write_text(json.dumps({**about, "features": 9}))
    with pytest.raises(DataError, match=r"The fingerprint in .* must be"):
        load_encoder(f"local-dir:{file.parent}")


def test_a_fitted_normalization_is_saved_and_part_of_the_fingerprint(tmp_path):
    images, texts = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[2.0], [4.0], [9.0]])
    fitted = load_encoder("features:2").fit_normalization(images, texts)
    fitted.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert again.fingerprint == fitted.fingerprint != load_encoder("features:2").fingerprint
    other = load_encoder("features:2").fit_normalization(images + 1, texts)
    assert other.fingerprint != fitted.fingerprint
    assert again.normalization_description == (
        "images standardized by the statistics of 2 training vectors, 1 of 2 columns constant; "
        "captions standardized by the statistics of 3 training vectors"
    )
    expected = fitted.images.normalize(images + 1)
    torch.testing.assert_close(again.images.normalize(images + 1), expected)
    torch.testing.assert_close(again.texts.normalize(texts), fitted.texts.normalize(texts))


def test_a_manifest_without_normalization_is_of_0_1_0_and_of_unit_length(tmp_path):
    load_encoder("features:2").save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({k: manifest[k] for k in ("features", "fingerprint")}))
    again = load_encoder(f"local-dir:{file.parent}")
    assert again.normalization_description == "scaled to unit length"
    normalized = again.images.normalize(np.array([[3.0, 4.0]]))
    torch.testing.assert_close(normalized, torch.tensor([[0.6, 0.8]]))


@pytest.mark.parametrize(
    "change",
    [
        {"images": {"kind": "l2", "n_vectors": 2}},
        {"images": {"kind": ["unit"], "n_vectors": 2}},
        {"images": {"kind": "standardize"}},
        {"images": "standardize"},
        {"images": 3},
        {"texts": {"kind": "standardize", "n_vectors": 2}},
        {"normalize": "l2"},
        {"features": 3},
    ],
    ids=str,
)
def test_a_damaged_normalization_is_refused(change, tmp_path):
    load_encoder("features:2").fit_normalization(np.eye(2) * 3).save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(DataError, match="must contain a valid normalization for vectors of width"):
        load_encoder(f"local-dir:{file.parent}")


def test_missing_or_changed_statistics_are_refused(tmp_path):
    load_encoder("features:2").fit_normalization(np.eye(2) * 3).save(tmp_path / "saved")
    file = tmp_path / "saved" / "vector_statistics.safetensors"
    for deviation in (np.array([1.0, -1.0]), np.array([1.0, np.nan]), np.ones(3)):
        save_file({"images_mean": np.ones(2), "images_deviation": deviation}, file)
        with pytest.raises(DataError, match="invalid statistics of images, with the shapes"):
            load_encoder(f"local-dir:{file.parent}")
    save_file({"images_mean": np.ones(2), "images_deviation": np.ones(2)}, file)
    with pytest.raises(DataError, match=r"The fingerprint in .* must be"):
        load_encoder(f"local-dir:{file.parent}")
    file.unlink()
    with pytest.raises(DataError, match="images_mean"):
        load_encoder(f"local-dir:{file.parent}")
