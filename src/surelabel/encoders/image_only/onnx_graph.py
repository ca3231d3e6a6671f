"""Run ONNX graphs that compute vectors from images, and check the ONNX files."""

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from surelabel.errors import ConfigError, DataError, MissingPart
from surelabel.file_readers import check_regular_file

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
MAX_INPUT_VALUES = 2**29  # limit for a batch of fixed size: 2 GiB of float32
LOG_LEVEL = 4  # only fatal errors are logged; all errors are raised

ImageVectors = npt.NDArray[np.float32]


class OnnxGraph:
    """Graph in an ONNX file that computes one vector per image on the CPU.

    Args:
        file: Path of the ONNX file. External weights must be in the folder of this file, or in a
            subfolder.
        output: Name of the graph output that contains one vector per image.

    Attributes:
        files: Paths of the ONNX file and of the files with external weights.
        n_parameters: Number of values of all constants in the graph.
        shape: Sizes of the four axes of the graph input. If an axis can have any size, its entry is
            None.

    Raises:
        DataError: If the file is missing or damaged, or the graph input is not a batch of images.
        ConfigError: If the graph has no output with the name ``output``.
        MissingPart: If onnx or onnxruntime is not installed.
    """

    def __init__(self, file: Path, output: str):
        self.file, self.output = file, output
        onnx, runtime = (
            _import_onnx_graph_package("onnx"),
            _import_onnx_graph_package("onnxruntime"),
        )
        self._errors = _onnx_graph_runtime_errors()
        model = _load_onnx_graph_model(onnx, file)
        tensors = list(_iterate_onnx_graph_tensors(onnx, model))
        self.files = [file, *_onnx_graph_weight_files(onnx, tensors, file)]
        self.n_parameters: int = sum(math.prod(tensor.dims) for tensor in tensors)
        self._session = self._open_session(runtime)
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in DTYPES:
            raise DataError(
                f"{file} must have one input, float images with four axes; "
                f"got {_describe_onnx_graph_values(inputs)}. Export only the image encoder of the "
                "model."
            )
        self._input, self._dtype = inputs[0].name, DTYPES[inputs[0].type]
        self.shape = [d if isinstance(d, int) and d > 0 else None for d in inputs[0].shape]
        outputs = self._session.get_outputs()
        if output not in [o.name for o in outputs]:
            raise ConfigError(
                f"{file} has no output {output!r}. The outputs are "
                f"{_describe_onnx_graph_values(outputs)}. Set encoder.output to the name of the "
                "output with one vector per image."
            )

    def __call__(self, images: npt.NDArray[Any]) -> ImageVectors:
        """Return one vector for each of ``n`` images, ``(n, d)``.

        If the graph has a fixed batch size, the last batch is padded with zeros.

        Args:
            images: Preprocessed images, with the axes in the order of the graph input.

        Raises:
            DataError: If onnxruntime cannot run the graph, the fixed batch size of the graph is too
                large, or the graph does not return one finite vector per image.
        """
        inputs = images.astype(self._dtype)
        size = self.shape[0] or max(len(inputs), 1)
        if self.shape[0] and size * math.prod(inputs.shape[1:]) > MAX_INPUT_VALUES:
            raise DataError(
                f"The fixed batch of {self.file} must have at most {MAX_INPUT_VALUES} values; got "
                f"{size} images of shape {inputs.shape[1:]}. Export the model with a smaller batch "
                "size."
            )
        starts = range(0, max(len(inputs), 1), size)
        batches = [self._run_batch(inputs[start : start + size], size) for start in starts]
        return np.concatenate(batches)

    def _run_batch(self, images: npt.NDArray[Any], size: int) -> ImageVectors:
        batch = np.pad(images, [(0, size - len(images)), (0, 0), (0, 0), (0, 0)])
        try:
            (output,) = self._session.run([self.output], {self._input: batch})
        except self._errors as error:
            raise DataError(
                f"{self.file} cannot process images of shape {batch.shape}: "
                f"{_onnx_graph_error_line(error)}. Set encoder.size to the input size of the "
                "model, or export the model again."
            ) from error
        return self._check_output(output, len(batch))[: len(images)]

    def _check_output(self, output: Any, n_images: int) -> ImageVectors:
        """Check the graph output, and return one float32 vector per image, ``(n, d)``."""
        shape: tuple[int, ...] = getattr(output, "shape", ())
        dtype = getattr(output, "dtype", type(output))
        is_vectors = len(shape) >= 2 and shape[0] == n_images and math.prod(shape[2:]) == 1
        if not is_vectors or not shape[1] or dtype not in DTYPES.values():
            raise DataError(
                f"Output {self.output!r} of {self.file} must contain one float vector per image, "
                f"({n_images}, d); got shape {shape} of {dtype}. Set another output "
                "(encoder.output=NAME), or export the model with pooled features."
            )
        if not np.isfinite(output).all():
            raise DataError(
                f"Output {self.output!r} of {self.file} must be finite; got NaN or infinity. "
                "Export the model in float32, and check encoder.mean and encoder.std."
            )
        vectors: ImageVectors = output.reshape(n_images, -1).astype(np.float32)
        return vectors

    def _open_session(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = LOG_LEVEL
        try:
            return runtime.InferenceSession(
                str(self.file), options, providers=["CPUExecutionProvider"]
            )
        except self._errors as error:
            raise DataError(
                f"{self.file} cannot be loaded by onnxruntime {runtime.__version__}: "
                f"{_onnx_graph_error_line(error)}. Copy the file again, or export the model for "
                "this version of onnxruntime."
            ) from error


def _import_onnx_graph_package(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPart(
            f"Encoders in ONNX files need the package {package}, which is not installed. "
            "Run pip install 'surelabel[export]'."
        ) from error


def _onnx_graph_runtime_errors() -> tuple[type[Exception], ...]:
    """Return all exception classes that onnxruntime raises. They have no common base class."""
    state = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    error_classes = [v for v in state.values() if isinstance(v, type) and issubclass(v, Exception)]
    return (*error_classes, RuntimeError, ValueError)


def _load_onnx_graph_model(onnx: Any, file: Path) -> Any:
    """Return the ONNX message of a file, without external weights.

    Raises:
        DataError: If the graph cannot be read.
    """
    check_regular_file(file, remedy="Check the path.")
    try:
        return onnx.load(str(file), load_external_data=False)
    except (import_module("google.protobuf.message").Error, ValueError) as error:
        raise DataError(
            f"{file} must be an ONNX file; loading the file failed ({error}). Copy the file again."
        ) from error


def _onnx_graph_weight_files(onnx: Any, tensors: Sequence[Any], file: Path) -> list[Path]:
    """Return the paths of the files with external weights of an ONNX graph.

    Args:
        onnx: The package onnx.
        tensors: All tensors of the graph.
        file: Path of the ONNX file.

    Raises:
        DataError: If a file is missing or outside the folder of the graph.
    """
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


def _iterate_onnx_graph_tensors(onnx: Any, message: Any) -> Iterator[Any]:
    """Yield all tensors in an ONNX message, including nested messages."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, onnx.TensorProto):
                yield part
            yield from _iterate_onnx_graph_tensors(onnx, part)


def _describe_onnx_graph_values(values: Any) -> str:
    return ", ".join(f"{v.name} {v.shape} of {v.type}" for v in values) or "nothing"


def _onnx_graph_error_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
