import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from PIL import Image
from pillow_heif import from_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from dng_files import dng_file, jpeg_file

from surelabel.data import collection, open_image
from surelabel.data.image_memory import image_memory_limit
from surelabel.encoders import load_encoder
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.features import FeatureCache, encode_image_files, ladder_feature_kind
from surelabel.features.cache import content_hash_for_cache


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def paths():
    return list(collection("scenes-80", split="test").paths[:12])


def by_hand(encoder, paths):
    rows = []
    for path in paths:
        with Image.open(path) as image:
            prepared = encoder.preprocess(image.convert("RGB"))
        rows.append(encoder.encode_images(prepared[None]).pooled[0])
    return torch.stack(rows)


def test_features_are_those_of_the_encoder_in_the_order_of_the_paths(encoder, paths):
    found = encode_image_files(encoder, paths, batch_size=5)
    torch.testing.assert_close(found.features.pooled, by_hand(encoder, paths), atol=1e-3, rtol=0)
    assert found.rows.tolist() == list(range(12))


def test_worker_processes_change_nothing(encoder, paths):
    alone, helped = (encode_image_files(encoder, paths, workers=w, batch_size=5) for w in (0, 2))
    assert torch.equal(alone.features.pooled, helped.features.pooled)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_that_are_encoded_at_once_have_the_same_features(
    encoder, paths, tmp_path, set_threads, workers
):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    mixed = [*paths[:7], str(tmp_path / "bad.jpg"), *paths[4:]]  # rows 4 to 6 occur twice
    expected = encode_image_files(encoder, mixed, batch_size=3)
    set_threads(2)
    counts = []
    watched = CountsOfBatches(encoder, counts)
    cache = FeatureCache(tmp_path / "cache")
    for n_cached in (0, 15):
        found = encode_image_files(watched, mixed, batch_size=3, workers=workers, cache=cache)
        assert torch.equal(found.features.pooled, expected.features.pooled)
        assert found.rows.tolist() == expected.rows.tolist()
        assert (found.hashes, found.skipped) == (expected.hashes, expected.skipped)
        assert found.n_cached == n_cached
    assert sorted(counts) == [1, 1, 1, 3, 3, 3]  # nothing is encoded twice


class CountsOfBatches:
    """A real encoder that appends the number of images of each batch to a list."""

    def __init__(self, encoder, counts):
        self._real, self._counts = encoder, counts

    def __getattr__(self, name):
        return getattr(self._real, name)

    def encode_images(self, pixels):
        self._counts.append(len(pixels))
        return self._real.encode_images(pixels)


def test_the_second_time_everything_comes_from_the_cache(encoder, paths, tmp_path):
    first, second = (
        encode_image_files(encoder, paths, cache=FeatureCache(tmp_path), kind="self_aware")
        for _ in range(2)
    )
    assert (first.n_cached, second.n_cached) == (0, 12)
    assert second.model_seconds == 0
    assert torch.equal(first.features.pooled, second.features.pooled)
    assert torch.equal(first.features.patches, second.features.patches)
    assert first.features.grid == second.features.grid == (8, 8)


@pytest.mark.parametrize("workers", [0, 2])
def test_times_are_sums_over_images_and_over_passes(encoder, paths, tmp_path, timed, workers):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    given, cache = [*paths, str(tmp_path / "bad.jpg")], FeatureCache(tmp_path / "cache")
    options = {"cache": cache, "batch_size": 5, "workers": workers}
    some = encode_image_files(timed(encoder), given[:4], **options)
    assert (some.n_cached, some.decode_seconds, some.model_seconds) == (0, 4 * 10, 1000)
    rest = encode_image_files(timed(encoder), given, **options)
    assert (rest.n_cached, rest.decode_seconds, rest.model_seconds) == (4, 8 * 10, 3 * 1000)


@pytest.fixture
def camera_files(paths, tmp_path):
    """A PNG file, and the same image as a HEIC and as a RAW file."""
    image = open_image(paths[0], min_side=96)
    image.save(tmp_path / "image.png")
    heic = from_bytes("RGB", image.size, image.tobytes())
    heic.save(tmp_path / "image.heic", quality=95, chroma=444)
    (tmp_path / "image.dng").write_bytes(dng_file(jpeg_file(image, subsampling=0)))
    return [str(tmp_path / name) for name in ("image.png", "image.heic", "image.dng")]


@pytest.mark.parametrize("workers", [0, 2])
def test_heic_and_raw_images_are_encoded_and_cached(encoder, camera_files, tmp_path, workers):
    cache = FeatureCache(tmp_path / "cache")
    first, again = (
        encode_image_files(encoder, camera_files, cache=cache, workers=workers) for _ in "ab"
    )
    assert first.skipped == ()
    cosines = first.features.pooled @ first.features.pooled[0]
    assert (cosines > 0.99).all()
    assert (first.n_cached, again.n_cached) == (0, 3)
    assert torch.equal(first.features.pooled, again.features.pooled)


def test_the_time_to_open_an_unreadable_image_counts_as_decoding(
    encoder, paths, tmp_path, timed, monkeypatch
):
    def open_slowly(path, *, min_side):
        encode_images_slowly.preprocess(Image.new("RGB", (9, 9)))
        return open_image(path, min_side=min_side)

    encode_images_slowly = timed(encoder)
    monkeypatch.setattr("surelabel.features.image_features.open_image", open_slowly)
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    found = encode_image_files(encoder, [paths[0], str(tmp_path / "bad.jpg")], workers=0)
    assert (found.decode_seconds, found.model_seconds) == (2 * 10, 0)


@pytest.mark.parametrize("name", ["tiny-vit", "tiny-rn"])
@pytest.mark.parametrize("part", ["attentive", "trunk"])
def test_attention_and_trunk_come_from_the_cache_as_they_were(name, part, paths, tmp_path):
    encoder = load_encoder(name)
    first, second = (
        encode_image_files(encoder, paths, kind=part, cache=FeatureCache(tmp_path)) for _ in "ab"
    )
    assert second.n_cached == 12
    opened = [encoder.preprocess(open_image(path, min_side=96)) for path in paths]
    wanted, side = (
        getattr(encoder, ENCODER_METHODS[part])(torch.stack(opened)),
        8 if name == "tiny-vit" else 3,
    )
    for found in (first, second):
        assert found.features.grid == (side, side)
        assert found.encoder_passes.tolist() == [1] * 12
        for what in ("pooled", "patches", "attention"):
            if getattr(wanted, what) is not None:
                got = getattr(found.features, what)
                torch.testing.assert_close(got, getattr(wanted, what), atol=2e-3, rtol=0)
        if part == "trunk":
            got = found.features.layers[-1]
            torch.testing.assert_close(got, wanted.layers[-1], atol=2e-3, rtol=2e-3)
    assert torch.equal(first.features.pooled, second.features.pooled)


def test_ladders_of_other_blocks_are_kept_apart(encoder, paths, tmp_path):
    cache = FeatureCache(tmp_path)
    opened = [encoder.preprocess(open_image(path, min_side=96)) for path in paths]
    for first, depth in ((0, 3), (0, 2), (1, 3)):
        wanted = encoder.encode_ladder_features(torch.stack(opened), first_block=first, depth=depth)
        part = ladder_feature_kind(first, depth)
        new, kept = (encode_image_files(encoder, paths, kind=part, cache=cache) for _ in "ab")
        assert (new.n_cached, kept.n_cached) == (0, 12)
        for found in (new.features, kept.features):
            assert found.grid == (8, 8)
            for got, expected in (
                (found.pooled, wanted.pooled),
                (found.self_aware_sum, wanted.self_aware_sum),
                (found.layers[-depth - 1], wanted.layers[-depth - 1]),
            ):
                torch.testing.assert_close(got, expected, atol=2e-3, rtol=2e-3)


def test_a_changed_image_is_encoded_again(encoder, paths, tmp_path):
    cache, file = FeatureCache(tmp_path / "cache"), tmp_path / "a.png"
    vectors = []
    for path in paths[:2]:
        open_image(path, min_side=96).save(file)
        vectors.append(encode_image_files(encoder, [str(file)], cache=cache).features.pooled)
    assert not torch.allclose(vectors[0], vectors[1], atol=0.01)


def test_the_same_image_under_two_names_is_encoded_once(encoder, paths, tmp_path):
    found = encode_image_files(encoder, [paths[0], paths[0]], cache=FeatureCache(tmp_path))
    assert torch.equal(found.features.pooled[0], found.features.pooled[1])
    assert len(FeatureCache(tmp_path).keys(encoder.fingerprint, "images")) == 1


def test_a_bad_image_is_skipped_named_and_leaves_the_others_alone(encoder, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    mixed = [paths[0], str(tmp_path / "bad.jpg"), str(tmp_path / "gone.jpg"), paths[1]]
    found = encode_image_files(encoder, mixed)
    assert found.rows.tolist() == [0, 3]
    assert [s.path for s in found.skipped] == mixed[1:3]
    assert "not an image" in found.skipped[0].reason
    expected = encode_image_files(encoder, paths[:2]).features.pooled
    assert torch.equal(found.features.pooled, expected)


def test_each_vector_comes_with_the_hash_of_its_file(encoder, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"")
    found = encode_image_files(encoder, [paths[0], str(tmp_path / "bad.jpg"), paths[1]])
    assert found.hashes == (content_hash_for_cache(paths[0]), content_hash_for_cache(paths[1]))


def test_with_strict_a_bad_image_is_an_error(encoder, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"bad\.jpg: not an image"):
        encode_image_files(encoder, [paths[0], str(tmp_path / "bad.jpg")], strict=True)


def test_no_readable_image_is_an_error(encoder, tmp_path):
    with pytest.raises(DataError, match=r"got 1 unreadable image\. The first"):
        encode_image_files(encoder, [str(tmp_path / "gone.jpg")])
    with pytest.raises(InputError, match="at least one image"):
        encode_image_files(encoder, [])


def test_what_the_cache_lost_meanwhile_is_encoded_again(encoder, paths, tmp_path):
    class Forgetful(FeatureCache):
        def get(self, fingerprint, kind, keys):
            return {}

    expected = encode_image_files(encoder, paths, cache=FeatureCache(tmp_path)).features.pooled
    found = encode_image_files(encoder, paths, cache=Forgetful(tmp_path)).features.pooled
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_progress_ends_at_the_total(encoder, paths):
    seen = []
    encode_image_files(
        encoder, paths, batch_size=5, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(5, 12), (10, 12), (12, 12)]


def test_a_graph_in_the_main_process_is_no_trouble_for_the_workers(tmp_path, paths):
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
    images = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])
    nodes = [helper.make_node("Flatten", ["image"], ["features"])]
    graph = helper.make_graph(nodes, "flat", [images], [features])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "f.onnx")
    encoder = load_encoder(f"onnx:{tmp_path / 'f.onnx'}")
    alone, helped = (encode_image_files(encoder, paths, workers=w, batch_size=5) for w in (0, 2))
    opened = [encoder.preprocess(open_image(path, min_side=8)) for path in paths]
    wanted = encoder.encode_images(torch.stack(opened)).pooled
    torch.testing.assert_close(alone.features.pooled, wanted, atol=1e-3, rtol=0)
    assert torch.equal(alone.features.pooled, helped.features.pooled)


def test_what_takes_no_images_says_so_before_any_is_read():
    with pytest.raises(ConfigError, match=r"^features:8 needs precomputed features of width 8"):
        encode_image_files(load_encoder("features:8"), ["there-is-no-such.jpg"], workers=2)


MAIN_PROCESS = os.getpid()
DEADLY_COLOR = (1, 2, 3)


class Deadly:
    """A real encoder that kills a worker process when it meets an image of a certain color."""

    def __init__(self, encoder):
        self._real = encoder

    def __getattr__(self, name):
        return getattr(self._real, name)

    def preprocess(self, image):
        if image.getpixel((0, 0)) == DEADLY_COLOR and os.getpid() != MAIN_PROCESS:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._real.preprocess(image)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("deadline")
def test_an_image_that_kills_its_worker_is_named_and_the_others_are_encoded(
    encoder, paths, tmp_path, workers
):
    Image.new("RGB", (30, 20), DEADLY_COLOR).save(tmp_path / "deadly.png")
    mixed = [*paths[:7], str(tmp_path / "deadly.png"), *paths[7:]]
    encoded = encode_image_files(Deadly(encoder), mixed, workers=workers, batch_size=4)
    (skipped,) = encoded.skipped
    assert skipped.path == mixed[7]
    assert skipped.reason.startswith("the decoding process was killed (SIGKILL)")
    assert encoded.rows.tolist() == [row for row in range(13) if row != 7]
    expected = encode_image_files(encoder, paths).features.pooled
    torch.testing.assert_close(encoded.features.pooled, expected, atol=1e-3, rtol=0)
    with pytest.raises(DataError, match=r"deadly\.png: the decoding process was killed"):
        encode_image_files(Deadly(encoder), mixed, workers=workers, strict=True)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.usefixtures("deadline")
def test_special_files_are_skipped_with_their_reasons(encoder, paths, tmp_path, workers):
    os.mkfifo(tmp_path / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.jpg"))
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    (tmp_path / "folder.jpg").mkdir()
    reasons = {
        "pipe.jpg": "expected a regular file; got a named pipe",
        "socket.jpg": "expected a regular file; got a socket",
        "zero.jpg": "expected a regular file; got a device",
        "loop.jpg": "too many levels of symbolic links",
        "folder.jpg": "expected a regular file; got a folder",
    }
    mixed = [paths[0], *(str(tmp_path / name) for name in reasons)]
    encoded = encode_image_files(encoder, mixed, workers=workers)
    assert encoded.rows.tolist() == [0]
    assert [(s.path, s.reason) for s in encoded.skipped] == list(
        zip(mixed[1:], reasons.values(), strict=True)
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_files_that_are_deleted_or_replaced_during_the_run_are_named(
    encoder, paths, tmp_path, workers
):
    files = [str(shutil.copy(path, tmp_path / f"{row}.jpg")) for row, path in enumerate(paths)]

    def change_folder(n_done, _):
        if n_done == 1:
            os.remove(files[10])
            os.remove(files[11])
            os.mkdir(files[11])
            shutil.copy(paths[0], tmp_path / "added.jpg")

    encoded = encode_image_files(
        encoder, files, workers=workers, batch_size=1, progress=change_folder
    )
    assert encoded.rows.tolist() == list(range(10))
    assert [s.reason for s in encoded.skipped] == [
        "no such file or directory",
        "expected a regular file; got a folder",
    ]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_limit_of_memory_applies_to_workers(encoder, paths, tmp_path, workers):
    Image.new("RGBA", (600, 500)).save(tmp_path / "large.png")
    mixed = [paths[0], str(tmp_path / "large.png")]
    with image_memory_limit(2):
        encoded = encode_image_files(encoder, mixed, workers=workers)
    assert [s.path for s in encoded.skipped] == mixed[1:]
    assert encoded.skipped[0].reason == (
        "decoding 600 × 500 pixels (PNG, RGBA) takes 3 MB of memory; --max-image-memory is 2 MB"
    )
    assert not encode_image_files(encoder, mixed, workers=workers).skipped


def test_a_file_whose_name_is_not_utf8_is_encoded(encoder, paths, tmp_path):
    file = os.path.join(tmp_path, os.fsdecode(b"caf\xe9.jpg"))
    shutil.copy(paths[0], file)
    expected, encoded = (
        encode_image_files(encoder, [path], workers=1) for path in (paths[0], file)
    )
    assert torch.equal(encoded.features.pooled, expected.features.pooled)
