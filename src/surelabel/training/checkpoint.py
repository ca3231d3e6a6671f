"""The state of an unfinished training run on disk, so that a stopped run goes on."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from surelabel.errors import DataError
from surelabel.files import new_file


class Checkpoint:
    """One file with all tensors and, in its header, all numbers of a run; nothing is pickled.

    Args:
        path: The file; written anew after each pass, whole or not at all.
        purpose: What run it belongs to. A file of another run is refused, never continued.
    """

    def __init__(self, path: str | Path, *, purpose: str):
        self.path, self.purpose = Path(path), purpose

    def keep(self, state: Mapping[str, Any], history: Sequence[Sequence[float]]) -> None:
        """Write the state after a pass.

        Args:
            state: Name to what has ``state_dict()``, or to a generator.
            history: What the passes came to.
        """
        tensors: dict[str, Tensor] = {}
        tree = {name: _without_tensors(_state(of), name, tensors) for name, of in state.items()}
        header = {"purpose": self.purpose, "tree": tree, "history": [list(p) for p in history]}
        with new_file(self.path) as new:
            save_file(tensors, new, metadata={"run": json.dumps(header)})

    def resume(self, state: Mapping[str, Any]) -> list[list[float]]:
        """Put a kept state back; the passes it has done, none when there is no file.

        Raises:
            DataError: the file is damaged, or belongs to another run.
        """
        if not self.path.exists():
            return []
        again = f"Remove {self.path} to start this run from the beginning."
        try:
            with safe_open(self.path, framework="pt") as file:
                header = json.loads(file.metadata()["run"])
                purpose, tree, history = (header[key] for key in ("purpose", "tree", "history"))
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{self.path} is damaged ({error}). {again}") from error
        if purpose != self.purpose:
            raise DataError(
                f"{self.path} belongs to another run ({purpose}), not to this one "
                f"({self.purpose}). {again}"
            )
        if tree.keys() != state.keys():
            raise DataError(f"{self.path} was kept by another version of surelabel. {again}")
        for name, of in state.items():
            _restore(of, _with_tensors(tree[name], tensors))
        return [list(one) for one in history]

    def remove(self) -> None:
        """Forget the state, once what came of it is saved."""
        self.path.unlink(missing_ok=True)


def _state(of: Any) -> Any:
    return of.get_state() if isinstance(of, torch.Generator) else of.state_dict()


def _restore(of: Any, state: Any) -> None:
    if isinstance(of, torch.Generator):
        of.set_state(state)
    else:
        of.load_state_dict(state)


def _without_tensors(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The same tree for JSON, its tensors put aside under their paths."""
    if isinstance(value, Tensor):
        tensors[path] = value.detach().clone().contiguous()
        return {"tensor": path}
    if isinstance(value, Mapping):
        pairs = [[k, _without_tensors(v, f"{path}/{k}", tensors)] for k, v in value.items()]
        return {"pairs": pairs}  # JSON knows keys of text only, and optimizers number theirs
    if isinstance(value, list | tuple):
        return [_without_tensors(v, f"{path}/{i}", tensors) for i, v in enumerate(value)]
    return value


def _with_tensors(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_with_tensors(v, tensors) for v in value]
    if isinstance(value, dict) and "tensor" in value:
        return tensors[value["tensor"]]
    if isinstance(value, dict):
        return {k: _with_tensors(v, tensors) for k, v in value["pairs"]}
    return value
