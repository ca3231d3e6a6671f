"""Define the interface of an export format, and the program that a format writes to a file."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

InputArray = npt.NDArray[np.generic]  # float32, uint8 or int64
OutputArray = npt.NDArray[np.float32]
GraphRuntime = Callable[[Sequence[InputArray]], OutputArray]


@dataclass(frozen=True)
class GraphProgram:
    """Program of a graph with one output, for any number of images or texts.

    Attributes:
        program: Program of PyTorch with its weights.
        input_names: Names of the inputs.
        output_name: Name of the output.
    """

    program: torch.export.ExportedProgram
    input_names: tuple[str, ...]
    output_name: str

    @property
    def n_bytes(self) -> int:
        """Return the size of the weights and constants in bytes."""
        tensors = [*self.program.state_dict.values(), *self.program.constants.values()]
        return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


class ExportFormat(Protocol):
    """Interface of a module that writes and runs the files of one format.

    Attributes:
        PACKAGES: Optional packages that write and run the files.
        SIZE_LIMIT: Maximum size of the weights in bytes, or None.
    """

    PACKAGES: tuple[str, ...]
    SIZE_LIMIT: int | None

    def paths(self, file: Path) -> tuple[Path, ...]:
        """Return the paths of all files of a graph; the first path is ``file``."""

    def write(self, graph: GraphProgram, file: Path, metadata: Mapping[str, str]) -> None:
        """Write a graph with its metadata.

        Args:
            graph: Program of the graph.
            file: Path of the new file.
            metadata: Texts by their key.

        Raises:
            ConfigError: If an operation of the graph does not exist in the format.
        """

    def read_metadata(self, file: Path, key: str) -> str | None:
        """Return the text under a key of the metadata, or None if there is no such text."""

    def open_runtimes(self, file: Path) -> AbstractContextManager[Mapping[str, GraphRuntime]]:
        """Open the file in each runtime of the format, by the name of the runtime.

        Raises:
            DataError: If a runtime cannot load the file.
        """


def tensors_as_arrays(tensors: Sequence[torch.Tensor]) -> list[InputArray]:
    """Return the arrays of tensors on the CPU."""
    arrays: list[Any] = [tensor.numpy(force=True) for tensor in tensors]
    return arrays
