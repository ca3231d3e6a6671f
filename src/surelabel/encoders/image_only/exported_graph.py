"""Run the graph of an exported recognizer with onnxruntime or OpenVINO."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from surelabel.encoders.image_only.exported_metadata import (
    OPENVINO_SUFFIX,
    openvino_weights_file,
    read_exported_metadata,
)
from surelabel.encoders.image_only.onnx_file import (
    iterate_onnx_tensors,
    onnx_error_line,
    onnx_runtime_errors,
    onnx_weight_files,
    open_onnx_session,
    read_onnx_model,
)
from surelabel.errors import DataError, MissingPart
from surelabel.package_imports import import_without_telemetry, openvino_core
from surelabel.records.export_metadata import EXPORT_AGAIN

FLOAT_BYTES = 4

GraphFunction = Callable[[npt.NDArray[Any]], Any]


class ExportedGraph:
    """Graph of an exported recognizer of c labels, which computes logits or scores on the CPU.

    Several threads can call the graph at once.

    Args:
        file: ONNX file, or ``.xml`` file of an OpenVINO model.

    Attributes:
        metadata: Metadata in the file.
        engine: Runtime of the graph, ``onnx`` or ``openvino``.
        files: Paths of the file and of the files with its weights, all in one folder.
        n_parameters: Number of constants in the graph; for OpenVINO, an estimate.

    Raises:
        DataError: If a file is missing or damaged, or does not match its metadata.
        ConfigError: If the file has no metadata, or is a ``.pt2`` file.
        MissingPart: If the runtime is not installed.
    """

    def __init__(self, file: Path):
        self.file, self.metadata = file, read_exported_metadata(file)
        self.engine = "openvino" if file.suffix.lower() == OPENVINO_SUFFIX else "onnx"
        if self.engine == "openvino":
            weights = openvino_weights_file(file)
            self.files, self.n_parameters = [file, weights], weights.stat().st_size // FLOAT_BYTES
            self._errors: tuple[type[Exception], ...] = (RuntimeError, ValueError)
            inputs, outputs, self._run = self._open_openvino(weights)
        else:
            tensors = list(iterate_onnx_tensors(read_onnx_model(file)))
            self.files = [file, *onnx_weight_files(tensors, file)]
            self.n_parameters = sum(math.prod(tensor.dims) for tensor in tensors)
            inputs, outputs, self._run = self._open_onnx()
            self._errors = onnx_runtime_errors()
        for kind, name, actual in (
            ("input", self.metadata.input_name, inputs),
            ("output", self.metadata.output_name, outputs),
        ):
            if len(actual) != 1 or name not in actual[0]:
                raise DataError(
                    f"{file} must have only the {kind} {name!r} of its metadata; got "
                    f"{str(actual)[:200]}. {EXPORT_AGAIN}"
                )

    def __call__(self, images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the logits or scores of n images, ``(n, c)``.

        Args:
            images: Images in the shape and type of the input, ``(n, …)``.

        Raises:
            DataError: If the graph cannot process the images, or does not return one finite number
                for each image and label.
        """
        try:
            output = self._run(np.ascontiguousarray(images))
        except self._errors as error:
            raise DataError(
                f"{self.file} cannot process images of shape {images.shape}: "
                f"{onnx_error_line(error)}. {EXPORT_AGAIN}"
            ) from error
        expected = (len(images), len(self.metadata.names))
        actual = getattr(output, "shape", None), getattr(output, "dtype", None)
        if actual != (expected, np.float32):
            raise DataError(
                f"The output of {self.file} must have the shape {expected} and float32 values; got "
                f"{actual}. {EXPORT_AGAIN}"
            )
        if not np.isfinite(output).all():
            raise DataError(
                f"The output of {self.file} must be finite; got NaN or infinity. {EXPORT_AGAIN}"
            )
        values: npt.NDArray[np.float32] = output
        return values

    def _open_onnx(self) -> tuple[list[set[str]], list[set[str]], GraphFunction]:
        """Return the names of each input and output, and a function that runs the graph."""
        session = open_onnx_session(self.file)
        name = self.metadata.input_name
        return (
            [{value.name} for value in session.get_inputs()],
            [{value.name} for value in session.get_outputs()],
            lambda images: session.run(None, {name: images})[0],
        )

    def _open_openvino(self, weights: Path) -> tuple[list[set[str]], list[set[str]], GraphFunction]:
        """Return the names of each input and output, and a function that runs the graph."""
        try:
            openvino = import_without_telemetry("openvino")
        except ImportError as error:
            raise MissingPart(
                "OpenVINO models need the package openvino, which is not installed. "
                "Run pip install 'surelabel[export]'."
            ) from error
        settings = {  # without a hint, OpenVINO computes in bf16 where the processor supports it
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        try:
            model = openvino_core().read_model(str(self.file), str(weights))
            compiled = openvino_core().compile_model(model, "CPU", settings)
        except self._errors as error:
            raise DataError(
                f"{self.file} cannot be loaded by OpenVINO {openvino.__version__}: "
                f"{onnx_error_line(error)}. Copy both files again."
            ) from error

        shape = compiled.inputs[0].partial_shape

        def run(images: npt.NDArray[Any]) -> Any:
            # with one thread, an error inside of OpenVINO 2026.4 ends the process
            if not shape.compatible(openvino.PartialShape(list(images.shape))):
                raise ValueError(f"the input must have the shape {shape}")
            request = compiled.create_infer_request()  # a request is used by one thread
            return request.infer([images])[0].copy()

        return (
            [value.names for value in compiled.inputs],  # a tensor can have several names
            [value.names for value in compiled.outputs],
            run,
        )
