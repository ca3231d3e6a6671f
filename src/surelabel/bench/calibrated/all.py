"""The whole comparison, and the files it leaves."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.bench.calibrated.curves import curves
from surelabel.bench.calibrated.measuring import measure
from surelabel.bench.calibrated.page import as_json, markdown, published
from surelabel.bench.calibrated.plan import Plan, Progress
from surelabel.bench.cells import Cells
from surelabel.bench.data import Material
from surelabel.files import new_file


def measure_all(
    materials: Sequence[Material],
    plan: Plan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure every data set and write ``calibrated.md``, ``calibrated.json`` and ``curves.png``.

    Args:
        materials: At least one.
        plan: How much work.
        folder: Where the files go, and in ``cells`` what a stopped run goes on from.
        seed: Of everything that is drawn.
        progress: Called for each data set with what is done and its number.

    Returns:
        What both files say.

    Raises:
        DataError: something in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cells = Cells(folder / "cells")
    found = [measure(m, plan, cells, seed=seed, progress=progress) for m in materials]
    page = "\n".join([*map(markdown, found), published()])
    value = {"results": [as_json(results) for results in found]}
    for name, data in (
        ("calibrated.md", page.encode()),
        ("calibrated.json", json.dumps(value, indent=1, allow_nan=False).encode()),
        ("curves.png", curves(found)),
    ):
        with new_file(folder / name) as new:
            new.write_bytes(data)
    return page, value
