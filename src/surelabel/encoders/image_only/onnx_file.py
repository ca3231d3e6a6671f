"""Read, check and open ONNX files."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from surelabel.errors import DataError, MissingPart
from surelabel.file_readers import check_regular_file
from surelabel.records.export_metadata import METADATA_KEY

LOG_LEVEL = 4  # only fatal errors are logged; all errors are raised


def import_onnx_package(package: str) -> Any:
    """Return an optional package for ONNX files.

    Raises:
        MissingPart: If the package is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPart(
            f"Encoders in ONNX files need the package {package}, which is not installed. "
            "Run pip install 'surelabel[export]'."
        ) from error


def onnx_runtime_errors() -> tuple[type[Exception], ...]:
    """Return all exception classes that onnxruntime raises. They have no common base class."""
    state = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    error_classes = [v for v in state.values() if isinstance(v, type) and issubclass(v, Exception)]
    return (*error_classes, RuntimeError, ValueError)


def read_onnx_model(file: Path) -> Any:
    """Return the ONNX message of a file, without external weights.

    Raises:
        DataError: If the graph cannot be read.
        MissingPart: If onnx is not installed.
    """
    onnx = import_onnx_package("onnx")
    check_regular_file(file, remedy="Check the path.")
    try:
        return onnx.load(str(file), load_external_data=False)
    except (import_module("google.protobuf.message").Error, ValueError) as error:
        raise DataError(
            f"{file} must be an ONNX file; loading the file failed ({error}). Copy the file again."
        ) from error


def metadata_of_onnx_model(model: Any) -> str | None:
    """Return the metadata of surelabel in an ``onnx.ModelProto``, or None without metadata."""
    return next((p.value for p in model.metadata_props if p.key == METADATA_KEY), None)


def open_onnx_session(file: Path) -> Any:
    """Return a session of onnxruntime on the CPU, with as many threads as PyTorch uses.

    Raises:
        DataError: If onnxruntime cannot load the file.
        MissingPart: If onnxruntime is not installed.
    """
    runtime = import_onnx_package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = LOG_LEVEL
    try:
        return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except onnx_runtime_errors() as error:
        raise DataError(
            f"{file} cannot be loaded by onnxruntime {runtime.__version__}: "
            f"{onnx_error_line(error)}. Copy the file again, or export the model for "
            "this version of onnxruntime."
        ) from error


def onnx_weight_files(tensors: Sequence[Any], file: Path) -> list[Path]:
    """Return the paths of the files with external weights of an ONNX graph.

    Args:
        tensors: All tensors of the graph.
        file: Path of the ONNX file.

    Raises:
        DataError: If a file is missing or outside the folder of the graph.
    """
    onnx = import_onnx_package("onnx")
    external = [t for t in tensors if t.data_location == onnx.TensorProto.EXTERNAL]
    locations = {pair.value for t in external for pair in t.external_data if pair.key == "location"}
    files = []
    for location in sorted(locations):
        weights = file.parent / location
        has_plain_name = ".." not in Path(location).parts and "\0" not in location
        is_relative = has_plain_name and not Path(location).is_absolute()
        is_inside = is_relative and weights.resolve().is_relative_to(file.parent.resolve())
        if not (is_inside and weights.is_file()):
            raise DataError(
                f"External weights of {file} must be a file in the folder of the graph; got "
                f"{location!r}, which is missing or outside this folder. Copy all files of the "
                "graph into one folder, or export a single file."
            )
        files.append(weights)
    return files


def iterate_onnx_tensors(message: Any) -> Iterator[Any]:
    """Yield all tensors in an ONNX message, including nested messages."""
    onnx = import_onnx_package("onnx")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, onnx.TensorProto):
                yield part
            yield from iterate_onnx_tensors(part)


def onnx_error_line(error: Exception) -> str:
    """Return the message of an error of onnxruntime on one line of at most 300 characters."""
    return " ".join(str(error).split())[:300].rstrip(".")
