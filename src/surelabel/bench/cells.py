"""Fitted heads on disk: one file each, so that a stopped comparison goes on."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surelabel.backbones import load_backbone
from surelabel.bench.data import Material
from surelabel.config import Run
from surelabel.encoding import ready_made
from surelabel.errors import DataError
from surelabel.files import new_file
from surelabel.recognizer.fitting import Examples, fitted
from surelabel.records import Array, Flags, LabelledFeatures
from surelabel.training import tensors

UNREADABLE = (OSError, EOFError, ValueError, KeyError, AttributeError, zipfile.BadZipFile)
SHARE = 0.8  # of the training pictures, drawn anew for each seed


class Cells:
    """What was computed, kept in a folder under the data and settings that it came from.

    Cells do not know the code that made them: after changing a loss or a metric, take a new folder.

    Args:
        folder: Where files are kept; made when it is not there.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.fitted = 0

    def scores(self, material: Material, run: Run, *, seed: int) -> tuple[Array, Array]:
        """Scores of the validation and the test pictures, each ``(n, c)``.

        Args:
            material: The vectors.
            run: What head.
            seed: Of the training pictures that are drawn.

        Raises:
            DataError: a file is damaged, or none can be written.
        """
        path = self.folder / f"{_name(material.identity, run, seed)}.npz"
        if not path.exists():
            self._fit(path, material, run, seed)
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = file["validation"].astype(float), file["test"].astype(float)
        except UNREADABLE as error:
            raise _damaged(path, error) from error
        parts = (material.validation, material.test)
        if [scores.shape for scores in found] != [part.targets.shape for part in parts]:
            raise _damaged(path, "scores of another shape")
        return found

    def value(self, *key: object, otherwise: Callable[[], Any]) -> Any:
        """A JSON value that is dear to compute, kept as the scores are."""
        path = self.folder / f"{_name(*key)}.json"
        if path.exists():
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise _damaged(path, error) from error
        value = otherwise()
        with new_file(path) as new:
            new.write_text(json.dumps(value), encoding="utf-8")
        return value

    def _fit(self, path: Path, material: Material, run: Run, seed: int) -> None:
        backbone, train = load_backbone(material.backbone), material.train
        drawn = np.random.default_rng(seed).permutation(len(train))[: round(SHARE * len(train))]
        method = fitted(run, backbone, train.names, _examples(train.take(np.sort(drawn))))
        with torch.no_grad():
            found = {
                name: method(_examples(part).features).numpy()
                for name, part in (("validation", material.validation), ("test", material.test))
            }
        with new_file(path) as new, new.open("wb") as file:
            np.savez(file, **found)
        self.fitted += 1


def digest(*arrays: Array | Flags) -> str:
    """What tells arrays from others, for the key of a value."""
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.ascontiguousarray(array).tobytes())
    return text.hexdigest()


def _name(*key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:20]


def _damaged(path: Path, why: object) -> DataError:
    return DataError(f"{path} is damaged ({why}). Remove it and run again.")


def _examples(part: LabelledFeatures) -> Examples:
    encoded = ready_made(part.features, width=part.features.shape[1])
    targets, known = tensors(part.targets, part.known)
    return Examples(list(part.paths), encoded.features, targets, known)
