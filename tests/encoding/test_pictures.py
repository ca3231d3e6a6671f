import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from PIL import Image

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, collection, open_picture
from surelabel.data.cache import content_hash
from surelabel.encoding import encode, ladder_part
from surelabel.errors import ConfigError, DataError, InputError


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("tiny-vit")


@pytest.fixture(scope="module")
def paths():
    return list(collection("scenes-80", split="test").paths[:12])


def by_hand(backbone, paths):
    rows = []
    for path in paths:
        with Image.open(path) as picture:
            prepared = backbone.prepare(picture.convert("RGB"))
        rows.append(backbone.images(prepared[None]).pooled[0])
    return torch.stack(rows)


def test_features_are_those_of_the_encoder_in_the_order_of_the_paths(backbone, paths):
    found = encode(backbone, paths, batch=5)
    torch.testing.assert_close(found.features.pooled, by_hand(backbone, paths), atol=1e-3, rtol=0)
    assert found.rows.tolist() == list(range(12))


def test_worker_processes_change_nothing(backbone, paths):
    alone, helped = (encode(backbone, paths, workers=w, batch=5) for w in (0, 2))
    assert torch.equal(alone.features.pooled, helped.features.pooled)


def test_the_second_time_everything_comes_from_the_cache(backbone, paths, tmp_path):
    first, second = (
        encode(backbone, paths, cache=FeatureCache(tmp_path), part="self_aware") for _ in range(2)
    )
    assert (first.cached, second.cached) == (0, 12)
    assert second.model_seconds == 0
    assert torch.equal(first.features.pooled, second.features.pooled)
    assert torch.equal(first.features.patches, second.features.patches)
    assert first.features.grid == second.features.grid == (8, 8)


@pytest.mark.parametrize("name", ["tiny-vit", "tiny-rn"])
@pytest.mark.parametrize("part", ["attentive", "trunk"])
def test_attention_and_trunk_come_from_the_cache_as_they_were(name, part, paths, tmp_path):
    encoder = load_backbone(name)
    first, second = (encode(encoder, paths, part=part, cache=FeatureCache(tmp_path)) for _ in "ab")
    assert second.cached == 12
    opened = [encoder.prepare(open_picture(path, least_side=96)) for path in paths]
    wanted, side = getattr(encoder, part)(torch.stack(opened)), 8 if name == "tiny-vit" else 3
    for found in (first, second):
        assert found.features.grid == (side, side)
        assert found.passes.tolist() == [1] * 12
        for what in ("pooled", "patches", "attention"):
            if getattr(wanted, what) is not None:
                got = getattr(found.features, what)
                torch.testing.assert_close(got, getattr(wanted, what), atol=2e-3, rtol=0)
        if part == "trunk":
            got = found.features.layers[-1]
            torch.testing.assert_close(got, wanted.layers[-1], atol=2e-3, rtol=2e-3)
    assert torch.equal(first.features.pooled, second.features.pooled)


def test_ladders_of_other_blocks_are_kept_apart(backbone, paths, tmp_path):
    cache = FeatureCache(tmp_path)
    opened = [backbone.prepare(open_picture(path, least_side=96)) for path in paths]
    for first, depth in ((0, 3), (0, 2), (1, 3)):
        wanted = backbone.ladder(torch.stack(opened), first=first, depth=depth)
        part = ladder_part(first, depth)
        new, kept = (encode(backbone, paths, part=part, cache=cache) for _ in "ab")
        assert (new.cached, kept.cached) == (0, 12)
        for found in (new.features, kept.features):
            assert found.grid == (8, 8)
            for got, expected in (
                (found.pooled, wanted.pooled),
                (found.beside, wanted.beside),
                (found.layers[-depth - 1], wanted.layers[-depth - 1]),
            ):
                torch.testing.assert_close(got, expected, atol=2e-3, rtol=2e-3)


def test_a_changed_picture_is_encoded_again(backbone, paths, tmp_path):
    cache, file = FeatureCache(tmp_path / "cache"), tmp_path / "a.png"
    vectors = []
    for path in paths[:2]:
        open_picture(path, least_side=96).save(file)
        vectors.append(encode(backbone, [str(file)], cache=cache).features.pooled)
    assert not torch.allclose(vectors[0], vectors[1], atol=0.01)


def test_the_same_picture_under_two_names_is_encoded_once(backbone, paths, tmp_path):
    found = encode(backbone, [paths[0], paths[0]], cache=FeatureCache(tmp_path))
    assert torch.equal(found.features.pooled[0], found.features.pooled[1])
    assert len(FeatureCache(tmp_path).keys(backbone.fingerprint, "images")) == 1


def test_a_bad_picture_is_skipped_named_and_leaves_the_others_alone(backbone, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    mixed = [paths[0], str(tmp_path / "bad.jpg"), str(tmp_path / "gone.jpg"), paths[1]]
    found = encode(backbone, mixed)
    assert found.rows.tolist() == [0, 3]
    assert [s.path for s in found.skipped] == mixed[1:3]
    assert "not a picture" in found.skipped[0].reason
    expected = encode(backbone, paths[:2]).features.pooled
    assert torch.equal(found.features.pooled, expected)


def test_each_vector_comes_with_the_hash_of_its_file(backbone, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"")
    found = encode(backbone, [paths[0], str(tmp_path / "bad.jpg"), paths[1]])
    assert found.hashes == (content_hash(paths[0]), content_hash(paths[1]))


def test_with_strict_a_bad_picture_is_an_error(backbone, paths, tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"bad\.jpg: not a picture"):
        encode(backbone, [paths[0], str(tmp_path / "bad.jpg")], strict=True)


def test_no_readable_picture_is_an_error(backbone, tmp_path):
    with pytest.raises(DataError, match="None of 1 pictures could be read"):
        encode(backbone, [str(tmp_path / "gone.jpg")])
    with pytest.raises(InputError, match="no pictures"):
        encode(backbone, [])


def test_what_the_cache_lost_meanwhile_is_encoded_again(backbone, paths, tmp_path):
    class Forgetful(FeatureCache):
        def get(self, fingerprint, kind, keys):
            return {}

    expected = encode(backbone, paths, cache=FeatureCache(tmp_path)).features.pooled
    found = encode(backbone, paths, cache=Forgetful(tmp_path)).features.pooled
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_progress_ends_at_the_total(backbone, paths):
    seen = []
    encode(backbone, paths, batch=5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(5, 12), (10, 12), (12, 12)]


def test_a_graph_in_the_main_process_is_no_trouble_for_the_workers(tmp_path, paths):
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
    pictures = helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["n", 3, 8, 8])
    nodes = [helper.make_node("Flatten", ["picture"], ["features"])]
    graph = helper.make_graph(nodes, "flat", [pictures], [features])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "f.onnx")
    encoder = load_backbone(f"onnx:{tmp_path / 'f.onnx'}")
    alone, helped = (encode(encoder, paths, workers=w, batch=5) for w in (0, 2))
    opened = [encoder.prepare(open_picture(path, least_side=8)) for path in paths]
    wanted = encoder.images(torch.stack(opened)).pooled
    torch.testing.assert_close(alone.features.pooled, wanted, atol=1e-3, rtol=0)
    assert torch.equal(alone.features.pooled, helped.features.pooled)


def test_what_takes_no_pictures_says_so_before_any_is_read():
    with pytest.raises(ConfigError, match=r"^features:8 takes ready-made vectors of 8 numbers"):
        encode(load_backbone("features:8"), ["there-is-no-such.jpg"], workers=2)
