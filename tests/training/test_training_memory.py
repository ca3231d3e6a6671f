import pytest
import torch
from torch import nn

from surelabel.records import Features
from surelabel.training import Batch
from surelabel.training.training_memory import images_of_free_gpu_memory


def batch_of(n_images, device="cpu"):
    zeros = torch.zeros(n_images, 3, device=device)
    return Batch(Features(torch.ones(n_images, 5, device=device)), zeros, zeros == 0)


def test_a_batch_of_few_images_is_not_measured():
    """The device has no memory to measure."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))])
    images = images_of_free_gpu_memory(pytest.fail, batch_of(7), optimizer, torch.device("cuda"))
    assert images == 7


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("bytes_per_image", "fits"), [(2**10, True), (2**37, False)])
def test_the_number_of_images_falls_with_their_memory(bytes_per_image, fits):
    device = torch.device("cuda")
    layer = nn.Linear(5, 3).to(device)
    optimizer = torch.optim.AdamW(layer.parameters())

    def forward(batch):
        torch.empty(len(batch.targets) * bytes_per_image, dtype=torch.uint8, device=device)
        return layer(batch.features.pooled)

    images = images_of_free_gpu_memory(forward, batch_of(64, device), optimizer, device)
    assert images == (64 if fits else 1)
    assert all(p.grad is None for p in layer.parameters())
