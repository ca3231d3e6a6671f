"""The whole comparison, and the files it leaves."""

import json
from pathlib import Path
from typing import Any

from surelabel.bench.cells import Cells
from surelabel.bench.open_vocabulary.costs import costs
from surelabel.bench.open_vocabulary.exchange import exchanged
from surelabel.bench.open_vocabulary.measures import ceilings, judged
from surelabel.bench.open_vocabulary.page import as_json, markdown
from surelabel.bench.open_vocabulary.pictures import Pictures
from surelabel.bench.open_vocabulary.plan import (
    BESIDE,
    NAME,
    REFERENCE,
    TABLES,
    Changed,
    Plan,
    Progress,
    changes,
)
from surelabel.bench.open_vocabulary.results import Results
from surelabel.bench.open_vocabulary.rows import Measured, measured, row
from surelabel.bench.open_vocabulary.taught import answer, runs_of
from surelabel.config import Run
from surelabel.evaluation import OpenVocabulary
from surelabel.files import new_file

LEARNING, LOOKING = 0.007, 0.006  # seconds of one core, a picture


def wanted(domain: str, plan: Plan, seed: int = 0) -> list[Run]:
    """Every run of every table once."""
    every = [run for changed in changes() for run in runs_of(domain, changed, plan, seed)]
    return [run for place, run in enumerate(every) if run not in every[:place]]


def forecast(domain: str, plan: Plan) -> str:
    """How much there is to do, in a sentence."""
    runs = wanted(domain, plan)
    matching = [run for run in runs if run.method.name == NAME]
    seen = sum(run.epochs for run in matching) * plan.train * LEARNING
    asked = len(runs) * (plan.validation + plan.test + plan.train) * LOOKING
    return (
        f"{len(runs)} recognizers, {len(matching)} of them trained on {plan.train:,} pictures: "
        f"about {(seen + asked) / 60:.0f} minutes of one core; a stopped run goes on."
    )


def measure(
    pictures: Pictures,
    plan: Plan,
    cells: Cells,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Results:
    """Fill all tables.

    Args:
        pictures: What is measured on.
        plan: How much work.
        cells: Where what was computed is kept, so that a stopped run goes on.
        seed: The first of the seeds.
        progress: Called with recognizers done and their number.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    found, total = dict[str, Measured](), len(wanted(pictures.domain, plan, seed))

    def of(changed: Changed) -> Measured:
        """Rows of several tables may be one and the same."""
        runs = runs_of(pictures.domain, changed, plan, seed)
        if repr(runs) not in found:
            answers = [answer(cells, pictures, run) for run in runs]
            found[repr(runs)] = measured(answers, pictures, plan, cells)
            if progress:
                progress(sum(len(each.answers) for each in found.values()), total)
        return found[repr(runs)]

    usual = TABLES[BESIDE][REFERENCE]
    reference = of(usual)
    tables = {
        heading: tuple(row(title, of(changed), reference) for title, changed in rows.items())
        for heading, rows in TABLES.items()
    }
    protocol = judged(pictures, reference.answers[0])
    return Results(
        pictures=pictures.name,
        plan=plan,
        counts=_counts(pictures, protocol),
        ceilings=ceilings(protocol),
        tables=tables,
        exchange=exchanged(pictures, runs_of(pictures.domain, usual, plan, seed), plan, cells),
        costs=costs(pictures, plan, cells),
    )


def measure_all(
    pictures: Pictures,
    plan: Plan,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure, and write ``open-vocabulary.md`` and ``open-vocabulary.json``.

    Args:
        pictures: What is measured on.
        plan: How much work.
        folder: Where the files go, and in ``cells`` what a stopped run goes on from.
        seed: The first of the seeds.
        progress: Called with recognizers done and their number.

    Returns:
        What both files say.

    Raises:
        DataError: something in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    results = measure(pictures, plan, Cells(folder / "cells"), seed=seed, progress=progress)
    page, value = markdown(results), as_json(results)
    for name, text in (
        ("open-vocabulary.md", page),
        ("open-vocabulary.json", json.dumps(value, indent=1, allow_nan=False)),
    ):
        with new_file(folder / name) as new:
            new.write_text(text, encoding="utf-8")
    return page, value


def _counts(pictures: Pictures, protocol: OpenVocabulary) -> dict[str, int]:
    return {
        "train": len(pictures.train),
        "removed": pictures.removed,
        "validation": len(pictures.validation),
        "test": len(pictures.test),
        "seen": len(pictures.vocabulary.seen),
        "unseen": len(pictures.vocabulary.unseen),
        "zsl": protocol.zsl.pictures,
        "gzsl": protocol.gzsl.pictures,
        "zsl_empty": protocol.zsl.empty,
        "gzsl_empty": protocol.gzsl.empty,
    }
