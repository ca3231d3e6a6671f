import pytest
import torch
from torch import nn

from surelabel.losses import binary
from surelabel.records import Features
from surelabel.training import FeatureBatches, Objective, objective_mean_over_known
from surelabel.training.device_task import (
    ALIGNMENT,
    DeviceTrainingTask,
    load_device_result,
    read_device_task,
    save_device_result,
    write_device_task,
)


class Tied(nn.Module):
    """Module with a parameter that is used twice, and buffers of several types."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 2)
        self.second = self.first.weight
        self.register_buffer("mask", torch.tensor([True, False, True]))
        self.register_buffer("short", torch.tensor([1.5, -2], dtype=torch.bfloat16))
        self.register_buffer("empty", torch.empty(0, 4))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)


class Views:
    """Two views of one storage."""

    def __init__(self):
        self.base = torch.arange(12.0)
        self.view = self.base[2:8].view(2, 3).T


@pytest.fixture
def task():
    targets = torch.eye(5, 2)
    source = FeatureBatches(Features(torch.randn(5, 3)), targets, targets >= 0, batch_size=2)
    objective = Objective(objective_mean_over_known(binary))
    arguments = {"epochs": 2, "views": Views()}
    state = torch.get_rng_state()
    return DeviceTrainingTask(Tied(), source, objective, arguments, None, state, 1)


def test_a_task_has_the_same_tensors_in_the_other_process(task, tmp_path):
    path = tmp_path / "tensors"
    sent = read_device_task(write_device_task(task, path), path, gpu=0)
    state, sent_state = task.method.state_dict(), sent.method.state_dict()
    assert list(state) == list(sent_state)
    for name, tensor in state.items():
        assert tensor.dtype == sent_state[name].dtype
        assert torch.equal(tensor, sent_state[name]), name
    assert sent.method.second is sent.method.first.weight
    gradients = [p.requires_grad for p in task.method.parameters()]
    assert [p.requires_grad for p in sent.method.parameters()] == gradients
    assert torch.equal(sent.random_state, task.random_state)
    batches = [s.batches(torch.Generator().manual_seed(3)) for s in (task.source, sent.source)]
    for one, other in zip(*batches, strict=True):
        assert torch.equal(one.features.pooled, other.features.pooled)


def test_views_of_one_storage_stay_views_of_one_storage(task, tmp_path):
    path = tmp_path / "tensors"
    views = read_device_task(write_device_task(task, path), path, gpu=0).arguments["views"]
    assert views.view.stride() == task.arguments["views"].view.stride()
    views.base[3] = 99
    assert views.view[1, 0] == 99


def test_changes_in_one_process_do_not_reach_the_file(task, tmp_path):
    path = tmp_path / "tensors"
    message = write_device_task(task, path)
    content = path.read_bytes()
    one, other = (read_device_task(message, path, gpu=0) for _ in range(2))
    with torch.no_grad():
        one.method.first.weight.zero_()
    assert path.read_bytes() == content
    assert torch.equal(other.method.first.weight, task.method.first.weight)


def test_the_file_has_nothing_but_the_bytes_of_the_tensors(tmp_path):
    """The message is a pickle, which is never in a file."""
    tensors = [torch.arange(5.0), torch.arange(40, dtype=torch.uint8), torch.randn(3)]
    path = tmp_path / "tensors"
    write_device_task(tensors, path)
    parts = [tensor.numpy().tobytes() for tensor in tensors]
    padded = [part.ljust(ALIGNMENT, b"\0") for part in parts[:-1]]
    assert path.read_bytes() == b"".join([*padded, parts[-1]])
    assert [file.name for file in tmp_path.iterdir()] == ["tensors"]


def test_a_result_is_a_checkpoint_without_pickle(tmp_path):
    method, other = Tied(), Tied()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        state = torch.get_rng_state()
        save_device_result(method, [[0.1, 0.25], [1 / 3, 0.0]], tmp_path)
        torch.manual_seed(6)
        assert load_device_result(other, tmp_path) == [[0.1, 0.25], [1 / 3, 0.0]]
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(method.first.weight, other.first.weight)
    assert [file.suffix for file in tmp_path.iterdir()] == [".safetensors"]
