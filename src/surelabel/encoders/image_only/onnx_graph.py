"""Run ONNX graphs that compute vectors from images."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.encoders.image_only.onnx_file import (
    import_onnx_package,
    iterate_onnx_tensors,
    metadata_of_onnx_model,
    onnx_error_line,
    onnx_runtime_errors,
    onnx_weight_files,
    open_onnx_session,
    read_onnx_model,
)
from surelabel.errors import ConfigError, DataError

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
MAX_INPUT_VALUES = 2**29  # limit for a batch of fixed size: 2 GiB of float32

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
        import_onnx_package("onnxruntime")
        self._errors = onnx_runtime_errors()
        model = read_onnx_model(file)
        _check_onnx_graph_is_no_recognizer(model, file)
        tensors = list(iterate_onnx_tensors(model))
        self.files = [file, *onnx_weight_files(tensors, file)]
        self.n_parameters: int = sum(math.prod(tensor.dims) for tensor in tensors)
        self._session = open_onnx_session(file)
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
                f"{onnx_error_line(error)}. Set encoder.size to the input size of the "
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


def _check_onnx_graph_is_no_recognizer(model: Any, file: Path) -> None:
    """Check that an ONNX file was not written by ``surelabel export``.

    Raises:
        ConfigError: If the file contains an exported recognizer, whose output are not vectors.
    """
    if metadata_of_onnx_model(model) is not None:
        raise ConfigError(
            f"onnx:FILE must be an image encoder; {file} was written by `surelabel export`, and "
            f"its outputs are not image vectors. Give {file} as the model, without onnx:, for "
            "example `surelabel tag IMAGES --model FILE`."
        )


def _describe_onnx_graph_values(values: Any) -> str:
    return ", ".join(f"{v.name} {v.shape} of {v.type}" for v in values) or "nothing"
