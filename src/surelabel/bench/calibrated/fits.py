"""Fitted heads, each on training pictures of its own."""

from typing import Any

import numpy as np
import torch

from surelabel.backbones import load_backbone
from surelabel.bench.cells import Cells
from surelabel.bench.data import Material
from surelabel.config import Run
from surelabel.encoding import ready_made
from surelabel.recognizer.fitting import Examples, fitted
from surelabel.records import Array, LabelledFeatures
from surelabel.training import tensors

SHARE = 0.8  # of the training pictures, drawn anew for each seed


def scores(cells: Cells, material: Material, run: Run, *, seed: int) -> tuple[Array, Array]:
    """Scores of the validation and the test pictures, each ``(n, c)``.

    Args:
        cells: Where they are kept.
        material: The vectors.
        run: What head.
        seed: Of the training pictures that are drawn.

    Raises:
        DataError: a file is damaged, or none can be written.
    """

    def fit() -> dict[str, Any]:
        backbone, train = load_backbone(material.backbone), material.train
        drawn = np.random.default_rng(seed).permutation(len(train))[: round(SHARE * len(train))]
        method = fitted(run, backbone, train.names, _examples(train.take(np.sort(drawn))))
        with torch.no_grad():
            return {name: method(_examples(part).features).numpy() for name, part in parts.items()}

    parts = {"validation": material.validation, "test": material.test}
    shapes = {name: part.targets.shape for name, part in parts.items()}
    found = cells.arrays(material.identity, run, seed, shapes=shapes, otherwise=fit)
    return found["validation"], found["test"]


def _examples(part: LabelledFeatures) -> Examples:
    encoded = ready_made(part.features, width=part.features.shape[1])
    targets, known = tensors(part.targets, part.known)
    return Examples(list(part.paths), encoded.features, targets, known)
