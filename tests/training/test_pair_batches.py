import pytest
import torch

from surelabel.errors import InputError
from surelabel.features import SentenceFeatures
from surelabel.records import Features
from surelabel.training import PairBatches

IMAGES = Features(torch.arange(4.0)[:, None])
TEXTS = Features(10 + torch.arange(6.0)[:, None])
IMAGE_ROWS = torch.tensor([0, 0, 1, 2, 3, 3, 3])
TEXT_ROWS = torch.tensor([0, 1, 2, 3, 4, 5, 3])  # two captions are equal


def pair_batches(batch_size=3, image_rows=IMAGE_ROWS, texts=TEXTS):
    return PairBatches(IMAGES, texts, image_rows, TEXT_ROWS, batch_size=batch_size)


def epoch(source, seed=0, skip=0):
    return list(source.batches(torch.Generator().manual_seed(seed), skip))


def test_each_caption_occurs_once_an_epoch_beside_its_image():
    found = []
    for batch in epoch(pair_batches()):
        images, texts = batch.features.pooled[:, 0], batch.texts.pooled[:, 0] - 10
        found += list(zip(images.int().tolist(), texts.int().tolist(), strict=True))
        assert torch.equal(batch.targets, (images[:, None] == images).float())
        assert batch.known.all()
    assert sorted(found) == sorted(zip(IMAGE_ROWS.tolist(), TEXT_ROWS.tolist(), strict=True))


def test_a_last_caption_joins_the_batch_before():
    assert [len(batch.targets) for batch in epoch(pair_batches())] == [3, 4]
    assert [len(batch.targets) for batch in epoch(pair_batches(5))] == [5, 2]
    assert [len(batch.targets) for batch in epoch(pair_batches(100))] == [7]
    assert [len(pair_batches(size)) for size in (1, 3, 5, 7, 100)] == [3, 2, 2, 1, 1]


def test_a_seed_determines_the_order_and_batches_can_be_skipped():
    first, again, other = epoch(pair_batches(2)), epoch(pair_batches(2)), epoch(pair_batches(2), 1)
    orders = [torch.cat([b.texts.pooled for b in batches]) for batches in (first, again, other)]
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])
    assert torch.equal(epoch(pair_batches(2), skip=2)[0].texts.pooled, first[2].texts.pooled)


def test_tokens_of_sentences_are_padded_in_each_batch():
    lengths = torch.tensor([2, 3, 1, 4, 2, 2])
    starts = torch.cat([torch.zeros(1), lengths.cumsum(0)]).long()
    tokens = torch.ones(14, 5, dtype=torch.float16)
    texts = SentenceFeatures(torch.ones(6, 5, dtype=torch.float16), tokens, starts)
    batch = epoch(pair_batches(7, texts=texts))[0]
    assert batch.texts.patches.shape == (7, 4, 5)
    assert batch.texts.patch_mask.sum() == lengths[TEXT_ROWS].sum()


def test_captions_of_one_image_are_refused():
    with pytest.raises(
        InputError, match=r"captions of at least 2 images.*got 7 captions of 1 image"
    ):
        pair_batches(image_rows=torch.zeros(7, dtype=torch.int64))
