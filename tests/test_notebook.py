"""The notebook of the documentation runs, and shows tables and plots."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    client = NotebookClient(
        notebook,
        timeout=300,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def shown(notebook, source):
    """Return the data of the last output of the cell with this line of code."""
    cell = next(cell for cell in notebook.cells if source in cell.source.splitlines())
    return cell.outputs[-1]["data"]


def test_no_cell_warns_or_prints_errors(executed):
    """Only tqdm, which open_clip imports, warns that ipywidgets is not installed."""
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert outputs
    printed = [output for output in outputs if output.output_type in ("stream", "error")]
    assert not [output for output in printed if "IProgress not found" not in output.get("text", "")]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("zero_shot", "tiny-vit"),
        ("predictions", "rank 1"),
        ("recognizer", "clip_adapter"),
        ("evaluation", "noise floor"),
        ("index", "notebook-index"),
    ],
)
def test_an_object_is_shown_as_a_table(executed, source, text):
    data = shown(executed, source)
    assert "<table" in data["text/html"]
    assert text in data["text/html"]


def test_search_results_are_shown_as_a_table(executed):
    data = executed.cells[-1].outputs[-1]["data"]
    assert data["text/html"].count("<tr") > 5


def test_both_plots_are_images(executed):
    kinds = [
        kind
        for cell in executed.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert kinds.count("image/png") == 2


def test_the_notebook_is_stored_without_outputs():
    cells = [c for c in nbformat.read(NOTEBOOK, as_version=4).cells if c.cell_type == "code"]
    assert not [cell for cell in cells if cell.outputs or cell.execution_count]
