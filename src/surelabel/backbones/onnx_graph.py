"""A graph in an ONNX file that turns pictures into vectors. Nothing in the file is trusted."""

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from surelabel.errors import ConfigError, DataError, MissingPart

DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
QUIET = 4  # fatal: what goes wrong is raised, and said in one sentence of ours

Vectors = npt.NDArray[np.float32]


class Graph:
    """One output of an ONNX file, run on the CPU with as many threads as torch has.

    Args:
        file: The graph. Weights outside it lie in its folder or below.
        output: Name of the output with a vector a picture.

    Attributes:
        files: The graph and the files with its weights.
        shape: Of the input, four numbers; None where any size goes.

    Raises:
        DataError: the file is missing, damaged, or takes or gives something else.
        ConfigError: there is no such output.
        MissingPart: onnx or onnxruntime is not installed.
    """

    def __init__(self, file: Path, output: str):
        self.file, self.output = file, output
        onnx, runtime = _installed("onnx"), _installed("onnxruntime")
        self._errors = _errors()
        self.files = [file, *_weight_files(onnx, file)]
        self._session = self._opened(runtime)
        taken = self._session.get_inputs()
        if len(taken) != 1 or len(taken[0].shape) != 4 or taken[0].type not in DTYPES:
            raise DataError(
                f"{file} must take one input: float pictures with four axes. "
                f"It takes {_listed(taken)}. Export the image part of the model alone."
            )
        self._input, self._dtype = taken[0].name, DTYPES[taken[0].type]
        self.shape = [d if isinstance(d, int) and d > 0 else None for d in taken[0].shape]
        given = self._session.get_outputs()
        if output not in [o.name for o in given]:
            raise ConfigError(
                f"{file} has no output {output!r}. It has {_listed(given)}. Name the one with a "
                "vector a picture: backbone.output=NAME."
            )

    def __call__(self, pictures: npt.NDArray[Any]) -> Vectors:
        """Vectors ``(n, d)`` of pictures in the layout of the graph.

        A graph made for a fixed number of pictures gets that many at a time, the last ones filled
        up with blanks.

        Raises:
            DataError: the graph fails on them, or gives no finite vector a picture.
        """
        fed = pictures.astype(self._dtype)
        size = self.shape[0] or max(len(fed), 1)
        starts = range(0, max(len(fed), 1), size)
        parts = [self._run(fed[start : start + size], size) for start in starts]
        return np.concatenate(parts)

    def _run(self, pictures: npt.NDArray[Any], size: int) -> Vectors:
        whole = np.pad(pictures, [(0, size - len(pictures)), (0, 0), (0, 0), (0, 0)])
        try:
            (found,) = self._session.run([self.output], {self._input: whole})
        except self._errors as error:
            raise DataError(
                f"{self.file} fails on pictures of shape {whole.shape}: {_one_line(error)}. "
                "Set backbone.size to what it was made for, or export it again."
            ) from error
        return self._checked(found, len(whole))[: len(pictures)]

    def _checked(self, found: Any, count: int) -> Vectors:
        shape: tuple[int, ...] = getattr(found, "shape", ())
        kind = getattr(found, "dtype", type(found))
        vectors = len(shape) >= 2 and shape[0] == count and math.prod(shape[2:]) == 1
        if not vectors or not shape[1] or kind not in DTYPES.values():
            raise DataError(
                f"Output {self.output!r} of {self.file} must hold one vector of floats a picture, "
                f"({count}, d). Got shape {shape} of {kind}. Name another output "
                "(backbone.output=NAME), or export the model with pooled features."
            )
        if not np.isfinite(found).all():
            raise DataError(
                f"Output {self.output!r} of {self.file} holds values that are no numbers (NaN or "
                "infinite). Export it in float32, and check backbone.mean and backbone.std."
            )
        flat: Vectors = found.reshape(count, -1).astype(np.float32)
        return flat

    def _opened(self, runtime: Any) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = QUIET
        try:
            return runtime.InferenceSession(
                str(self.file), options, providers=["CPUExecutionProvider"]
            )
        except self._errors as error:
            raise DataError(
                f"{self.file} cannot be run by onnxruntime {runtime.__version__}: "
                f"{_one_line(error)}. Copy it again, or export it for this version."
            ) from error


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPart(
            f"Encoders in ONNX files need the package {package}, which is not installed. "
            "Install it: pip install 'surelabel[export]'."
        ) from error


def _errors() -> tuple[type[Exception], ...]:
    """What onnxruntime raises; its errors have no class of their own above them."""
    state = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    own = [v for v in state.values() if isinstance(v, type) and issubclass(v, Exception)]
    return (*own, RuntimeError, ValueError)


def _weight_files(onnx: Any, file: Path) -> list[Path]:
    """The files beside the graph that hold its weights, each in the folder of the graph."""
    try:
        model = onnx.load(str(file), load_external_data=False)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Name an ONNX file.") from error
    except (import_module("google.protobuf.message").Error, ValueError) as error:
        raise DataError(f"{file} is no ONNX file, or damaged: {error}. Copy it again.") from error
    outside = onnx.TensorProto.EXTERNAL
    tensors = [t for t in _tensors(onnx, model) if t.data_location == outside]
    stated = {pair.value for t in tensors for pair in t.external_data if pair.key == "location"}
    found = [file.parent / location for location in sorted(stated)]
    for weights in found:
        if not weights.resolve().is_relative_to(file.parent.resolve()) or not weights.is_file():
            raise DataError(
                f"{file} keeps weights in {weights}, which must be a file in the folder of the "
                "graph. Copy all its files into one folder, or export it as a single file."
            )
    return found


def _tensors(onnx: Any, message: Any) -> Iterator[Any]:
    """All tensors of a model, in whatever part of it they stand."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, onnx.TensorProto):
                yield part
            yield from _tensors(onnx, part)


def _listed(values: Any) -> str:
    return ", ".join(f"{v.name} {v.shape} of {v.type}" for v in values) or "nothing"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
