import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import surelabel as sl
from surelabel import mapped_arrays
from surelabel.encoders import load_encoder
from surelabel.errors import DataError, NoReadableImage
from surelabel.features import FeatureCache, MappedFeatures
from surelabel.recognizer import fitting, fitting_features
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.recognizer.fitting_features import (
    ReencodedFeatures,
    disk_bytes_per_second,
    encode_fitting_features,
)
from surelabel.records import Features, LabelledImages
from surelabel.training import select_feature_batch_rows

NAMES = ["lion", "guitar"]
DENSE = sl.load_run(
    overrides=["method.name=dualcoop", "encoder.name=tiny-vit", "epochs=1", "batch_size=4"]
)
LINEAR = sl.load_run(overrides=["method.name=linear", "encoder.name=tiny-vit"])


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def images():
    return sl.collection("scenes-80", split="test").take(range(10))


@pytest.fixture
def small_blocks(monkeypatch):
    """Encode blocks of 4 images, and store all arrays in files."""
    monkeypatch.setattr(fitting_features, "images_per_prediction_block", lambda _: 4)
    monkeypatch.setattr(fitting_features, "encoding_batch_size", lambda _: 4)
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1)


def encode(run, source, encoder, cache):
    method = fitting.make_method_for_fitting(run, encoder, NAMES)
    return encode_fitting_features(source, method, encoder, cache)


def whole_features(features, n_images):
    return select_feature_batch_rows(features, torch.arange(n_images))


def is_in_deleted_file(tensor):
    """Return whether the memory of a tensor is that of a file without a name, as Linux lists it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(address, 16) for address in line.split()[0].split("-"))
        if first <= tensor.data_ptr() < last:
            return line.endswith("(deleted)")
    return False


def same(first, second):
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(vars(first).values(), vars(second).values(), strict=True)
    )


def data_of(features, images):
    targets = (torch.arange(len(images) * len(NAMES)) % 3 == 0).float().view(-1, len(NAMES))
    return FittingData(images.paths, features, targets, targets >= 0)


def test_few_images_stay_in_memory(encoder, images, tmp_path):
    encoded = encode(DENSE, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, Features)
    assert encoded.rows.tolist() == list(range(10))


def test_dense_features_of_several_blocks_are_in_files_and_equal(
    encoder, images, tmp_path, small_blocks
):
    encoded = encode(DENSE, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, MappedFeatures)
    assert is_in_deleted_file(encoded.features.stored.patches)
    cached = encode_fitting_features(  # one block, from the cache
        images,
        fitting.make_method_for_fitting(DENSE, encoder, NAMES),
        encoder,
        FeatureCache(tmp_path),
    )
    assert same(whole_features(encoded.features, 10), whole_features(cached.features, 10))


@pytest.mark.parametrize("name", ["multiple_instance_tiles", "ml_decoder"])
def test_views_of_several_blocks_are_in_files_and_equal(
    name, encoder, images, tmp_path, small_blocks, monkeypatch
):
    settings = [f"method.name={name}", "encoder.name=tiny-vit", "epochs=1", "batch_size=4"]
    run = sl.load_run(overrides=settings)
    encoded = encode(run, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, MappedFeatures)
    assert is_in_deleted_file(encoded.features.stored.views)
    monkeypatch.setattr(fitting_features, "images_per_prediction_block", lambda _: 12)
    whole = encode(run, images, encoder, FeatureCache(tmp_path))
    assert isinstance(whole.features, Features)
    assert same(whole_features(encoded.features, 10), whole_features(whole.features, 10))
    methods = [
        fit_recognizer_method(run, encoder, NAMES, data_of(features, images))
        for features in (encoded.features, whole.features)
    ]
    for weights, other_weights in zip(*(m.parameters() for m in methods), strict=True):
        assert torch.equal(weights, other_weights)


def test_pooled_vectors_of_several_blocks_are_one_mapped_array(
    encoder, images, tmp_path, small_blocks
):
    encoded = encode(LINEAR, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, Features)
    assert encoded.features.pooled.shape == (10, encoder.width)
    assert is_in_deleted_file(encoded.features.pooled)


def test_unreadable_images_of_any_block_are_left_out(encoder, images, tmp_path, small_blocks):
    (tmp_path / "cut.jpg").write_bytes(b"\xff\xd8cut")
    paths = [*images.paths[:2], str(tmp_path / "cut.jpg"), *images.paths[2:5]]
    source = LabelledImages(paths, NAMES, np.zeros((6, 2)))
    encoded = encode(DENSE, source, encoder, FeatureCache(tmp_path / "cache"))
    assert encoded.rows.tolist() == [0, 1, 3, 4, 5]
    assert [image.path for image in encoded.skipped] == [str(tmp_path / "cut.jpg")]
    assert len(encoded.features.pooled) == 5
    source = LabelledImages([str(tmp_path / "cut.jpg")] * 6, NAMES, np.zeros((6, 2)))
    with pytest.raises(NoReadableImage, match="got 6 unreadable images"):
        encode(DENSE, source, encoder, FeatureCache(tmp_path / "cache"))


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_fit_on_stored_or_reencoded_features_equals_the_fit_in_memory(
    encoder, images, tmp_path, small_blocks, monkeypatch, is_stored
):
    if not is_stored:
        monkeypatch.setattr(fitting_features, "_is_stored", lambda *_: False)
    features = encode(DENSE, images, encoder, FeatureCache(tmp_path)).features
    assert isinstance(features, MappedFeatures if is_stored else ReencodedFeatures)
    stored = data_of(features, images)
    in_memory = data_of(whole_features(features, 10), images)
    methods = [fit_recognizer_method(DENSE, encoder, NAMES, data) for data in (stored, in_memory)]
    for name, weight in methods[0].state_dict().items():
        tolerance = 0 if is_stored else 1e-3  # batches of another size change the last digits
        torch.testing.assert_close(
            weight, methods[1].state_dict()[name], rtol=tolerance, atol=tolerance
        )
    rows = np.array([7, 1, 4])
    taken = stored.take(rows)
    assert not isinstance(taken.features, Features)
    torch.testing.assert_close(taken.features.pooled, features.pooled[rows])


def test_initial_values_of_large_features_come_from_a_sample(
    encoder, images, tmp_path, small_blocks, monkeypatch
):
    data = data_of(encode(DENSE, images, encoder, FeatureCache(tmp_path)).features, images)
    features, targets, _ = data.for_initial_values(seed=0)
    assert torch.equal(features.pooled, data.features.pooled)
    monkeypatch.setattr(fitting, "INITIAL_BYTES", 300_000)
    features, targets, known = data.for_initial_values(seed=0)
    assert 1 <= len(features.pooled) == len(targets) == len(known) < 10


def test_the_choice_is_logged_with_the_measured_times(
    encoder, images, tmp_path, small_blocks, monkeypatch, caplog_lines
):
    monkeypatch.setattr(fitting_features, "MIN_MEASURED_BYTES", 1)
    monkeypatch.setattr(fitting_features, "PROBE_BYTES", 2**20)
    encoded = encode(DENSE, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, MappedFeatures | ReencodedFeatures)
    assert len(caplog_lines) == 1
    assert "Dense features (0.0 GB) are " in caplog_lines[0]
    assert "s per image, and reading" in caplog_lines[0]
    monkeypatch.setattr(fitting_features, "RESERVED_BYTES", 2**60)
    encoded = encode(DENSE, images, encoder, FeatureCache(tmp_path))
    assert isinstance(encoded.features, ReencodedFeatures)
    assert "computed again in each epoch: the features need" in caplog_lines[1]


@pytest.fixture
def caplog_lines():
    """Return the messages of the log of the package as a list."""
    lines, logger = [], logging.getLogger("surelabel")

    class _Handler(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    handler, level = _Handler(logging.INFO), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_image_that_is_gone_when_it_is_encoded_again_is_named(encoder, images):
    method = fitting.make_method_for_fitting(DENSE, encoder, NAMES)
    features = ReencodedFeatures(["gone.jpg"], torch.zeros(1, encoder.width), method, encoder)
    with pytest.raises(DataError, match=r"gone\.jpg"):
        features.take(torch.tensor([0]))
    assert replace(features, paths=["a", "b"]).subset(torch.tensor([0])).paths == ["a"]


def test_the_speed_of_the_disk_is_positive(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting_features, "PROBE_BYTES", 2**20)
    assert disk_bytes_per_second(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []
