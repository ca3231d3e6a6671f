"""The whole comparison, and the files it leaves."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.page import as_json, markdown
from surelabel.bench.label_free.pictures import Pictures
from surelabel.bench.label_free.plan import Plan, Progress
from surelabel.bench.label_free.results import Results
from surelabel.bench.label_free.rows import best_of_one_pass, row, runs
from surelabel.bench.label_free.scored import Scored, scored
from surelabel.bench.label_free.stages import stages
from surelabel.bench.label_free.students import variants
from surelabel.files import new_file


def measure(
    pictures: Pictures,
    plan: Plan,
    cells: Cells,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Results:
    """One archive.

    Args:
        pictures: What is measured on.
        plan: How much work.
        cells: Where what was computed is kept, so that a stopped run goes on.
        seed: The first of the seeds.
        progress: Called with recognizers done and their number, first of rows, then of variants.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    wanted = runs(pictures, plan, seed)
    total = sum(len(each) for each in wanted.values())
    found: dict[str, list[Scored]] = {}
    for title, each in wanted.items():
        found[title] = []
        for run in each:
            count = plan.taught if run.method.name == "tailor" else plan.unlabelled
            found[title].append(scored(cells, pictures, run, count))
            if progress:
                progress(sum(len(done) for done in found.values()), total)
    best = best_of_one_pass(found, pictures)
    against = (best, found[best][0].test)
    return Results(
        pictures=pictures.name,
        labels=len(pictures.test.names),
        plan=plan,
        best=best,
        rows=tuple(row(title, each, against, pictures, cells) for title, each in found.items()),
        stages=tuple(stages(pictures, plan, cells)),
        variants=tuple(variants(pictures, plan, cells, seed=seed, progress=progress)),
    )


def measure_all(
    archives: Sequence[Pictures],
    plan: Plan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure every archive and write ``label-free.md`` and ``label-free.json``.

    Args:
        archives: At least one.
        plan: How much work.
        folder: Where the files go, and in ``cells`` what a stopped run goes on from.
        seed: Of everything that is drawn.
        progress: Called for each archive with what is done and its number.

    Returns:
        What both files say.

    Raises:
        DataError: something in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cells = Cells(folder / "cells")
    found = [measure(a, plan, cells, seed=seed, progress=progress) for a in archives]
    page = "\n".join(map(markdown, found))
    value = {"results": [as_json(results) for results in found]}
    for name, text in (
        ("label-free.md", page),
        ("label-free.json", json.dumps(value, indent=1, allow_nan=False)),
    ):
        with new_file(folder / name) as new:
            new.write_text(text, encoding="utf-8")
    return page, value
