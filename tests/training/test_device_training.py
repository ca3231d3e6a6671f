"""Two processes on the CPU are compared with one, for all losses and regularizers at once."""

import os
from dataclasses import replace
from itertools import islice

import pytest
import torch
from torch import nn

from surelabel.errors import ConfigError, DataError, InputError, MissingPart
from surelabel.links import Sigmoid
from surelabel.losses import LOSSES, SET_LOSSES
from surelabel.methods import TrainingRecipe
from surelabel.records import Features, FrozenTextVectors
from surelabel.regularizers import REGULARIZERS
from surelabel.training import (
    Checkpoint,
    FeatureBatches,
    Objective,
    PairBatches,
    check_training_devices,
    objective_mean_over_known,
    run_training_loop,
    train_on_devices,
)
from surelabel.training.batches import WHOLE_BATCH, BatchPart

CPU = torch.device("cpu")
WIDTH, N_LABELS, N_IMAGES = 5, 4, 21


class Adapter(nn.Module):
    """Two layers, whose output is the cosine of images with learned texts."""

    recipe = TrainingRecipe()

    def __init__(self):
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.hidden = nn.Parameter(torch.randn(WIDTH, WIDTH, generator=random))
        self.texts = nn.Parameter(torch.randn(N_LABELS, WIDTH, generator=random))

    def forward(self, features):
        return torch.tanh(features.pooled @ self.hidden) @ self.tuned_texts().T * 3

    def pair_scores(self, images, texts):
        return (
            torch.tanh(images.pooled @ self.hidden) @ (texts.pooled @ self.texts.T @ self.texts).T
        )

    def tuned_texts(self):
        return nn.functional.normalize(self.texts, dim=1)

    def encode_words(self, words):
        return self.tuned_texts()[: len(words)] + 0.1 * self.hidden[0]


class Adapters(nn.Module):
    """One adapter for each entry; their scores are blocks of columns, or of the last axis."""

    def __init__(self, count, pair_count):
        super().__init__()
        self.adapters = nn.ModuleList(Adapter() for _ in range(count))
        self.pair_adapters = nn.ModuleList(Adapter() for _ in range(pair_count))

    def forward(self, features):
        return torch.cat([adapter(features) for adapter in self.adapters], 1)

    def training_pair_scores(self, images, texts):
        return torch.stack([a.pair_scores(images, texts) for a in self.pair_adapters], 2)

    pair_scores = training_pair_scores


class SmallSecondDevice(Adapters):
    """Adapters; from the second step on, one image at most fits into the second process."""

    n_passes = 0

    def forward(self, features):
        self.check_memory(len(features.pooled))
        return super().forward(features)

    def training_pair_scores(self, images, texts):
        self.check_memory(len(images.pooled))
        return super().training_pair_scores(images, texts)

    def check_memory(self, n_images):
        self.n_passes += 1
        is_exhausted = self.n_passes > SETTINGS["accumulation_steps"]
        if os.environ.get("LOCAL_RANK") == "1" and is_exhausted and n_images > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")


class LabelsThenPairs:
    """Batches of labels, then batches of pairs; one process can fail in the last epoch."""

    def __init__(self, labels, pairs):
        self.labels, self.pairs, self.epochs = labels, pairs, 0

    def parameters(self):
        return []

    def batches(self, generator, skip=0, part=WHOLE_BATCH):
        self.epochs += 1
        second_process = part == BatchPart(1, 2)
        if second_process and self.epochs == 2:  # both compute the epoch before, and a step
            yield from islice(self.labels.batches(generator, 0, part), 4)
            raise DataError("a.jpg is damaged.")
        yield from self.labels.batches(generator, 0, part)
        yield from self.pairs.batches(generator, 0, part)

    def __len__(self):
        return len(self.labels) + len(self.pairs)


class SumOfLosses:
    """Sum of losses, each of its own block of columns, or of pairs."""

    def __init__(self, losses, pair_losses):
        self.losses, self.pair_losses = losses, pair_losses

    def __call__(self, scores, targets, known):
        if scores.dim() == 3:
            blocks = zip(self.pair_losses, scores.unbind(2), strict=True)
            return sum(loss(block, targets, known) for loss, block in blocks)
        columns = (array.split(N_LABELS, 1) for array in (scores, targets, known))
        blocks = zip(*columns, strict=True)
        return sum(loss(*arrays) for loss, arrays in zip(self.losses, blocks, strict=False))


class RegularizerOfBlock:
    """Regularizer of one block of columns, with the learned texts of its adapter."""

    def __init__(self, regularizer, block, adapter, texts):
        self.regularizer, self.block, self.texts = regularizer, block, texts
        self.adapter = adapter

    def __call__(self, step):
        if step.scores.dim() == 3:  # pairs
            return step.scores.sum() * 0
        columns = slice(self.block * N_LABELS, (self.block + 1) * N_LABELS)
        return self.regularizer(
            replace(
                step,
                scores=step.scores[:, columns],
                logits=step.logits[:, columns],
                targets=step.targets[:, columns],
                known=step.known[:, columns],
                texts=self.texts,
                tuned_texts=self.adapter.tuned_texts(),
                encode_words=self.adapter.encode_words,
                frozen_text_vectors=FrozenTextVectors(["lion"], ["cat", "dog", "cow"], self.encode),
            )
        )

    def encode(self, words):
        return self.texts[: len(words)]


def tensors(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def training_run(method_class=Adapters):
    """Return method, source and objective with every loss and every regularizer."""
    losses = [*map(objective_mean_over_known, LOSSES.values()), *SET_LOSSES.values()]
    blocks = len(losses) + len(REGULARIZERS)
    method = method_class(blocks, len(losses))
    texts = nn.functional.normalize(tensors(N_LABELS, WIDTH, seed=5), dim=1)
    regularizers = [
        (RegularizerOfBlock(REGULARIZERS[name], block, method.adapters[block], texts), 1.0)
        for block, name in enumerate(REGULARIZERS, len(losses))
    ]
    targets = (tensors(N_IMAGES, N_LABELS, seed=2) > 0.4).float().repeat(1, blocks)
    known = (tensors(N_IMAGES, N_LABELS, seed=3) > -1.2).repeat(1, blocks)
    images = Features(tensors(N_IMAGES, WIDTH, seed=4))
    captions = Features(tensors(13, WIDTH, seed=6))
    labels = FeatureBatches(images, targets * known, known, batch_size=5)  # 5, 5, 5, 5 and 1
    pairs = PairBatches(images, captions, torch.arange(13) // 2, torch.arange(13), batch_size=5)
    objective = Objective(SumOfLosses(losses, losses), regularizers, link=Sigmoid())
    return method, LabelsThenPairs(labels, pairs), objective


SETTINGS = {
    "epochs": 3,
    "learning_rate": 0.05,
    "weight_decay": 0.01,
    "optimizer": torch.optim.SGD,
    "accumulation_steps": 3,  # 8 batches, so that labels and pairs are in one step
    "ema_decay": 0.5,
    "seed": 7,
}


def interrupt(done, total):
    raise KeyboardInterrupt("after an epoch")


def train_with(train, checkpoint=None, progress=None, method_class=Adapters, **devices):
    method, source, objective = training_run(method_class)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        history = train(
            method,
            source,
            objective=objective,
            checkpoint=checkpoint,
            progress=progress,
            **devices,
            **SETTINGS,
        )
    return method, history


@pytest.fixture(scope="module")
def one_process():
    """Return the method that one process trains, and the losses."""
    return train_with(run_training_loop)


def test_two_processes_equal_one_for_all_losses_and_regularizers(
    one_process, tmp_path, forked_programs
):
    """The first epoch runs in one process, the second in two, of which one fails in the third.

    In the second epoch, the memory of one process is exhausted. The weights stay equal, also those
    of losses and regularizers that compare images.
    """
    method, history = one_process
    checkpoint, calls = Checkpoint(tmp_path / "fit", run_id="a"), []
    with pytest.raises(KeyboardInterrupt, match="after an epoch"):
        train_with(run_training_loop, checkpoint, interrupt)
    with (
        forked_programs(),
        pytest.warns(UserWarning, match="with at most [12] images? per forward pass.$"),
        pytest.raises(DataError, match=r"^a.jpg is damaged.$"),
    ):
        train_with(
            train_on_devices,
            checkpoint,
            lambda done, total: calls.append((done, total)),
            method_class=SmallSecondDevice,
            devices=2,
            device=CPU,
        )
    assert calls == [(2, 3)]
    resumed, resumed_history = train_with(run_training_loop, checkpoint)
    for losses, other_losses in zip(history, resumed_history, strict=True):
        assert losses == pytest.approx(other_losses, rel=1e-5)
    names = [*LOSSES, *SET_LOSSES, *REGULARIZERS, *LOSSES, *SET_LOSSES]
    adapters, others = ([*m.adapters, *m.pair_adapters] for m in (method, resumed))
    start = Adapter()
    for name, one, both in zip(names, adapters, others, strict=True):
        assert (one.hidden - both.hidden).abs().max() <= 1e-5, name
        assert (one.texts - both.texts).abs().max() <= 1e-5, name
        assert (one.texts - start.texts).abs().max() > 1e-4, name


def test_a_trained_method_and_its_losses_come_back_from_another_process(one_process):
    one, history = one_process
    other, other_history = train_with(train_on_devices, devices=1, device=CPU)
    assert other_history == history
    for parameter, other_parameter in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(parameter, other_parameter)


@pytest.mark.parametrize("devices", [0, True, 1.5])
def test_devices_are_a_whole_number(devices):
    with pytest.raises(InputError, match="devices must be a whole number of at least 1; got"):
        check_training_devices(Adapter(), devices, CPU)


def test_more_gpus_than_there_are_is_an_error():
    count = torch.cuda.device_count() + 1
    with pytest.raises(InputError, match="devices must be at most the number of GPUs"):
        check_training_devices(Adapter(), count, torch.device("cuda"))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("surelabel.training.device_training.FABRIC_PACKAGE", "no_such_package")
    with pytest.raises(MissingPart, match=r"Run pip install 'surelabel\[train\]'"):
        check_training_devices(Adapter(), 2, CPU)


def test_layers_that_compare_images_are_trained_on_one_device():
    method = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    check_training_devices(method, 1, CPU)
    with pytest.raises(ConfigError, match="batch normalization layers that depend on all images"):
        check_training_devices(method, 2, CPU)


def test_a_loss_that_cannot_be_sent_is_named(tmp_path):
    method, source, _ = training_run()
    objective = Objective(lambda scores, targets, known: scores.sum())
    with pytest.raises(DataError, match="must be picklable for the training processes"):
        train_on_devices(method, source, objective=objective, devices=2, device=CPU, epochs=1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_in_bfloat16_close_to_the_cpu(one_process):
    one, _ = one_process
    other, _ = train_with(train_on_devices, devices=1, device=torch.device("cuda"))
    for parameter, other_parameter in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(parameter, other_parameter, atol=0.05)
