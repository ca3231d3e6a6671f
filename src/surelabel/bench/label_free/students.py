"""Students that cut and sew, each with one thing changed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surelabel.bench.cells import Cells
from surelabel.bench.label_free.pictures import Pictures
from surelabel.bench.label_free.plan import STUDENTS, Plan, Progress
from surelabel.bench.label_free.rows import RANK
from surelabel.bench.label_free.scored import scored
from surelabel.config import STUDENT, Choice, Run
from surelabel.metrics import Interval, paired_over_seeds
from surelabel.recognizer import Recognizer
from surelabel.recognizer.unlabelled import pseudolabelled
from surelabel.records import LabelledImages


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
    seeds = range(seed, seed + plan.students)
    for title, changed in STUDENTS.items():
        runs = [run_of(pictures, changed, plan, own) for own in seeds]
        ranked = []
        for run in runs:
            ranked.append(_ranks(scored(cells, pictures, run, plan.taught).test, pictures.test))
            if progress:
                progress(len(found) * len(seeds) + len(ranked), len(STUDENTS) * len(seeds))
        apart = paired_over_seeds(np.subtract(ranked, found[0].of_student)) if found else None
        found.append(Variant(title, ranked, _of_labels(pictures, runs[0], cells), apart))
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


def _of_labels(pictures: Pictures, run: Run, cells: Cells) -> float:
    """How well the teacher's labels of the test pictures rank them; the same for all seeds."""

    def work() -> float:
        recognizer, test = Recognizer(run, pictures.test.names), pictures.test
        labels = pseudolabelled(
            run, recognizer.backbone, recognizer.spellings, test.paths, cache=recognizer.cache
        )
        return _ranks(labels.targets.numpy(), test)

    key = ("pseudo-labels", pictures.identity, run.backbone, run.teacher, run.pseudolabels)
    found: float = cells.value(*key, otherwise=work)
    return found


def _ranks(scores: Any, pictures: LabelledImages) -> float:
    return RANK(scores, pictures.targets, pictures.known)
