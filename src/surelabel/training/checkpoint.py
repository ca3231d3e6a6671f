"""Save the state of a training run to a checkpoint file, and resume an interrupted run."""

import json
import warnings
from collections.abc import Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save_file
from torch import Tensor

from surelabel.array_files import open_safetensors
from surelabel.errors import DataError
from surelabel.file_readers import parse_json, quote_of_file, unreadable_file_error
from surelabel.files import atomic_file

_DAMAGE = (  # errors of a file with a valid JSON header that does not describe a checkpoint
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RuntimeError,
)
FORMAT_VERSION = 2  # files of surelabel 0.1.0 have no version


class StatefulObject(Protocol):
    """Object of a training run with a state, such as a method or an optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, composed of tensors, numbers, strings, sequences and mappings."""

    def load_state_dict(self, state: dict[str, Any], /) -> object:
        """Restore the state."""


TrainingState = Mapping[str, StatefulObject | torch.Generator]


class Checkpoint:
    """Checkpoint of a training run: one safetensors file with a JSON header, without pickle.

    Args:
        path: Path of the checkpoint file, which is replaced atomically.
        run_id: Identifier of the run and the training data. ``resume`` raises an error if the file
            has another identifier.
    """

    def __init__(self, path: str | Path, *, run_id: str):
        self.path, self.run_id = Path(path), run_id

    def save(self, state: TrainingState, history: Sequence[Sequence[float]]) -> None:
        """Write the state of a training run to the checkpoint file.

        Args:
            state: Mapping from names to objects with a method ``state_dict``, or to random
                generators.
            history: Loss and penalty of each finished epoch.
        """
        tensors: dict[str, Tensor] = {}
        tree = {
            name: _extract_training_checkpoint_tensors(
                _get_training_checkpoint_state(item), name, tensors
            )
            for name, item in state.items()
        }
        header = {
            "format": FORMAT_VERSION,
            "run_id": self.run_id,
            "state": tree,
            "history": [list(losses) for losses in history],
        }
        with atomic_file(self.path) as new_file:
            save_file(tensors, new_file, metadata={"run": json.dumps(header)})

    def resume(self, state: TrainingState) -> list[list[float]]:
        """Restore the state of a training run and return the losses of the finished epochs.

        If there is no checkpoint file, change nothing and return an empty list.

        Raises:
            DataError: If the file is damaged, has another format version, or belongs to another
                run.
        """
        if not self.path.exists():
            return []
        again = f"Delete {self.path} and start the fit again."
        try:
            with open_safetensors(self.path, "pt", remedy=again) as file:
                header = parse_json(file.metadata()["run"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            version = header.get("format", 1)
            if version == FORMAT_VERSION:
                run_id, tree, history = (header[key] for key in ("run_id", "state", "history"))
        except DataError:
            raise
        except _DAMAGE as error:
            raise unreadable_file_error(self.path, None, repr(error), again) from error
        if version != FORMAT_VERSION:
            raise DataError(
                f"{self.path} must be a checkpoint of format {FORMAT_VERSION}; got format "
                f"{quote_of_file(version)}, which another version of surelabel wrote. {again}"
            )
        if run_id != self.run_id:
            raise DataError(
                f"{self.path} must be the checkpoint of this run ({self.run_id}); got the "
                f"checkpoint of another run ({_shorten_run_id(run_id)}). {again}"
            )
        if not isinstance(tree, dict) or tree.keys() != state.keys():
            raise DataError(
                f"{self.path} must contain the state of {', '.join(state)}; got "
                f"{quote_of_file(tree if not isinstance(tree, dict) else ', '.join(tree))}. {again}"
            )
        try:
            for name, item in state.items():
                _set_training_checkpoint_state(
                    item, _insert_training_checkpoint_tensors(tree[name], tensors)
                )
            return [[float(loss) for loss in losses] for losses in history]
        except _DAMAGE as error:
            raise unreadable_file_error(self.path, None, repr(error), again) from error

    def for_fold(self, number: int, folds: int) -> "Checkpoint":
        """Return the checkpoint of one fold of cross-validation, with a file beside this file.

        Args:
            number: Number of the fold, from 1 to ``folds``.
            folds: Number of folds.
        """
        name = f"{self.path.name}.fold-{number}-of-{folds}"
        return Checkpoint(
            self.path.with_name(name), run_id=f"{self.run_id}, fold {number} of {folds}"
        )


def delete_checkpoint(path: str | Path) -> None:
    """Delete a checkpoint file and the checkpoint files of its folds.

    If a file cannot be deleted, a warning is issued.
    """
    path = Path(path)
    for file in (path, *path.parent.glob(f"{escape(path.name)}.fold-*-of-*")):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {file} cannot be deleted: {error.strerror}. Delete the file.",
                stacklevel=2,
            )


def _shorten_run_id(run_id: object) -> str:
    return quote_of_file(run_id).strip("'")


def _get_training_checkpoint_state(
    item: StatefulObject | torch.Generator,
) -> dict[str, Any] | Tensor:
    return item.get_state() if isinstance(item, torch.Generator) else item.state_dict()


def _set_training_checkpoint_state(item: StatefulObject | torch.Generator, state: Any) -> None:
    if isinstance(item, torch.Generator):
        item.set_state(state)
    else:
        item.load_state_dict(state)


def _extract_training_checkpoint_tensors(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return the state as a JSON tree; copy each tensor to ``tensors``, with its path as key."""
    if isinstance(value, Tensor):
        tensors[path] = value.detach().clone().contiguous()
        return {"tensor": path}
    if isinstance(value, Mapping):
        pairs = [
            [key, _extract_training_checkpoint_tensors(v, f"{path}/{key}", tensors)]
            for key, v in value.items()
        ]
        return {"pairs": pairs}  # JSON keys are strings, but optimizers have integer keys
    if isinstance(value, list | tuple):
        return [
            _extract_training_checkpoint_tensors(v, f"{path}/{i}", tensors)
            for i, v in enumerate(value)
        ]
    return value


def _insert_training_checkpoint_tensors(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the state from a JSON tree and a mapping of tensors by path."""
    if isinstance(value, list):
        return [_insert_training_checkpoint_tensors(v, tensors) for v in value]
    if isinstance(value, dict) and "tensor" in value:
        return tensors[value["tensor"]]
    if isinstance(value, dict):
        return {key: _insert_training_checkpoint_tensors(v, tensors) for key, v in value["pairs"]}
    return value
