"""Write a graph to the two files of an OpenVINO model, and run the model with OpenVINO."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surelabel.encoders.engines.conversion import onnx_model_of_program, openvino_model_of_onnx
from surelabel.errors import DataError
from surelabel.export.interface import GraphProgram, GraphRuntime, InputArray, OutputArray
from surelabel.package_imports import import_without_telemetry, openvino_core

PACKAGES: tuple[str, ...] = ("onnx", "onnxscript", "openvino")
SIZE_LIMIT: int | None = 2**31 - 2**24  # bytes of the ONNX model that OpenVINO converts


def paths(file: Path) -> tuple[Path, ...]:
    """Return the path of the graph, ``.xml``, and the path of the weights, ``.bin``."""
    return file, file.with_suffix(".bin")


def write(graph: GraphProgram, file: Path, metadata: Mapping[str, str]) -> None:
    """Write an OpenVINO model in float32, with the metadata in ``rt_info``.

    Raises:
        ConfigError: If an operation of the graph does not exist in ONNX or in OpenVINO.
    """
    model = openvino_model_of_onnx(
        onnx_model_of_program(
            graph.program, input_names=graph.input_names, output_names=[graph.output_name]
        )
    )
    for key, text in metadata.items():
        model.set_rt_info(text, [key])
    import_without_telemetry("openvino").save_model(model, str(file), compress_to_fp16=False)


def read_metadata(file: Path, key: str) -> str | None:
    """Return the text under a key of ``rt_info``, or None."""
    model = openvino_core().read_model(str(file))
    return str(model.get_rt_info([key]).value) if model.has_rt_info([key]) else None


@contextmanager
def open_runtimes(file: Path) -> Iterator[Mapping[str, GraphRuntime]]:
    """Open the model in OpenVINO.

    Raises:
        DataError: If OpenVINO cannot load the files.
    """
    yield {"openvino": openvino_runtime(file)}


def openvino_runtime(file: Path) -> GraphRuntime:
    """Return a function that runs an OpenVINO model or an ONNX file in float32 on the CPU.

    Raises:
        DataError: If OpenVINO cannot load the file.
    """
    openvino: Any = import_without_telemetry("openvino")
    hints = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
    }
    try:
        compiled = openvino_core().compile_model(str(file), "CPU", hints)
    except RuntimeError as error:
        raise DataError(
            f"OpenVINO {openvino.__version__} cannot load the exported file: "
            f"{' '.join(str(error).split())[:300]}. Update openvino."
        ) from error

    def run(arrays: Sequence[InputArray]) -> OutputArray:
        return np.array(compiled(list(arrays))[0], dtype=np.float32)

    return run
