"""Run the image tower with OpenVINO, in fp32 or bf16."""

import threading

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.conversion import (
    exported_program,
    import_engine_package,
    onnx_model_of_program,
    openvino_model_of_onnx,
)
from surelabel.encoders.engines.interface import CompiledModule

INPUT = "pixels"
PRECISIONS = {"fp32": "f32", "bf16": "bf16"}  # values of INFERENCE_PRECISION_HINT


class OpenVINOEngine:
    """Convert modules to OpenVINO models, and run the models on the CPU."""

    dtypes = ("fp32", "bf16")

    def __call__(self, module: nn.Module, pixels: Tensor, *, dtype: str) -> CompiledModule:
        """Return a function that computes the outputs of a module; see ``Engine``."""
        openvino = import_engine_package("openvino")
        program = exported_program(module, (pixels,))
        outputs = [f"output_{index}" for index in range(len(module(pixels)))]
        model = onnx_model_of_program(program, input_names=[INPUT], output_names=outputs)
        n_threads = torch.get_num_threads()
        compiled = openvino.Core().compile_model(
            openvino_model_of_onnx(model),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": PRECISIONS[dtype],
                "INFERENCE_NUM_THREADS": n_threads,
                "NUM_STREAMS": n_threads,  # one for each batch that is encoded at the same time
            },
        )
        requests = threading.local()  # a request can compute only one batch at a time

        def run(pixels: Tensor) -> tuple[Tensor, ...]:
            if not hasattr(requests, "request"):
                requests.request = compiled.create_infer_request()
            results = requests.request.infer({INPUT: pixels.contiguous().numpy()})
            return tuple(torch.from_numpy(results[name].copy()) for name in outputs)

        return run
