import torch

from surelabel.features import SentenceFeatures
from surelabel.records import Features
from surelabel.training import FeatureBatches, feature_batch_tensors


def test_arrays_become_float_tensors_and_flags_stay_flags():
    numbers, flags = feature_batch_tensors([[1, 0]], [[True, False]])
    assert numbers.dtype == torch.float32
    assert flags.dtype == torch.bool


def test_patches_go_with_their_image():
    pooled = torch.arange(3.0)[:, None]
    features = Features(pooled, patches=pooled[:, None].expand(3, 4, 1), grid=(2, 2))
    known = torch.ones(3, 1, dtype=torch.bool)
    source = FeatureBatches(features, torch.zeros(3, 1), known, batch_size=2)
    for batch in source.batches(torch.Generator().manual_seed(1)):
        assert torch.equal(batch.features.patches[:, 0], batch.features.pooled)
        assert batch.features.grid == (2, 2)
    assert len(source) == 2
    assert len(batch.targets) == 1


def test_the_rest_of_a_pass_is_what_would_have_come():
    pooled = torch.arange(7.0)[:, None]
    source = FeatureBatches(Features(pooled), pooled / 7, pooled >= 0, batch_size=2)
    whole, rest = (
        [b.targets.tolist() for b in source.batches(torch.Generator().manual_seed(1), skip)]
        for skip in (0, 2)
    )
    assert rest == whole[2:]


def test_tokens_go_with_their_sentence():
    pooled = torch.eye(3).half()
    sentences = SentenceFeatures(pooled, pooled[[0, 1, 1, 2]], torch.tensor([0, 1, 3, 4]))
    known = torch.ones(3, 1, dtype=torch.bool)
    source = FeatureBatches(sentences, torch.arange(3.0)[:, None], known, batch_size=2)
    for batch in source.batches(torch.Generator().manual_seed(1)):
        rows = batch.targets[:, 0].long()
        assert torch.equal(batch.features.pooled, torch.eye(3)[rows])
        assert torch.equal(batch.features.patches[:, 0], batch.features.pooled)
        assert torch.equal(batch.features.patch_mask.sum(dim=1), torch.tensor([1, 2, 1])[rows])
