from pathlib import Path

import numpy as np
import pytest
import torch

from surelabel import mapped_arrays
from surelabel.features import FeatureRows, MappedFeatures
from surelabel.features.mapped_features import (
    MappedFeatureWriter,
    has_dense_features,
    mapped_feature_bytes,
)
from surelabel.records import Features
from surelabel.training import select_feature_batch_rows


def dense_features(n_images, seed=0):
    """Return features of all kinds, rounded to fp16 as those of the cache."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.randn(n_images, *shape, generator=generator).half().float()

    attention = torch.rand(n_images, 4, 4, generator=generator)
    return Features(
        pooled=random(6),
        patches=random(4, 6),
        grid=(2, 2),
        attention=attention / attention.sum(dim=-1, keepdim=True),
        layers={-1: random(4, 5), -3: random(5, 5)},
        self_aware_sum=random(4, 5),
        multi_layer=random(4, 2, 5),
    )


def written(features, folder, sizes):
    writer = MappedFeatureWriter(sum(sizes) + 3, folder)  # 3 images that cannot be read
    start = 0
    for size in sizes:
        writer.append(select_feature_batch_rows(features, torch.arange(start, start + size)))
        start += size
    return writer.features()


def is_in_deleted_file(tensor):
    """Return whether the memory of a tensor is that of a file without a name, as Linux lists it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(address, 16) for address in line.split()[0].split("-"))
        if first <= tensor.data_ptr() < last:
            return line.endswith("(deleted)")
    return False


def assert_equal(found, wanted):
    assert found.grid == wanted.grid
    assert found.layers.keys() == wanted.layers.keys()
    for name in ("pooled", "patches", "attention", "self_aware_sum", "multi_layer"):
        assert getattr(found, name).dtype == torch.float32
        assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    for layer, tokens in wanted.layers.items():
        assert torch.equal(found.layers[layer], tokens)


def test_features_of_blocks_are_read_again_without_a_lost_digit(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_arrays, "MIN_MAPPED_BYTES", 1)
    features = dense_features(10)
    mapped = written(features, tmp_path, [4, 4, 2])
    assert isinstance(mapped, FeatureRows)
    assert torch.equal(mapped.pooled, features.pooled)
    for rows in (torch.arange(10), torch.tensor([7, 0, 7]), torch.tensor([], dtype=torch.int64)):
        assert_equal(mapped.take(rows), select_feature_batch_rows(features, rows))
        assert_equal(select_feature_batch_rows(mapped, rows), mapped.take(rows))
    assert is_in_deleted_file(mapped.stored.patches)
    assert mapped.stored.patches.dtype == torch.float16
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_subset_are_those_of_all_images(tmp_path):
    features = dense_features(10)
    subset = written(features, tmp_path, [10]).subset(torch.tensor([8, 2, 5]))
    assert torch.equal(subset.pooled, features.pooled[[8, 2, 5]])
    again = subset.subset(torch.tensor([2, 0]))
    assert_equal(
        again.take(torch.tensor([1, 0])),
        select_feature_batch_rows(features, torch.tensor([8, 5])),
    )


def test_the_bytes_of_an_image_are_counted_in_half_precision_except_attention(tmp_path):
    features = dense_features(3)
    n_half = 4 * 6 + 4 * 5 + 5 * 5 + 4 * 5 + 4 * 2 * 5
    assert mapped_feature_bytes(features) == 4 * 6 + 4 * 4 * 4 + 2 * n_half


@pytest.mark.parametrize("part", ["patches", "views", "layers"])
def test_features_besides_the_pooled_vectors_are_dense(part):
    assert not has_dense_features(Features(torch.zeros(1, 2)))
    value = {-1: torch.zeros(1, 1, 2)} if part == "layers" else torch.zeros(1, 1, 2)
    assert has_dense_features(Features(torch.zeros(1, 2), **{part: value}))


def test_mapped_features_of_another_dtype_stay_float32_when_read(tmp_path):
    features = Features(torch.zeros(2, 3), patches=torch.ones(2, 1, 3, dtype=torch.float64))
    mapped = written(features, tmp_path, [2])
    assert isinstance(mapped, MappedFeatures)
    np.testing.assert_array_equal(mapped.take(torch.tensor([1])).patches.numpy(), 1.0)
    assert mapped.take(torch.tensor([1])).patches.dtype == torch.float32
