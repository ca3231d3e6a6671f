"""Write a graph to one ONNX file, and run the file with onnxruntime and OpenVINO."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surelabel.encoders.engines.conversion import onnx_model_of_program
from surelabel.errors import DataError
from surelabel.export.interface import GraphProgram, GraphRuntime, InputArray, OutputArray
from surelabel.export.openvino_files import openvino_runtime

PACKAGES: tuple[str, ...] = ("onnx", "onnxscript", "onnxruntime", "openvino")
SIZE_LIMIT: int | None = 2**31 - 2**24  # bytes of one file, with 16 MiB for the graph
LOG_LEVEL = 4  # only fatal errors are logged; all errors are raised


def paths(file: Path) -> tuple[Path, ...]:
    """Return the path of the only file."""
    return (file,)


def write(graph: GraphProgram, file: Path, metadata: Mapping[str, str]) -> None:
    """Write an ONNX file that contains its weights, with the metadata in ``metadata_props``.

    Raises:
        ConfigError: If an operation of the graph does not exist in ONNX.
    """
    model = onnx_model_of_program(
        graph.program, input_names=graph.input_names, output_names=[graph.output_name]
    )
    for key, text in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, text
    import_module("onnx").save_model(model, str(file), save_as_external_data=False)


def read_metadata(file: Path, key: str) -> str | None:
    """Return the text under a key of ``metadata_props``, or None."""
    model = import_module("onnx").load_model(str(file), load_external_data=False)
    return next((str(entry.value) for entry in model.metadata_props if entry.key == key), None)


@contextmanager
def open_runtimes(file: Path) -> Iterator[Mapping[str, GraphRuntime]]:
    """Open the file in onnxruntime and in OpenVINO.

    Raises:
        DataError: If a runtime cannot load the file.
    """
    yield {"onnxruntime": onnxruntime_runtime(file), "openvino": openvino_runtime(file)}


def onnxruntime_runtime(file: Path) -> GraphRuntime:
    """Return a function that runs an ONNX file with onnxruntime on the CPU.

    Raises:
        DataError: If onnxruntime cannot load the file.
    """
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = LOG_LEVEL
    try:
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the exceptions of onnxruntime have no common base class
        raise DataError(
            f"onnxruntime {runtime.__version__} cannot load the exported file: "
            f"{' '.join(str(error).split())[:300]}. Update onnxruntime."
        ) from error
    names = [value.name for value in session.get_inputs()]

    def run(arrays: Sequence[InputArray]) -> OutputArray:
        (output,) = session.run(None, dict(zip(names, arrays, strict=True)))
        return np.asarray(output, dtype=np.float32)

    return run
