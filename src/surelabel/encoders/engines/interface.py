"""Define the engines that run the image tower of an encoder, and their settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

CompiledModule = Callable[[Tensor], tuple[Tensor, ...]]


@dataclass(frozen=True)
class EngineSettings:
    """Engine that computes the features of images, and the number format of its computation.

    Attributes:
        engine: Key of ``ENGINES``.
        dtype: Number format: ``fp32`` or ``bf16``, or ``int8`` for encoders that were quantized.
            The features are always returned in fp32.
    """

    engine: str = "torch"
    dtype: str = "fp32"

    @property
    def description(self) -> str:
        """Return the engine and the number format, such as ``torch fp32``."""
        return f"{self.engine} {self.dtype}"

    @property
    def provenance(self) -> str | None:
        """Return the description for predictions and indexes; None for ``torch fp32``."""
        return None if self == TORCH_FP32 else self.description

    @property
    def run_option(self) -> dict[str, str]:
        """Return the engine as an option of a run of predictions; empty for ``torch fp32``."""
        return {} if self == TORCH_FP32 else {"engine": self.description}


TORCH_FP32 = EngineSettings()


class Engine(Protocol):
    """Interface of the entries of ``ENGINES``, which prepare a module for fast computation."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Return the number formats that the engine supports."""

    def __call__(self, module: nn.Module, pixels: Tensor, *, dtype: str) -> CompiledModule:
        """Return a function that computes the outputs of a module.

        Several threads can call the function at the same time.

        Args:
            module: Module that maps preprocessed images ``(n, 3, h, w)`` to a tuple of tensors,
                whose first axis is the images.
            pixels: Example of at least 2 preprocessed images.
            dtype: Number format, one of ``dtypes``.

        Raises:
            ConfigError: If the engine cannot run an operation of the module.
            MissingPart: If the package of the engine is not installed.
        """
