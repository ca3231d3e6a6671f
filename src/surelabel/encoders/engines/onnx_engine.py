"""Run the image tower with onnxruntime."""

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.conversion import (
    exported_program,
    import_engine_package,
    onnx_model_of_program,
)
from surelabel.encoders.engines.interface import CompiledModule
from surelabel.encoders.engines.thread_counts import concurrent_call_count, process_thread_count
from surelabel.encoders.image_only.onnx_file import onnx_error_line, onnx_runtime_errors
from surelabel.errors import ConfigError

INPUT = "pixels"
FATAL = 4  # log level; all errors are raised


class OnnxEngine:
    """Convert modules to ONNX graphs, and run the graphs with onnxruntime on the CPU.

    There is no ``bf16``, because onnxruntime has no bf16 operators for CPUs.
    """

    dtypes = ("fp32",)

    def __call__(self, module: nn.Module, pixels: Tensor, *, dtype: str) -> CompiledModule:
        """Return a function that computes the outputs of a module; see ``Engine``."""
        runtime = import_engine_package("onnxruntime")
        program = exported_program(module, (pixels,))
        outputs = [f"output_{index}" for index in range(len(module(pixels)))]
        model = onnx_model_of_program(program, input_names=[INPUT], output_names=outputs)
        options = runtime.SessionOptions()
        # each of the calling threads computes as well
        options.intra_op_num_threads = process_thread_count() - concurrent_call_count() + 1
        options.inter_op_num_threads = 1
        options.log_severity_level = FATAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except onnx_runtime_errors() as error:
            raise ConfigError(
                f"All operations must exist in onnxruntime {runtime.__version__}; got an error "
                f"({onnx_error_line(error)})."
            ) from error

        def run(pixels: Tensor) -> tuple[Tensor, ...]:
            arrays = session.run(outputs, {INPUT: pixels.contiguous().numpy()})
            return tuple(map(torch.from_numpy, arrays))

        return run
