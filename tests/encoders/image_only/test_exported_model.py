import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.encoders.image_only.exported_model import exported_model
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.features import encode_image_files
from surelabel.features.in_memory import encode_images_in_memory
from surelabel.features.resized_pixels import normalize_resized, resize_for_encoder
from surelabel.views import TileLayout, crop_and_resize_box

RNG = np.random.default_rng(0)
IMAGES = [
    Image.fromarray(RNG.integers(0, 256, (*size, 3), dtype=np.uint8))
    for size in ((20, 30), (8, 8), (1, 2), (64, 9))
]


def outputs_of(encoder, features):
    """Return the outputs of the graph, as the method zero_shot computes them from features."""
    labels = encoder.encode_labels(encoder.metadata.names, ["{}"])
    return (encoder.scale * features.pooled @ labels.T).numpy()


@pytest.mark.parametrize("name", ["tagger.onnx", "tagger.xml"])
def test_the_vectors_give_the_outputs_to_more_digits_than_fp16_has(exported_file, name):
    encoder = exported_model(exported_file(name), "cpu")
    pixels = torch.from_numpy(RNG.normal(size=(50, 3, 8, 8)).astype(np.float32)) * 20
    expected = 9 * pixels.mean((2, 3)).numpy()
    features = encoder.encode_images(pixels)
    halves = type(features)(features.pooled.half().float())
    np.testing.assert_allclose(outputs_of(encoder, halves), expected, atol=2e-5, rtol=1e-6)
    assert np.abs(expected).max() > 40
    assert encoder.width == 6
    assert encoder.engine.description == (
        "onnx fp32" if name.endswith(".onnx") else "openvino fp32"
    )


@pytest.mark.parametrize("name", ["tagger.onnx", "tagger.xml"])
@pytest.mark.parametrize("inputs", ["pixels", "views", "raw"])
def test_images_in_memory_and_in_files_are_preprocessed_as_the_input_needs(
    exported_file, tmp_path, inputs, name
):
    encoder = exported_model(exported_file(name, inputs=inputs), "cpu")
    paths = [str(tmp_path / f"{row}.png") for row in range(len(IMAGES))]
    for path, image in zip(paths, IMAGES, strict=True):
        image.save(path)
    expected = []
    for image in IMAGES:
        parts = [image]
        if inputs == "raw":
            pixels = np.asarray(image, dtype=np.float64)[None] / 255
        else:
            boxes = TileLayout(2, 2).boxes(image.size, "") if inputs == "views" else []
            parts += [crop_and_resize_box(image, box, size=(8, 8)) for box in boxes]
            pixels = torch.stack([encoder.preprocess(part) for part in parts])
            pixels = pixels.permute(0, 2, 3, 1).numpy()
        expected.append(9 * pixels.mean((0, 1, 2)))
    for encoded in (encode_images_in_memory(encoder, IMAGES), encode_image_files(encoder, paths)):
        found = outputs_of(encoder, encoded.features)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_images_of_another_shape_or_type_are_refused(exported_file):
    encoder = exported_model(exported_file(), "cpu")
    for pixels in (torch.zeros(1, 3, 9, 8), torch.zeros(3, 8, 8), torch.zeros(1, 3, 8, 8).byte()):
        with pytest.raises(InputError, match=r"must have the shape \(n, \*\(3, 8, 8\)\)"):
            encoder.encode_images(pixels)
    raw = exported_model(exported_file(inputs="raw"), "cpu")
    with pytest.raises(InputError, match=r"and the type torch\.uint8; got .* torch\.float32"):
        raw.encode_images(torch.zeros(1, 5, 6, 3))
    pixels = normalize_resized(raw, resize_for_encoder(raw, IMAGES[0])[None])
    assert raw.encode_images(pixels).pooled.shape == (1, 6)


def test_only_labels_of_the_file_have_a_column(exported_file):
    encoder = exported_model(exported_file(), "cpu")
    vectors = encoder.encode_labels(["BLUE", "red"], ["{}"])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    assert vectors.nonzero()[:, 1].tolist() == [2, 5, 0, 3]
    with pytest.raises(ConfigError, match=r"only the 3 labels of the export; got dog\. Use labels"):
        encoder.encode_labels(["red", "dog"], ["{}"])
    assert encoder.thresholds_of_labels(["blue", "red"]).tolist() == [0.9, 0.3]


def test_scores_have_neither_a_bias_nor_thresholds(exported_file):
    values = {"output": "scores", "output_name": "scores"}
    file = exported_file(**values, calibrated_on=None, thresholds=None)
    encoder = exported_model(file, "cpu")
    assert encoder.logit_bias is None
    assert encoder.thresholds_of_labels(["red"]) is None
    assert exported_model(exported_file(), "cpu").logit_bias == 0


@pytest.mark.parametrize("name", ["tagger.onnx", "tagger.xml"])
def test_a_saved_one_stands_alone(exported_file, tmp_path, name):
    file = exported_file(name)
    encoder = exported_model(file, "cpu")
    encoder.save(tmp_path / "saved")
    for copied in encoder.graph.files:
        copied.unlink()
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert (again.name, again.fingerprint) == (str(file), encoder.fingerprint)
    pixels = torch.rand(2, 3, 8, 8)
    assert torch.equal(again.encode_images(pixels).pooled, encoder.encode_images(pixels).pooled)


def test_the_fingerprint_covers_the_weights_and_the_metadata(exported_file):
    first = exported_model(exported_file("a.xml"), "cpu")
    moved = [shutil.copy(file, file.with_stem("b")) for file in first.graph.files]
    assert exported_model(moved[0], "cpu").fingerprint == first.fingerprint
    other = exported_file("c.xml", thresholds=[0.3, 0.5, 0.8])
    assert exported_model(other, "cpu").fingerprint != first.fingerprint
    weights = first.graph.files[1]
    weights.write_bytes(weights.read_bytes().replace(np.float32(9).tobytes(), b"\0\0\0\x40"))
    assert exported_model(first.graph.file, "cpu").fingerprint != first.fingerprint


def test_a_changed_copy_in_a_saved_folder_is_refused(exported_file, tmp_path):
    exported_model(exported_file(), "cpu").save(tmp_path / "saved")
    other = exported_file("other.onnx", thresholds=[0.1, 0.1, 0.1])
    other.replace(tmp_path / "saved" / "exported" / "tagger.onnx")
    with pytest.raises(DataError, match=r"fingerprint in .* must be"):
        load_encoder(f"local-dir:{tmp_path / 'saved'}")


@pytest.mark.parametrize("value", ["../tagger.onnx", "/etc/passwd", "weights.bin", 3, ["a.onnx"]])
def test_a_path_in_the_manifest_is_refused(exported_file, tmp_path, value):
    folder = tmp_path / "saved"
    exported_model(exported_file(), "cpu").save(folder)
    manifest = json.loads((folder / "surelabel_encoder.json").read_text())
    (folder / "surelabel_encoder.json").write_text(json.dumps({**manifest, "exported": value}))
    with pytest.raises(DataError, match=r'"exported" of the manifest .* must be the name of an'):
        load_encoder(f"local-dir:{folder}")
    (folder / "surelabel_encoder.json").write_text(json.dumps({**manifest, "name": value, "a": 1}))
    if not isinstance(value, str):
        with pytest.raises(DataError, match=r'"name" of the manifest .* must be a text'):
            load_encoder(f"local-dir:{folder}")


def test_it_is_no_encoder_for_a_fit(exported_file):
    file = exported_file()
    with pytest.raises(ConfigError, match=r"got the file .*tagger\.onnx.*cannot be fitted; give"):
        load_encoder(str(file))
    with pytest.raises(ConfigError, match=r"onnx:FILE must be an image encoder; .* Give .*tagger"):
        load_encoder(f"onnx:{file}")
    encoder = exported_model(file, "cpu")
    for call in (
        encoder.trainable_network,
        lambda: encoder.encode_sentences(["a dog"]),
        lambda: encoder.encode_patches(torch.zeros(1, 3, 8, 8)),
        lambda: encoder.last_blocks(2),
        lambda: encoder.with_image_size(8),
    ):
        with pytest.raises(ConfigError, match="is an exported recognizer, whose encoder and lab"):
            call()


def test_another_device_than_the_cpu_is_refused(exported_file):
    with pytest.raises(ConfigError, match="device must be cpu for exported files; got 'meta'"):
        exported_model(exported_file(), "meta")
