"""Imports point down only. To move something, change this list on purpose."""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "surelabel"
LAYERS = [
    {"errors"},
    {"migration", "file_locks", "package_imports"},
    {"leftover_files"},
    {
        *("progress", "blas_threads", "shapes", "tables", "files", "recognizer_folder_checks"),
        *("file_readers", "markup", "label_aliases", "counts"),
    },
    {"arrays", "summaries", "mapped_arrays"},
    {"array_files", "storage"},
    {"records"},
    {"transport", "links"},
    {"losses", "regularizers", "metrics", "calibration", "decisions", "optimizers"},
    {"encoders", "data"},
    {"views", "retrieval"},
    {"features", "pseudolabels"},
    {"methods"},
    {"config"},
    {"training", "evaluation"},
    {"recognizer"},
    {"report", "export"},
    {"bench", "cluster", "web"},
    {"cli"},
    {"__main__"},
]
LIGHT_PACKAGES = ("metrics", "retrieval", "data")
ACTOR = "cluster.part_writer"
IMPORTED_BY_COMMANDS = ("decisions", "evaluation")
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(f for f in SOURCE.rglob("*.py") if f != SOURCE / "__init__.py")


def part(file):
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def statements(body):
    """All statements of a list of statements, also those inside others."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, ()))


def imported(tree):
    """Dotted names of all that is imported, wherever it stands; "." when the import is relative."""
    for node in statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            yield "." if node.level else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def defined_types(tree):
    """Return the names of the classes and type aliases that are defined at module level."""
    names = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if name[:1].isupper() and not name.isupper()]


@cache
def imports_and_types(file):
    """Return what a file imports and the types that it defines; each file is parsed once."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return list(imported(tree)), defined_types(tree)


def wrong_imports(here, modules):
    """One sentence for each import that does not point down."""
    for module in modules:
        package, _, rest = module.partition(".")
        there = rest.split(".")[0]
        if module == ".":
            yield f"{here} must import by the full name"
        elif package == "surelabel" and not there:
            yield f"{here} must not import the package root"
        elif package == "surelabel" and there not in LEVEL:
            yield f"{here} imports {there}, which has no level"
        elif package == "surelabel" and there != here and LEVEL[there] >= LEVEL[here]:
            yield f"{here} must not import {there}"


@pytest.mark.parametrize("name", sorted({part(file) for file in FILES}))
def test_imports_point_down(name):
    assert name in LEVEL, f"{name} has no level yet"
    found = {
        str(file.relative_to(SOURCE)): sentences
        for file in FILES
        if part(file) == name
        if (sentences := list(wrong_imports(name, imports_and_types(file)[0])))
    }
    assert not found


def test_there_are_sources_to_look_at():
    assert len(FILES) > 10


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("from surelabel.config import Run", "losses must not import config"),
        ("import surelabel.metrics.average_precision", "losses must not import metrics"),
        ("def f():\n    from surelabel.cli import main", "losses must not import cli"),
        ("from surelabel import records", "losses must not import the package root"),
        ("import surelabel", "losses must not import the package root"),
        ("from . import binary", "losses must import by the full name"),
        ("from surelabel.utils import helper", "losses imports utils, which has no level"),
    ],
)
def test_an_import_that_does_not_point_down_is_seen(code, complaint):
    assert list(wrong_imports("losses", imported(ast.parse(code)))) == [complaint]


@pytest.mark.parametrize(
    "code",
    ["import torch", "from surelabel.shapes import check_shapes", "import surelabel.losses.binary"],
)
def test_what_points_down_or_outside_or_home_is_allowed(code):
    assert not list(wrong_imports("losses", imported(ast.parse(code))))


@pytest.fixture(scope="module")
def files_of_types():
    """Return the files that define each class or type alias at module level, by name."""
    files = {}
    for file in FILES:
        for name in imports_and_types(file)[1]:
            files.setdefault(name, []).append(str(file.relative_to(SOURCE)))
    return files


def test_no_two_modules_define_a_type_of_the_same_name(files_of_types):
    assert not {name: files for name, files in files_of_types.items() if len(files) > 1}


def test_type_names_that_differ_only_in_spelling_do_not_exist(files_of_types):
    by_spelling = {}
    for name in files_of_types:
        by_spelling.setdefault(name.lower().removesuffix("s"), []).append(name)
    assert not [names for names in by_spelling.values() if len(names) > 1]


@pytest.fixture(scope="module")
def heavy_modules():
    """Return the slow packages that are imported after each package, in one new process."""
    code = """
import importlib, json, sys

heavy = {}
for package in sys.argv[1:]:
    importlib.import_module(f"surelabel.{package}")
    heavy[package] = sorted({"torch", "open_clip", "scipy.stats"} & set(sys.modules))
print(json.dumps(heavy))
"""
    result = subprocess.run(
        [sys.executable, "-c", code, *LIGHT_PACKAGES, ACTOR, *IMPORTED_BY_COMMANDS],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(result.stdout)


@pytest.mark.parametrize("package", LIGHT_PACKAGES)
def test_metrics_search_and_data_import_neither_torch_nor_the_encoders(package, heavy_modules):
    assert heavy_modules[package] == []


def test_an_actor_that_writes_predictions_imports_neither_torch_nor_the_encoders(heavy_modules):
    assert heavy_modules[ACTOR] == []


@pytest.mark.parametrize("package", IMPORTED_BY_COMMANDS)
def test_commands_start_without_the_slow_import_of_scipy_stats(package, heavy_modules):
    assert "scipy.stats" not in heavy_modules[package]
