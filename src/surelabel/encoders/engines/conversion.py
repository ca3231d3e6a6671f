"""Convert PyTorch modules to programs of PyTorch, and programs to models of ONNX and OpenVINO."""

import io
import logging
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.encoders.engines.accurate_operators import accurate_program
from surelabel.errors import ConfigError, MissingPart
from surelabel.package_imports import import_without_telemetry, openvino_core

MAX_IMAGES = 2**20  # of a batch
LOGGERS = ("torch.onnx", "torch.export", "torch._export", "onnxscript", "onnx_ir", "nncf")


def exported_program(
    module: nn.Module, arguments: tuple[Tensor, ...], *, dynamic_axes: Sequence[int] = (0,)
) -> torch.export.ExportedProgram:
    """Return the program of a module for any number of images.

    Args:
        module: Module in evaluation mode, whose arguments have the images as their first axis.
        arguments: Example arguments of at least 2 images.
        dynamic_axes: Axes of all arguments that can have any size, axis 0 among them.

    Raises:
        ConfigError: If the program would depend on the values or on the number of the images, or if
            PyTorch cannot trace an operation.
    """
    sizes = {axis: torch.export.Dim(f"n{axis}", min=1, max=MAX_IMAGES) for axis in dynamic_axes}
    try:
        with torch.no_grad(), without_output():
            program = torch.export.export(
                module,
                arguments,
                dynamic_shapes=tuple(sizes for _ in arguments),
                strict=False,
            )
    except RuntimeError as error:
        raise ConfigError(
            f"The computation must not depend on the values or the number of images; "
            f"{type(module).__name__} cannot be converted to a graph ({_first_sentence(error)})."
        ) from error
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)  # with paths of this machine
    return program


def onnx_model_of_program(
    program: torch.export.ExportedProgram,
    *,
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> Any:
    """Return the ONNX model of a program, an ``onnx.ModelProto`` that contains the weights.

    Args:
        program: Program of :func:`exported_program`.
        input_names: Names of the graph inputs, in the order of the arguments.
        output_names: Names of the graph outputs, in the order of the results.

    Raises:
        ConfigError: If an operation does not exist in ONNX.
        MissingPart: If onnx or onnxscript is not installed.
    """
    import_engine_package("onnx")
    import_engine_package("onnxscript")
    try:
        with without_output():
            exported = torch.onnx.export(
                accurate_program(program),
                dynamo=True,
                verbose=False,
                input_names=list(input_names),
                output_names=list(output_names),
            )
    except (RuntimeError, torch.onnx.OnnxExporterError) as error:
        raise ConfigError(
            f"All operations must exist in ONNX; the conversion failed ({_first_sentence(error)})."
        ) from error
    assert exported is not None  # with dynamo=True and without a file
    return exported.model_proto


def openvino_model_of_onnx(model: Any) -> Any:
    """Return the OpenVINO model, an ``openvino.Model``, of an ``onnx.ModelProto``.

    Raises:
        ConfigError: If an operation does not exist in OpenVINO.
        MissingPart: If openvino is not installed.
    """
    import_engine_package("openvino")
    try:
        return openvino_core().read_model(io.BytesIO(model.SerializeToString()))
    except RuntimeError as error:
        raise ConfigError(
            f"All operations must exist in OpenVINO; the conversion failed "
            f"({_first_sentence(error)})."
        ) from error


def import_engine_package(package: str) -> Any:
    """Return an optional package of the extra ``export``.

    Raises:
        MissingPart: If the package is not installed.
    """
    try:
        return import_without_telemetry(package)
    except ImportError as error:
        raise MissingPart(
            f"This engine needs the package {package}, which is not installed. "
            "Run pip install 'surelabel[export]'."
        ) from error


@contextmanager
def without_output() -> Generator[None]:
    """Suppress what converters print, log and warn about; errors are raised."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _first_sentence(error: Exception) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
    return line[:300].rstrip(".")
