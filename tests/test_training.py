import pytest
import torch
from torch import nn

from surelabel.errors import InputError
from surelabel.losses import binary
from surelabel.records import Features
from surelabel.training import Labelled, fit


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 4))

    def forward(self, features):
        return features.pooled @ self.weight.T


def source(targets, known, size=4):
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    return Labelled(Features(pooled), targets, known, size=size)


def test_unknown_labels_have_no_influence():
    known = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)) < 0.5
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    heads = []
    for filled in (0.0, 1.0):
        head = Head()
        it = source(torch.where(known, targets, filled), known)
        heads.append((fit(head, it, loss=binary, epochs=3, learning_rate=0.1), head.weight))
    assert heads[0][0] == heads[1][0]
    assert torch.equal(heads[0][1], heads[1][1])


def test_the_first_pass_reports_the_loss_of_ignorance():
    targets = torch.zeros(12, 2)
    history = fit(
        Head(), source(targets, targets == 0, size=12), loss=binary, epochs=1, learning_rate=0.1
    )
    assert history == [pytest.approx(0.693147, abs=1e-5)]


def test_one_full_batch_step_moves_against_the_gradient_of_the_mean():
    head, targets = Head(), torch.ones(12, 2)
    it = source(targets, targets == 1, size=12)
    fit(head, it, loss=binary, epochs=1, learning_rate=0.1)
    down = next(it.batches(torch.Generator())).features.pooled.mean(0).sign()
    assert torch.equal(head.weight.sign(), down.expand(2, -1))


def test_every_picture_is_seen_once_a_pass():
    targets = torch.arange(24.0).view(12, 2) / 24
    seen = torch.cat(
        [b.targets for b in source(targets, targets >= 0, size=5).batches(torch.Generator())]
    )
    assert torch.equal(seen.sort(0).values, targets)


def test_nothing_known_is_an_error():
    with pytest.raises(InputError, match="needs known labels"):
        source(torch.zeros(12, 2), torch.zeros(12, 2, dtype=torch.bool))
