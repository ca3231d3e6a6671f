"""Run the image tower in PyTorch, in fp32 or bf16."""

import copy
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.interface import CompiledModule


class TorchEngine:
    """Run the modules of PyTorch without a conversion.

    On a CPU, ``bf16`` converts a copy of the weights to bf16. On a CUDA device, ``bf16`` uses
    automatic mixed precision, with tensors in the memory format ``channels_last``.
    """

    dtypes = ("fp32", "bf16")

    def __call__(self, module: nn.Module, pixels: Tensor, *, dtype: str) -> CompiledModule:
        """Return a function that computes the outputs of a module; see ``Engine``."""
        if dtype == "fp32":
            return _without_gradients(module, torch.float32)
        if _device_of(module).type == "cuda":
            with_format = copy.deepcopy(module).to(memory_format=torch.channels_last)
            return _without_gradients(with_format, torch.float32, autocast=True)
        return _without_gradients(copy.deepcopy(module).to(torch.bfloat16), torch.bfloat16)


def _without_gradients(
    module: nn.Module, input_dtype: torch.dtype, *, autocast: bool = False
) -> CompiledModule:
    device = _device_of(module)

    def run(pixels: Tensor) -> tuple[Tensor, ...]:
        context: AbstractContextManager[object] = nullcontext()
        if autocast:
            context = torch.autocast(device.type, torch.bfloat16)
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        with torch.no_grad(), context:
            outputs: tuple[Tensor, ...] = module(pixels.to(device, input_dtype))
        return tuple(output.float() if output.is_floating_point() else output for output in outputs)

    return run


def _device_of(module: nn.Module) -> torch.device:
    return next(module.parameters()).device
