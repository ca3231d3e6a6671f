"""Batches of images, and one batch in an exported program."""

import torch
from torch import nn

from surelabel.methods.inference_batches.inference_batches import inference_batches


class BatchCount(nn.Module):
    def forward(self, values):
        batches = inference_batches(values, 2)
        return torch.cat(batches) + len(batches)


def test_an_exported_program_has_one_batch_for_any_number_of_images():
    module = BatchCount()
    n = torch.export.Dim("n", min=1, max=99)
    program = torch.export.export(module, (torch.zeros(5, 3),), dynamic_shapes=({0: n},))
    assert module(torch.zeros(5, 3)).unique().tolist() == [3]
    for count in (1, 7):
        assert program.module()(torch.zeros(count, 3)).tolist() == torch.ones(count, 3).tolist()
