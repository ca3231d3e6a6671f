"""Students that cut and sew, each with one thing changed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.pictures import Pictures
from surelabel.bench.label_free.plan import STUDENTS, Plan, Progress
from surelabel.bench.label_free.rows import RANK
from surelabel.config import STUDENT, Choice, Run
from surelabel.metrics import Interval, paired_over_seeds
from surelabel.recognizer import Recognizer
from surelabel.recognizer.unlabelled import pseudolabelled
from surelabel.records import Images, LabelledImages


@dataclass(frozen=True)
class Variant:
    """Students of one kind.

    Attributes:
        title: What differs.
        of_student: Mean average precision on the test pictures, one a seed.
        of_labels: Of the pseudo-labels that the teacher makes of the same test pictures; the same
            for all seeds.
        difference: To the students as they are, over seeds; None for these.
    """

    title: str
    of_student: list[float]
    of_labels: float
    difference: Interval | None


def variants(
    pictures: Pictures, plan: Plan, cells: Cells, *, seed: int = 0, progress: Progress | None = None
) -> list[Variant]:
    """All of ``STUDENTS``, each taught by the same unlabelled pictures.

    Raises:
        DataError: a file of ``cells`` is damaged, or none can be written.
    """
    found: list[Variant] = []
    seeds = range(seed, seed + plan.seeds)
    for title, changed in STUDENTS.items():
        each = []
        for own in seeds:
            each.append(_taught(pictures, run_of(pictures, changed, plan, own), plan.taught, cells))
            if progress:
                progress(len(found) * len(seeds) + len(each), len(STUDENTS) * len(seeds))
        ranked = [one["student"] for one in each]
        usual = found[0].of_student if found else None
        apart = None if usual is None else paired_over_seeds(np.subtract(ranked, usual))
        found.append(Variant(title, ranked, each[0]["labels"], apart))
    return found


def run_of(pictures: Pictures, changed: dict[str, dict[str, Any]], plan: Plan, seed: int) -> Run:
    """A student with some sections of its run changed."""
    run = Run(
        backbone=Choice(pictures.encoder),
        method=Choice("tailor"),
        epochs=plan.epochs,
        seed=seed,
    )
    for part, settings in changed.items():
        rest = dict(settings)
        name = rest.pop("name", STUDENT[part].name)
        usual = STUDENT[part].settings if name == STUDENT[part].name else {}
        run = replace(run, **{part: Choice(name, usual | rest)})  # type: ignore[arg-type]
    return run


def _taught(pictures: Pictures, run: Run, count: int, cells: Cells) -> dict[str, float]:
    def work() -> dict[str, float]:
        recognizer = Recognizer(run, pictures.test.names)
        recognizer.fit(Images(pictures.train.paths[:count]))
        test = pictures.test
        labels = pseudolabelled(
            run, recognizer.backbone, recognizer.spellings, test.paths, cache=recognizer.cache
        )
        scores = recognizer.predict(test).scores
        return {"student": _ranks(scores, test), "labels": _ranks(labels.targets.numpy(), test)}

    key = ("student", pictures.identity, run, count)
    found: dict[str, float] = cells.value(*key, otherwise=work)
    return found


def _ranks(scores: Any, pictures: LabelledImages) -> float:
    return RANK(scores, pictures.targets, pictures.known)
