import math

import pytest
import torch
from torch import nn

from surelabel.errors import ConfigError, InputError
from surelabel.losses import binary, multi_matching
from surelabel.records import Features
from surelabel.training import (
    Batch,
    Checkpoint,
    FeatureBatches,
    Objective,
    objective_mean_over_known,
    run_training_loop,
)

BINARY = Objective(objective_mean_over_known(binary))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 4))

    def forward(self, features):
        return features.pooled @ self.weight.T


def source(targets, known, size=4):
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    return FeatureBatches(Features(pooled), targets, known, batch_size=size)


def test_unknown_labels_have_no_influence():
    known = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)) < 0.5
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    heads = []
    for filled in (0.0, 1.0):
        head = Head()
        it = source(torch.where(known, targets, filled), known)
        heads.append(
            (
                run_training_loop(head, it, objective=BINARY, epochs=3, learning_rate=0.1),
                head.weight,
            )
        )
    assert heads[0][0] == heads[1][0]
    assert torch.equal(heads[0][1], heads[1][1])


def test_the_first_pass_reports_the_loss_of_ignorance():
    targets = torch.zeros(12, 2)
    history = run_training_loop(
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
    run_training_loop(head, it, objective=BINARY, epochs=1, learning_rate=0.1)
    down = next(it.batches(torch.Generator())).features.pooled.mean(0).sign()
    assert torch.equal(head.weight.sign(), down.expand(2, -1))


def test_every_image_is_seen_once_a_pass():
    targets = torch.arange(24.0).view(12, 2) / 24
    seen = torch.cat(
        [b.targets for b in source(targets, targets >= 0, size=5).batches(torch.Generator())]
    )
    assert torch.equal(seen.sort(0).values, targets)


def test_nothing_known_is_an_error():
    with pytest.raises(InputError, match="needs at least one known target"):
        source(torch.zeros(12, 2), torch.zeros(12, 2, dtype=torch.bool))


def test_batches_added_up_make_the_step_of_one_large_batch():
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    known = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)) < 0.7
    weights = []
    for size, together in ((12, 1), (4, 3)):
        head = Head()
        it = source(targets, known, size=size)
        run_training_loop(
            head,
            it,
            objective=BINARY,
            epochs=2,
            learning_rate=0.1,
            accumulation_steps=together,
            optimizer=torch.optim.SGD,
        )
        weights.append(head.weight.detach())
    assert torch.allclose(*weights, atol=1e-6)


def test_the_last_step_may_be_made_of_fewer_batches():
    targets = torch.zeros(12, 2)
    history = run_training_loop(
        Head(),
        source(targets, targets == 0, size=5),
        objective=BINARY,
        epochs=1,
        learning_rate=0.0,
        accumulation_steps=2,
    )
    assert history[0].loss == pytest.approx(0.693147, abs=1e-5)


def test_a_regularizer_is_weighted_and_told_apart_from_the_loss():
    targets = torch.zeros(12, 2)
    objective = Objective(
        objective_mean_over_known(binary), [(lambda step: step.scores.sum() * 0 + 2, 3.0)]
    )
    it = source(targets, targets == 0)
    (only,) = run_training_loop(Head(), it, objective=objective, epochs=1, learning_rate=0.0)
    assert only == (pytest.approx(0.693147, abs=1e-5), pytest.approx(6.0))


def test_a_regularizer_moves_the_weights():
    targets = torch.zeros(12, 2)
    weights = []
    for weight in (0.0, 100.0):
        head = Head()
        objective = Objective(
            objective_mean_over_known(binary),
            [(lambda step: (step.scores - 1).square().mean(), weight)],
        )
        it = source(targets, targets == 0)
        run_training_loop(head, it, objective=objective, epochs=3, learning_rate=0.1)
        weights.append(head.weight.detach())
    assert not torch.allclose(*weights, atol=1e-3)


def test_a_stopped_run_goes_on_and_ends_where_the_whole_one_does(tmp_path):
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {"objective": BINARY, "epochs": 4, "learning_rate": 0.1}
    whole, stopped = Head(), Head()
    expected = run_training_loop(whole, source(targets, targets >= 0), **common)

    class Stop(Exception):
        pass

    def stop(done, _):
        if done == 2:
            raise Stop("enough")

    kept = Checkpoint(tmp_path / "state", run_id="a test")
    with pytest.raises(Stop, match="enough"):
        run_training_loop(
            stopped, source(targets, targets >= 0), checkpoint=kept, progress=stop, **common
        )
    again = Head()
    seen = []
    history = run_training_loop(
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
    objective = Objective(
        objective_mean_over_known(binary), [(lambda step: step.scores.square().sum(), 1.0)]
    )
    with pytest.raises(ConfigError, match=r"in epoch 2.* smaller learning_rate"):
        run_training_loop(
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

    kept = Checkpoint(tmp_path / "state", run_id="a test")
    weights = []
    for checkpoint, stopped in ((None, False), (kept, True), (kept, False)):
        torch.manual_seed(0)
        head, it = Forgetful(), source(targets, targets >= 0)
        if stopped:
            with pytest.raises(InterruptedError, match="enough"):
                run_training_loop(head, it, checkpoint=checkpoint, progress=stop, **common)
        else:
            run_training_loop(head, it, checkpoint=checkpoint, **common)
            weights.append(head.weight.detach())
    assert torch.equal(*weights)


class Parts(nn.Module):
    """Of two parts, one of which has a slow layer."""

    def __init__(self):
        super().__init__()
        self.learning_rate_scales = {"body": 0.5, "body.slow": 0.0}
        self.body = nn.ModuleDict({n: nn.Linear(4, 2, bias=False) for n in ("slow", "slower")})
        self.head = nn.Linear(4, 2, bias=False)
        for part in (self.body["slow"], self.body["slower"], self.head):
            nn.init.zeros_(part.weight)

    def forward(self, features):
        body = sum(part(features.pooled) for part in self.body.values())
        return body + self.head(features.pooled)


def test_parts_may_learn_at_rates_of_their_own():
    method, targets = Parts(), torch.ones(12, 2)
    it = source(targets, targets == 1, size=12)
    run_training_loop(
        method, it, objective=BINARY, epochs=1, learning_rate=0.1, optimizer=torch.optim.SGD
    )
    moved = method.head.weight
    assert moved.abs().min() > 0
    assert torch.allclose(method.body["slower"].weight, 0.5 * moved)
    assert torch.equal(method.body["slow"].weight, torch.zeros(2, 4))


class WithBias(Head):
    def __init__(self):
        super().__init__()
        nn.init.ones_(self.weight)
        self.bias = nn.Parameter(torch.ones(2))

    def forward(self, features):
        return super().forward(features) + self.bias


def test_weight_decay_shrinks_weights_and_no_biases():
    targets, method = torch.zeros(12, 2), WithBias()
    run_training_loop(
        method,
        source(targets, targets == 0, size=12),
        objective=Objective(lambda scores, targets, known: 0 * scores.sum()),
        epochs=1,
        learning_rate=0.1,
        weight_decay=0.5,
    )
    torch.testing.assert_close(method.weight.detach(), torch.full((2, 4), 1 - 0.1 * 0.5))
    assert torch.equal(method.bias.detach(), torch.ones(2))


class Listening(FeatureBatches):
    """Notes what it is told of which of its batches."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.told = []

    def update_targets(self, batch, scores):
        self.told.append((batch.targets, scores))

    def state_dict(self):
        return {"told": len(self.told)}

    def load_state_dict(self, state):
        self.told = [None] * state["told"]


def listening(size=4):
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(24.0).view(12, 2) / 24
    return Listening(Features(pooled), targets, targets >= 0, batch_size=size)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_a_source_that_learns_is_told_the_scores_that_made_the_step(accumulation_steps):
    it, head = listening(), Head()
    run_training_loop(
        head,
        it,
        objective=BINARY,
        epochs=1,
        learning_rate=0.1,
        accumulation_steps=accumulation_steps,
    )
    batches = list(listening().batches(torch.Generator().manual_seed(0)))
    assert [t.tolist() for t, _ in it.told] == [b.targets.tolist() for b in batches]
    assert torch.equal(it.told[0][1], torch.zeros(4, 2))  # of the head as it was before
    assert bool(it.told[1][1].any()) is (accumulation_steps == 1)
    assert not any(scores.requires_grad for _, scores in it.told)


def test_the_state_of_a_source_that_learns_is_kept_too(tmp_path):
    kept = Checkpoint(tmp_path / "state", run_id="a test")
    common = {"objective": BINARY, "learning_rate": 0.1, "checkpoint": kept}
    run_training_loop(Head(), listening(), epochs=2, **common)
    it = listening()
    run_training_loop(Head(), it, epochs=3, **common)
    assert it.told[:6] == [None] * 6
    assert len(it.told) == 9


def test_a_image_counts_as_its_weight_says():
    weights = torch.tensor([1.0, 0.25, 0.0])
    scores = torch.tensor([[1.0, -2.0], [0.5, 3.0], [9.0, 9.0]])
    targets, known = torch.tensor([[1.0, 0.0], [0.3, 0.7], [0.0, 0.0]]), torch.ones(3, 2) == 1
    known[0, 1] = False
    total = count = 0.0
    for row in range(3):
        for c in range(2):
            if known[row, c]:
                p = 1 / (1 + math.exp(-float(scores[row, c])))
                t = float(targets[row, c])
                total += float(weights[row]) * -(t * math.log(p) + (1 - t) * math.log(1 - p))
                count += float(weights[row])
    loss, _ = BINARY(scores, Batch(Features(scores), targets, known, weights))
    assert loss.item() == pytest.approx(total / count, abs=1e-6)


class Breaking(FeatureBatches):
    """Stops in the middle of a pass."""

    def __init__(self, *args, after, **kwargs):
        super().__init__(*args, **kwargs)
        self.left = after

    def batches(self, generator, skip=0):
        for batch in super().batches(generator, skip):
            self.left -= 1
            if self.left < 0:
                raise InterruptedError("enough")
            yield batch


@pytest.mark.parametrize(("after", "lost"), [(3, 1), (6, 0), (9, 1)])
@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_a_run_stopped_in_a_pass_goes_on_there(
    tmp_path, monkeypatch, after, lost, accumulation_steps
):
    monkeypatch.setattr("surelabel.training.loop.CHECKPOINT_INTERVAL", 2)
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {
        "objective": BINARY,
        "epochs": 2,
        "learning_rate": 0.1,
        "accumulation_steps": accumulation_steps,
    }
    kept = Checkpoint(tmp_path / "state", run_id="a test")
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    given = (Features(pooled), targets, targets >= 0)
    torch.manual_seed(0)
    whole = Forgetful()
    expected = run_training_loop(whole, source(targets, targets >= 0, size=2), **common)
    torch.manual_seed(0)
    with pytest.raises(InterruptedError, match="enough"):
        run_training_loop(
            Forgetful(), Breaking(*given, batch_size=2, after=after), checkpoint=kept, **common
        )
    torch.manual_seed(1 if kept.path.exists() else 0)
    again, rest = Forgetful(), Breaking(*given, batch_size=2, after=99)
    assert run_training_loop(again, rest, checkpoint=kept, **common) == expected
    assert torch.equal(again.weight, whole.weight)
    if accumulation_steps == 1:
        assert 99 - rest.left == 12 - after + lost


class TwoHeads(Head):
    """Learns through its scores and through their double."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def training_scores(self, features, targets, known):
        self.seen.append((targets, known))
        scores = self(features)
        return torch.stack([scores, 2 * scores])


def test_a_method_may_learn_through_several_heads():
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    known = torch.rand(12, 2, generator=torch.Generator().manual_seed(1)) < 0.7
    it, method, expected = source(targets, known, size=12), TwoHeads(), Head()
    common = {"objective": BINARY, "epochs": 1, "learning_rate": 0.1}
    (only,) = run_training_loop(method, it, optimizer=torch.optim.SGD, **common)
    assert only.loss == pytest.approx(math.log(2))
    batch = next(it.batches(torch.Generator().manual_seed(0)))
    assert torch.equal(method.seen[0][0], batch.targets)
    assert torch.equal(method.seen[0][1], batch.known)
    scores = expected(batch.features)
    losses = [BINARY(factor * scores, batch)[0] for factor in (1, 2)]
    (gradient,) = torch.autograd.grad(sum(losses) / 2, expected.weight)
    torch.testing.assert_close(method.weight.detach(), -0.1 * gradient)


def test_one_head_learns_as_scores_alone_do():
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()

    class OneHead(Head):
        def training_scores(self, features, targets, known):
            return self(features)[None]

    weights = []
    for method in (Head(), OneHead()):
        run_training_loop(
            method, source(targets, targets >= 0), objective=BINARY, epochs=3, learning_rate=0.1
        )
        weights.append(method.weight.detach())
    assert torch.equal(*weights)


def test_a_source_is_told_the_mean_of_all_heads():
    it, method = listening(), TwoHeads()
    torch.nn.init.ones_(method.weight)
    run_training_loop(method, it, objective=BINARY, epochs=1, learning_rate=0.0)
    batch = next(listening().batches(torch.Generator().manual_seed(0)))
    torch.testing.assert_close(it.told[0][1], 1.5 * batch.features.pooled @ torch.ones(4, 2))


def test_a_set_loss_is_made_small_over_the_whole_batch():
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    targets = (pooled[:, :2] > 0).float()
    head = Head()
    history = run_training_loop(
        head,
        FeatureBatches(Features(pooled), targets, targets >= 0, batch_size=12),
        objective=Objective(multi_matching),
        epochs=30,
        learning_rate=0.1,
    )
    assert history[0].loss == pytest.approx(math.log(24))
    assert math.log(targets.sum()) < history[-1].loss < history[0].loss - 0.2
    scores = pooled @ head.weight.detach().T
    assert scores[targets > 0].mean() > scores[targets == 0].mean() + 1


class Noting(torch.optim.SGD):
    """Notes the step size of each step, and the weights after it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        Noting.sizes, Noting.weights = [], []

    def step(self, closure=None):
        super().step(closure)
        self.sizes.append(self.param_groups[0]["lr"])
        self.weights.append(self.param_groups[0]["params"][0].detach().clone())


def test_the_step_size_rises_for_a_share_of_all_steps():
    targets = torch.zeros(12, 2)
    it = source(targets, targets == 0)
    run_training_loop(
        Head(),
        it,
        objective=BINARY,
        epochs=2,
        learning_rate=0.4,
        warm_up=0.5,
        optimizer=Noting,
    )
    assert Noting.sizes == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.3, 0.1])


def test_the_mean_of_the_weights_is_what_stays():
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {"objective": BINARY, "epochs": 3, "learning_rate": 0.5, "optimizer": Noting}
    plain, averaged = Head(), Head()
    expected = run_training_loop(plain, source(targets, targets >= 0), **common)
    history = run_training_loop(averaged, source(targets, targets >= 0), ema_decay=0.8, **common)
    counts = [0.8 ** (8 - step) for step in range(9)]
    mean = sum(n * w for n, w in zip(counts, Noting.weights, strict=True)) / sum(counts)
    torch.testing.assert_close(averaged.weight.detach(), mean)
    assert torch.equal(plain.weight, Noting.weights[-1])
    assert history == expected  # of the weights on their way


@pytest.mark.parametrize("wrong", [{"warm_up": 1.0}, {"ema_decay": 1.5}])
def test_a_setting_out_of_range_is_refused_before_anything_is_learnt(wrong):
    targets, head = torch.zeros(12, 2), Head()
    with pytest.raises(ConfigError, match=rf"{next(iter(wrong))} must be in \[0, 1\)"):
        run_training_loop(
            head,
            source(targets, targets == 0),
            objective=BINARY,
            epochs=1,
            learning_rate=0.1,
            **wrong,
        )
    assert not head.weight.any()


class Normed(Forgetful):
    """Draws anew in each step, and keeps running statistics."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, features):
        return super().forward(Features(self.norm(features.pooled)))


@pytest.mark.parametrize("after", [3, 5, 6, 9, 12])
def test_a_run_with_warm_up_and_averaging_goes_on_where_it_was_stopped(
    tmp_path, monkeypatch, after
):
    monkeypatch.setattr("surelabel.training.loop.CHECKPOINT_INTERVAL", 2)
    targets = torch.randint(2, (12, 2), generator=torch.Generator().manual_seed(2)).float()
    common = {"objective": BINARY, "epochs": 2, "learning_rate": 0.1}
    common |= {"warm_up": 0.4, "ema_decay": 0.9}
    kept = Checkpoint(tmp_path / "state", run_id="a test")
    pooled = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    given = (Features(pooled), targets, targets >= 0)
    methods = []
    for checkpoint, left in ((None, 99), (kept, after), (kept, 99)):
        torch.manual_seed(1 if kept.path.exists() else 0)
        method = Normed()
        try:
            run_training_loop(
                method, Breaking(*given, batch_size=2, after=left), checkpoint=checkpoint, **common
            )
        except InterruptedError:
            assert left == after
        methods.append(method.state_dict())
    whole, _, again = methods
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
