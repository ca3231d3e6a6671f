"""Define the options ``--engine`` and ``--dtype`` for the engine that encodes images."""

from typing import TYPE_CHECKING

import click

from surelabel.cli.terminal import Command

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer


def engine_options(function: Command) -> Command:
    """Add the options for the engine that encodes images, and for its number format."""
    for option in (
        click.option(
            "--dtype",
            type=click.Choice(["fp32", "bf16", "int8", "auto"]),
            help="Number format of the image encoder. bf16 is faster on processors with bf16 "
            "instructions, and changes probabilities slightly. auto uses bf16 only if `surelabel "
            "calibrate` measured that probabilities change by at most 0.02. int8 requires a "
            "recognizer of `surelabel calibrate --dtype int8`, which has no other number format. "
            "[fp32]",
        ),
        click.option(
            "--engine",
            type=click.Choice(["torch", "onnx", "openvino"]),
            help="Software that runs the image encoder: torch (PyTorch), onnx (onnxruntime) or "
            "openvino. onnx and openvino require surelabel[export]. [torch]",
        ),
    ):
        function = option(function)
    return function


def apply_engine_options(
    recognizer: "Recognizer", engine: str | None, dtype: str | None
) -> "Recognizer":
    """Return the recognizer with the engine and the number format of the options.

    Args:
        recognizer: Recognizer of the images.
        engine: Value of ``--engine``, or None.
        dtype: Value of ``--dtype``, or None.

    Raises:
        ConfigError: If the engine does not support the number format, the device or the encoder.
        MissingPart: If the package of the engine is not installed.
    """
    if engine is None and dtype is None:
        return recognizer
    default_engine = "openvino" if dtype == "int8" else "torch"
    return recognizer.with_engine(engine or default_engine, dtype or "fp32")
