import pytest
import torch
from torch import nn

from surelabel.errors import ConfigError, InputError
from surelabel.losses import binary
from surelabel.records import Features
from surelabel.training import Checkpoint, Labelled, Objective, fit, of_elements

BINARY = Objective(of_elements(binary))


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
        heads.append((fit(head, it, objective=BINARY, epochs=3, learning_rate=0.1), head.weight))
    assert heads[0][0] == heads[1][0]
    assert torch.equal(heads[0][1], heads[1][1])


def test_the_first_pass_reports_the_loss_of_ignorance():
    targets = torch.zeros(12, 2)
    history = fit(
        Head(),
        source(targets, targets == 0, size=12),
        objective=BINARY,
        epochs=1,
        learning_rate=0.1,
    )
    assert history == [(pytest.approx(0.693147, abs=1e-5), 0.0)]


def test_one_full_batch_step_moves_against_the_gradient_of_the_mean():
    head, targets = Head(), torch.ones(12, 2)
    it = source(targets, targets == 1, size=12)
    fit(head, it, objective=BINARY, epochs=1, learning_rate=0.1)
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


def test_batches_added_up_make_the_step_of_one_large_batch():
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    known = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)) < 0.7
    weights = []
    for size, together in ((12, 1), (4, 3)):
        head = Head()
        it = source(targets, known, size=size)
        fit(
            head,
            it,
            objective=BINARY,
            epochs=2,
            learning_rate=0.1,
            together=together,
            optimizer=torch.optim.SGD,
        )
        weights.append(head.weight.detach())
    assert torch.allclose(*weights, atol=1e-6)


def test_the_last_step_may_be_made_of_fewer_batches():
    targets = torch.zeros(12, 2)
    history = fit(
        Head(),
        source(targets, targets == 0, size=5),
        objective=BINARY,
        epochs=1,
        learning_rate=0.0,
        together=2,
    )
    assert history[0].loss == pytest.approx(0.693147, abs=1e-5)


def test_a_regularizer_is_weighted_and_told_apart_from_the_loss():
    targets = torch.zeros(12, 2)
    objective = Objective(of_elements(binary), lambda step: step.scores.sum() * 0 + 2, weight=3.0)
    it = source(targets, targets == 0)
    (only,) = fit(Head(), it, objective=objective, epochs=1, learning_rate=0.0)
    assert only == (pytest.approx(0.693147, abs=1e-5), pytest.approx(6.0))


def test_a_regularizer_moves_the_weights():
    targets = torch.zeros(12, 2)
    weights = []
    for weight in (0.0, 100.0):
        head = Head()
        objective = Objective(
            of_elements(binary), lambda step: (step.scores - 1).square().mean(), weight=weight
        )
        it = source(targets, targets == 0)
        fit(head, it, objective=objective, epochs=3, learning_rate=0.1)
        weights.append(head.weight.detach())
    assert not torch.allclose(*weights, atol=1e-3)


def test_a_stopped_run_goes_on_and_ends_where_the_whole_one_does(tmp_path):
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {"objective": BINARY, "epochs": 4, "learning_rate": 0.1}
    whole, stopped = Head(), Head()
    expected = fit(whole, source(targets, targets >= 0), **common)

    class Stop(Exception):
        pass

    def stop(done, _):
        if done == 2:
            raise Stop("enough")

    kept = Checkpoint(tmp_path / "state", purpose="a test")
    with pytest.raises(Stop, match="enough"):
        fit(stopped, source(targets, targets >= 0), checkpoint=kept, progress=stop, **common)
    again = Head()
    seen = []
    history = fit(
        again,
        source(targets, targets >= 0),
        checkpoint=kept,
        progress=lambda *done: seen.append(done),
        **common,
    )
    assert seen == [(3, 4), (4, 4)]
    assert torch.equal(again.weight, whole.weight)
    assert history == expected


def test_a_fit_that_leaves_all_bounds_says_so():
    targets = torch.zeros(12, 2)
    objective = Objective(of_elements(binary), lambda step: step.scores.square().sum())
    with pytest.raises(ConfigError, match=r"in pass 2: .* smaller learning_rate"):
        fit(
            Head(),
            source(targets, targets == 0, size=12),
            objective=objective,
            epochs=3,
            learning_rate=1e30,
            optimizer=torch.optim.SGD,
        )


class Forgetful(Head):
    """Draws anew in each step, as networks with dropout do."""

    def forward(self, features):
        return torch.dropout(features.pooled, 0.5, self.training) @ self.weight.T


def test_a_stopped_run_draws_on_where_it_was(tmp_path):
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {"objective": BINARY, "epochs": 3, "learning_rate": 0.1}

    def stop(*_):
        raise InterruptedError("enough")

    kept = Checkpoint(tmp_path / "state", purpose="a test")
    weights = []
    for checkpoint, stopped in ((None, False), (kept, True), (kept, False)):
        torch.manual_seed(0)
        head, it = Forgetful(), source(targets, targets >= 0)
        if stopped:
            with pytest.raises(InterruptedError, match="enough"):
                fit(head, it, checkpoint=checkpoint, progress=stop, **common)
        else:
            fit(head, it, checkpoint=checkpoint, **common)
            weights.append(head.weight.detach())
    assert torch.equal(*weights)
