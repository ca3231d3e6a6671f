"""Run the image tower with OpenVINO, in fp32 or bf16."""

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.conversion import (
    exported_program,
    import_engine_package,
    onnx_model_of_program,
    openvino_model_of_onnx,
)
from surelabel.encoders.engines.interface import CompiledModule
from surelabel.encoders.engines.thread_counts import concurrent_call_count, process_thread_count
from surelabel.errors import ConfigError
from surelabel.package_imports import openvino_core

INPUT = "pixels"
PRECISIONS = {"fp32": "f32", "bf16": "bf16"}  # values of INFERENCE_PRECISION_HINT


class OpenVINOEngine:
    """Convert modules to OpenVINO models, and run the models on the CPU."""

    dtypes = ("fp32", "bf16")

    def __call__(self, module: nn.Module, pixels: Tensor, *, dtype: str) -> CompiledModule:
        """Return a function that computes the outputs of a module; see ``Engine``."""
        import_engine_package("openvino")
        program = exported_program(module, (pixels,))
        outputs = [f"output_{index}" for index in range(len(module(pixels)))]
        model = onnx_model_of_program(program, input_names=[INPUT], output_names=outputs)
        return compile_openvino_model(openvino_model_of_onnx(model), outputs, dtype=dtype)


def compile_openvino_model(model: Any, outputs: Sequence[str], *, dtype: str) -> CompiledModule:
    """Return a function that computes the outputs of an OpenVINO model on the CPU.

    Args:
        model: Model of the type ``openvino.Model`` with the input ``pixels``.
        outputs: Names of the outputs, in the order of the results.
        dtype: Number format of the operators that are not quantized, ``fp32`` or ``bf16``.

    Raises:
        ConfigError: If OpenVINO cannot run an operation of the model.
        MissingPart: If openvino is not installed.
    """
    openvino = import_engine_package("openvino")
    hints = {
        "INFERENCE_PRECISION_HINT": PRECISIONS[dtype],
        "INFERENCE_NUM_THREADS": process_thread_count(),
        "NUM_STREAMS": concurrent_call_count(),  # each stream computes one batch at a time
    }
    try:
        compiled = openvino_core().compile_model(model, "CPU", hints)
    except RuntimeError as error:
        raise ConfigError(
            f"All operations must exist in OpenVINO; got an error of OpenVINO "
            f"{openvino.__version__} ({' '.join(str(error).split())[:300]})."
        ) from error
    requests = threading.local()  # a request can compute only one batch at a time

    def run(pixels: Tensor) -> tuple[Tensor, ...]:
        if not hasattr(requests, "request"):
            requests.request = compiled.create_infer_request()
        results = requests.request.infer({INPUT: pixels.contiguous().numpy()})
        return tuple(torch.from_numpy(results[name].copy()) for name in outputs)

    return run
