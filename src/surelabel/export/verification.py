"""Check that the runtimes of an exported file compute the outputs of the PyTorch module."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from surelabel.errors import DataError
from surelabel.export.interface import GraphRuntime, tensors_as_arrays

PARITY_LIMIT = 1e-4  # difference of logits between a runtime and PyTorch
BATCH_SIZES = (1, 32)  # of the check


@dataclass(frozen=True)
class CheckBatch:
    """Batch of inputs of a check.

    Attributes:
        inputs: Inputs of the graph, each ``(n, …)``.
        names: Names of the n images or texts, for messages.
        limit: Maximum difference of an output.
    """

    inputs: tuple[Tensor, ...]
    names: Sequence[str]
    limit: float = PARITY_LIMIT


@dataclass(frozen=True)
class ExportCheck:
    """Result of a check of an exported file.

    Attributes:
        n_items: Number of images or texts.
        max_batch: Number of images or texts in the largest batch; they were also run one by one.
        max_differences: Largest difference of an output to PyTorch, by the name of the runtime.
        limit: Maximum difference of a batch that was allowed.
    """

    n_items: int
    max_batch: int
    max_differences: Mapping[str, float]
    limit: float

    def as_json(self) -> dict[str, object]:
        """Return the result as an object of JSON."""
        return {
            "items": self.n_items,
            "max_batch": self.max_batch,
            "max_differences": dict(self.max_differences),
            "limit": self.limit,
        }


def check_runtimes(
    module: nn.Module,
    runtimes: Mapping[str, GraphRuntime],
    batches: Iterable[CheckBatch],
    *,
    source: str,
    output: str,
    report_batch: Callable[[int], None] | None = None,
) -> ExportCheck:
    """Compare the outputs of each runtime with the outputs of a module.

    Args:
        module: Module in evaluation mode.
        runtimes: Functions that run the exported file, by the name of the runtime.
        batches: Batches of inputs.
        source: Path of the exported file, for the error message.
        output: Name of the output, for the error message.
        report_batch: Function that is called with the number of items of each finished batch.

    Raises:
        DataError: If an output differs by more than the limit of the batch, or is not finite.
    """
    names: set[str] = set()
    differences, largest_limit, max_batch = dict.fromkeys(runtimes, 0.0), 0.0, 0
    for batch in batches:
        with torch.no_grad():
            expected = module(*batch.inputs).float().numpy(force=True)
        # scores have no unit: the limit is relative to scores beyond 1
        scale = 1.0 if output == "logits" else max(1.0, float(np.abs(expected).max()))
        limit = batch.limit * scale
        largest_limit = max(largest_limit, limit)
        arrays = tensors_as_arrays(batch.inputs)
        for runtime, run in runtimes.items():
            outputs = run(arrays)
            if outputs.shape != expected.shape:
                raise DataError(
                    f"The {output} of {source} in {runtime} must have the shape "
                    f"{expected.shape}; got {outputs.shape}. {NOT_WRITTEN}"
                )
            difference = np.abs(outputs - expected).reshape(len(expected), -1).max(axis=1)
            worst = int(np.nan_to_num(difference, nan=np.inf).argmax())
            if not difference[worst] <= limit:  # True for NaN
                raise DataError(
                    f"The {output} of {source} in {runtime} must differ by at most {limit:.1g} "
                    f"from PyTorch; got {difference[worst]:.3g} for {batch.names[worst]}. "
                    f"{NOT_WRITTEN}"
                )
            differences[runtime] = max(differences[runtime], float(difference[worst]))
        names.update(batch.names)
        max_batch = max(max_batch, len(batch.names))
        if report_batch is not None:
            report_batch(len(batch.names))
    return ExportCheck(len(names), max_batch, differences, largest_limit)


NOT_WRITTEN = "The file was not written. Update the runtime, or export to another format."
