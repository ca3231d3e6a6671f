import re

import torch
from torch import nn

from surelabel.encoders.engines.conversion import exported_program, onnx_model_of_program

PATH_OF_CODE = rb"[\w./-]*\.py\b"


class Network(nn.Sequential):
    """A convolution, and an operation within another gradient mode, which is a graph of its own."""

    def forward(self, pixels):
        with torch.enable_grad():
            features = super().forward(pixels)
        return (features.softmax(1),)


def test_files_contain_no_path_of_the_machine_that_wrote_them(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.fx.config, "do_not_emit_stack_traces", False)
    network = Network(nn.Conv2d(3, 4, 2), nn.LayerNorm(7)).eval()
    program = exported_program(network, (torch.rand(2, 3, 8, 8),))
    file = tmp_path / "program.pt2"
    torch.export.save(program, file)
    model = onnx_model_of_program(program, input_names=["pixels"], output_names=["output"])
    for content in (file.read_bytes(), model.SerializeToString()):
        assert b"softmax" in content
        assert re.findall(PATH_OF_CODE, content) == []
