"""Run a comparison on its datasets, and write its Markdown, JSON and PNG files."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from surelabel.bench.markdown_page import markdown_section
from surelabel.bench.result_cache import ResultCache
from surelabel.files import atomic_file
from surelabel.progress import Progress
from surelabel.report.json_values import strict_json_value

DatasetT = TypeVar("DatasetT")
PlanT = TypeVar("PlanT")
ResultsT = TypeVar("ResultsT")


@dataclass(frozen=True)
class ComparisonTask(Generic[DatasetT, PlanT]):
    """Inputs of the measurements of a comparison on one dataset.

    Attributes:
        dataset: Train, validation and test splits.
        plan: Sizes and settings of the comparison.
        cache: Cache of predictions and metrics, from which an interrupted comparison resumes.
        seed: Seed of the first fit of each row. The other fits use the next seeds.
        progress: Function called with the number of finished steps and the total number of steps.
    """

    dataset: DatasetT
    plan: PlanT
    cache: ResultCache
    seed: int = 0
    progress: Progress | None = None

    def seeds(self, n_fits: int) -> range:
        """Return the seeds of the fits of a row: consecutive numbers from ``seed``."""
        return range(self.seed, self.seed + n_fits)

    def step_counter(self, total: int) -> Callable[[], None]:
        """Return a function that reports progress; call it after each of ``total`` steps."""
        numbers = count(1)

        def count_step() -> None:
            number = next(numbers)
            if self.progress:
                self.progress(number, total)

        return count_step


def json_value_of_datasets(results: Sequence[Any]) -> dict[str, Any]:
    """Return ``{"results": […]}`` with one JSON value for each dataset."""
    return {"results": [strict_json_value(asdict(result)) for result in results]}


def json_value_of_one_dataset(results: Sequence[Any]) -> dict[str, Any]:
    """Return the results of the only dataset as a JSON value."""
    (result,) = results
    return dict(strict_json_value(asdict(result)))


@dataclass(frozen=True)
class BenchComparison(Generic[DatasetT, PlanT, ResultsT]):
    """Parts of a comparison that differ between comparisons.

    Attributes:
        name: Name of the command, and of the written files without their suffix.
        full: Plan of the complete comparison.
        quick: Plan of a comparison that takes a few minutes.
        measure: Function that measures all rows on one dataset and returns the results, which are a
            dataclass.
        paragraphs: Function that returns the Markdown paragraphs about one dataset.
        appendix: Markdown after the sections of all datasets.
        json_value: Function that returns the content of the JSON file.
        figures: Functions that return a PNG, by file name.
    """

    name: str
    full: PlanT
    quick: PlanT
    measure: Callable[[ComparisonTask[DatasetT, PlanT]], ResultsT]
    paragraphs: Callable[[ResultsT], Iterable[str]]
    appendix: str = ""
    json_value: Callable[[Sequence[ResultsT]], dict[str, Any]] = json_value_of_datasets
    figures: Mapping[str, Callable[[Sequence[ResultsT]], bytes]] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """Return the names of the written files."""
        return [f"{self.name}.md", f"{self.name}.json", *self.figures]


def write_comparison(
    comparison: BenchComparison[DatasetT, PlanT, ResultsT],
    datasets: Sequence[DatasetT],
    plan: PlanT,
    folder: str | Path,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[str, dict[str, Any]]:
    """Measure all datasets and write the files of the comparison.

    Args:
        comparison: Comparison to run.
        datasets: Train, validation and test splits of one or more datasets.
        plan: Sizes and settings of the comparison, such as ``comparison.quick``.
        folder: Output folder. An interrupted comparison resumes from the subfolder ``cache``.
        seed: Seed of the first fit of each row. The other fits use the next seeds.
        progress: Function called with the number of finished steps and the total number of steps of
            the current dataset.

    Returns:
        Content of the Markdown file as a string, and content of the JSON file as a dictionary.

    Raises:
        DataError: If a file in the folder is damaged or cannot be written.
    """
    folder = Path(folder)
    cache = ResultCache(folder / "cache")
    results = [
        comparison.measure(ComparisonTask(dataset, plan, cache, seed, progress))
        for dataset in datasets
    ]
    sections = [markdown_section(comparison.paragraphs(result)) for result in results]
    page = "\n".join([*sections, *([comparison.appendix] if comparison.appendix else [])])
    value = comparison.json_value(results)
    contents = [page.encode(), json.dumps(value, indent=1, allow_nan=False).encode()]
    contents += [draw(results) for draw in comparison.figures.values()]
    for name, content in zip(comparison.files, contents, strict=True):
        with atomic_file(folder / name) as file:
            file.write_bytes(content)
    return page, value
