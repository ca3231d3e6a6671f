"""Replace operators that the ONNX exporter of PyTorch translates with a loss of precision.

The exporter translates ``log1p(x)`` to log(1 + x), ``expm1(x)`` to exp(x) - 1 and ``logsigmoid`` to
log(sigmoid(x)). The first two lose all digits for small inputs. ONNX Runtime computes the sigmoid
of very negative inputs with a large relative error, so that its logarithm was wrong by up to 24.
The translation of ``logaddexp`` overflows for large inputs.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

SMALL_INPUT = 0.5  # below it, 1 + x or exp(x) - 1 loses digits


def accurate_program(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program with precise formulas in place of operators that ONNX does not contain.

    The results differ from those of PyTorch by rounding errors. A program without such operators is
    returned unchanged.

    Args:
        program: Program of ``torch.export.export``.
    """
    if all(node.target not in ACCURATE_FORMULAS for node in program.graph.nodes):
        return program
    accurate: torch.export.ExportedProgram = program.run_decompositions(ACCURATE_FORMULAS)
    return accurate


def _log1p(x: Tensor) -> Tensor:
    return torch.where(x.abs() < SMALL_INPUT, 2 * torch.atanh(x / (x + 2)), torch.log(x + 1))


def _expm1(x: Tensor) -> Tensor:
    exponential = x.exp()
    return torch.where(
        x.abs() < SMALL_INPUT, torch.tanh(x / 2) * (exponential + 1), exponential - 1
    )


def _log_sigmoid(x: Tensor) -> Tensor:
    return x.clamp(max=0) - _log1p((-x.abs()).exp())


def _log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    return _log_sigmoid(x), torch.empty_like(x)  # the second tensor is a buffer for gradients


def _log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b) + _log1p((-(a - b).abs()).exp())


ACCURATE_FORMULAS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.expm1.default: _expm1,
    torch.ops.aten.log1p.default: _log1p,
    torch.ops.aten.log_sigmoid.default: _log_sigmoid,
    torch.ops.aten.log_sigmoid_forward.default: _log_sigmoid_forward,
    torch.ops.aten.logaddexp.default: _log_add_exp,
}
