"""Train and measure variants of the cut-and-sew student on pseudo-labels."""

from dataclasses import dataclass, replace
from typing import Any

from surelabel.bench.label_free.method_scores import label_free_method_scores
from surelabel.bench.label_free.plan import STUDENT_VARIANTS, LabelFreePlan
from surelabel.bench.label_free.rows import mean_average_precision
from surelabel.bench.label_free.scene_splits import LabelFreeSplits, LabelFreeTask
from surelabel.bench.result_cache import ResultCache
from surelabel.bench.rows import difference_over_seeds
from surelabel.config import STUDENT_DEFAULTS, Choice, Run
from surelabel.metrics import ConfidenceInterval
from surelabel.recognizer import Recognizer
from surelabel.recognizer.unlabelled_fitting import make_pseudolabels_for_unlabelled_fitting
from surelabel.records import LabelledImages


@dataclass(frozen=True)
class StudentVariant:
    """Measurements of students that differ only in their seed.

    Attributes:
        title: Title of the variant, which describes the settings that differ from the defaults.
        student_map: Mean average precision of the students on the test images, one value for each
            seed.
        pseudolabel_map: Mean average precision of the teacher's pseudo-labels of the test images,
            which is equal for all seeds.
        difference: Mean difference in mean average precision from the default variant, with its
            95 % interval over seeds. For the default variant, the difference is None.
    """

    title: str
    student_map: list[float]
    pseudolabel_map: float
    difference: ConfidenceInterval | None


def measure_student_variants(
    task: LabelFreeTask,
) -> list[StudentVariant]:
    """Train students of all ``STUDENT_VARIANTS`` on the same images and evaluate them.

    Args:
        task: Images, plan, cache and seed. A step of the progress is one student.

    Raises:
        DataError: If a file of the cache is damaged or cannot be written.
    """
    images, plan, cache = task.dataset, task.plan, task.cache
    variants: list[StudentVariant] = []
    seeds = task.seeds(plan.student_seeds)
    count_step = task.step_counter(len(STUDENT_VARIANTS) * len(seeds))
    for title, changes in STUDENT_VARIANTS.items():
        runs = [student_run(images, changes, plan, run_seed) for run_seed in seeds]
        student_map = []
        for run in runs:
            scores = label_free_method_scores(cache, images, run, plan.student_images)
            student_map.append(_student_map_on_images(scores.test, images.test))
            count_step()
        difference = (
            difference_over_seeds(student_map, variants[0].student_map) if variants else None
        )
        pseudolabel_map = _pseudolabel_map_of_student(images, runs[0], cache)
        variants.append(StudentVariant(title, student_map, pseudolabel_map, difference))
    return variants


def student_run(
    images: LabelFreeSplits, changes: dict[str, dict[str, Any]], plan: LabelFreePlan, seed: int
) -> Run:
    """Return the run of a student with changed settings.

    Args:
        images: Image splits with the name of the encoder.
        changes: Changed settings, by section of the run, such as ``sewing``.
        plan: Sizes and settings of the comparison.
        seed: Seed of the run.
    """
    run = Run(
        encoder=Choice(images.encoder),
        method=Choice("tailor"),
        calibrator=Choice("beta"),
        epochs=plan.student_epochs,
        seed=seed,
    )
    for section, changed_settings in changes.items():
        settings = dict(changed_settings)
        default = STUDENT_DEFAULTS[section]
        name = settings.pop("name", default.name)
        default_settings = default.settings if name == default.name else {}
        run = replace(run, **{section: Choice(name, default_settings | settings)})  # type: ignore[arg-type]
    return run


def _pseudolabel_map_of_student(images: LabelFreeSplits, run: Run, cache: ResultCache) -> float:
    """Return the mean average precision of the teacher's pseudo-labels on the test images."""

    def compute() -> float:
        recognizer, test = Recognizer(run, images.test.names), images.test
        pseudolabels = make_pseudolabels_for_unlabelled_fitting(
            run,
            recognizer.encoder,
            recognizer.names_with_aliases,
            test.paths,
            cache=recognizer.cache,
        )
        return _student_map_on_images(pseudolabels.targets.numpy(), test)

    key = ("pseudo-labels", images.fingerprint, run.encoder, run.teacher, run.pseudolabels)
    value: float = cache.load_or_compute(*key, compute=compute)
    return value


def _student_map_on_images(scores: Any, images: LabelledImages) -> float:
    return mean_average_precision(scores, images.targets, images.known)
