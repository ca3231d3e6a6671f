import json
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pytest

from surelabel.bench import BenchComparison, ComparisonTask, ResultCache, write_comparison
from surelabel.bench.calibrated import CALIBRATED
from surelabel.bench.comparison import json_value_of_datasets, json_value_of_one_dataset
from surelabel.bench.label_free import LABEL_FREE
from surelabel.bench.markdown_page import markdown_table_of_rows
from surelabel.bench.open_vocabulary import OPEN_VOCABULARY
from surelabel.bench.rows import ComparisonRow, metrics_by_seed
from surelabel.errors import DataError
from surelabel.metrics import log_loss_of_logits

COMPARISONS = [CALIBRATED, LABEL_FREE, OPEN_VOCABULARY]


@dataclass(frozen=True)
class NoisePlan:
    """Amounts of noise, and the number of seeds of each."""

    deviations: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class NoiseResults:
    dataset: str
    rows: tuple[ComparisonRow, ...]


def measure_noise(task):
    """Return the log loss of the targets' logits with noise, for each amount of noise."""
    test, rows = task.dataset.test, []
    count_step = task.step_counter(len(task.plan.deviations))
    for deviation in task.plan.deviations:
        metrics = []
        for seed in task.seeds(task.plan.seeds):
            noise = np.random.default_rng(seed).normal(0, deviation, test.targets.shape)
            logits = np.where(test.known, 2 * test.targets - 1, 0) + noise
            metrics.append({"log_loss": log_loss_of_logits(logits, test.targets, test.known)})
        rows.append(ComparisonRow(f"noise {deviation:g}", metrics_by_seed(metrics)))
        count_step()
    return NoiseResults(task.dataset.name, tuple(rows))


def noise_paragraphs(results):
    yield f"## {results.dataset}"
    columns = {"": attrgetter("title"), "log loss": lambda row: f"{row.mean('log_loss'):.4f}"}
    yield markdown_table_of_rows(results.rows, columns)


def test_a_comparison_is_a_plan_a_measurement_and_paragraphs(dataset, tmp_path):
    quick, calls = NoisePlan((0.0, 1.0), 2), []
    noise = BenchComparison(
        "noise", NoisePlan((0.0, 1.0, 2.0), 5), quick, measure_noise, noise_paragraphs
    )
    page, value = write_comparison(
        noise, [dataset], quick, tmp_path, seed=4, progress=lambda *n: calls.append(n)
    )
    (result,) = value["results"]
    exact = float(np.log1p(np.exp(-1)))
    assert result["rows"][0]["metrics"]["log_loss"] == pytest.approx([exact, exact])
    first, second = result["rows"][1]["metrics"]["log_loss"]
    assert first != second
    assert page == (
        f"## small\n\n|  | log loss |\n| --- | --- |\n| noise 0 | {exact:.4f} |\n"
        f"| noise 1 | {(first + second) / 2:.4f} |\n"
    )
    assert calls == [(1, 2), (2, 2)]
    assert (tmp_path / "noise.md").read_text(encoding="utf-8") == page
    assert json.loads((tmp_path / "noise.json").read_text(encoding="utf-8")) == value


def test_page_numbers_and_figure_are_written(dataset, plan, folder, results):
    page, value = write_comparison(CALIBRATED, [dataset], plan, folder)
    assert (folder / "calibrated.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "calibrated.json").read_text(encoding="utf-8")) == value
    assert page.startswith(f"## {dataset.name}")
    assert "### Published" in page
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert {file.name for file in folder.iterdir()} == {*CALIBRATED.files, "cache"}


def test_each_dataset_has_its_section_before_the_appendix(dataset, plan, folder, results):
    page, value = write_comparison(CALIBRATED, [dataset, dataset], plan, folder)
    section, same_section, appendix = page.partition("\n### Published")[0].split("## small\n")
    assert section == ""
    assert same_section.strip() == appendix.strip()
    assert page.endswith(f"\n{CALIBRATED.appendix}")
    assert [result["dataset"] for result in value["results"]] == ["small", "small"]


def test_a_folder_that_cannot_be_written_is_refused(dataset, plan, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_comparison(CALIBRATED, [dataset], plan, tmp_path / "file")


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.name)
def test_a_quick_plan_is_a_smaller_plan_of_the_same_class(comparison: BenchComparison):
    full, quick = vars(comparison.full), vars(comparison.quick)
    assert type(comparison.full) is type(comparison.quick)
    assert quick != full
    numbers = [key for key, value in full.items() if isinstance(value, int)]
    assert all(quick[key] <= full[key] for key in numbers)


def test_the_value_of_several_datasets_is_a_list_and_that_of_one_is_not(results):
    (value,) = json_value_of_datasets([results])["results"]
    assert json_value_of_one_dataset([results]) == value
    with pytest.raises(ValueError, match="too many values"):
        json_value_of_one_dataset([results, results])


def test_seeds_are_consecutive_from_the_seed_of_the_task(tmp_path):
    task = ComparisonTask("dataset", "plan", ResultCache(tmp_path), seed=3)
    assert list(task.seeds(2)) == [3, 4]


def test_steps_are_counted_from_1_to_the_total(tmp_path):
    calls = []
    cache = ResultCache(tmp_path)
    task = ComparisonTask("dataset", "plan", cache, progress=lambda *n: calls.append(n))
    count_step = task.step_counter(2)
    count_step()
    count_step()
    assert calls == [(1, 2), (2, 2)]
