"""Every file of a table package is an entry of its table, documented and tested."""

import ast
import builtins
import sys
from importlib import import_module
from inspect import getdoc, ismodule
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surelabel"
ENTRY_FILES = {  # tables whose entries have a file each: the package of the files
    "CALIBRATORS": "calibration",
    "CAPTION_FORMATS": "data.captions",
    "CORRECTIONS": "pseudolabels.corrections",
    "ENCODERS": "encoders",
    "FORMATS": "data.labels",
    "LINKS": "links",
    "LOSSES": "losses",
    "METHODS": "methods",
    "PER_CLASS": "metrics",
    "POOLED": "metrics",
    "PSEUDOLABELS": "pseudolabels",
    "REGULARIZERS": "regularizers",
    "SET_LOSSES": "losses",
    "SEWINGS": "pseudolabels",
    "TRANSPORTS": "transport",
}
ONE_FILE = {  # tables of short entries, in one file that is named after the table
    "DOMAINS": "data.domains",
    "FUSIONS": "views.fusions",
    "GUARANTEES": "decisions.guarantees",
    "OPERATING_POINTS": "decisions.operating_points",
    "OPTIMIZERS": "optimizers",
    "SCORE_DOMAINS": "methods.text_scoring.score_domains",
}
TABLES = ENTRY_FILES | ONE_FILE
WITHOUT_SOURCE = {"CAPTION_FORMATS", "DOMAINS", "ENCODERS", "FORMATS"}  # not formulas of a paper
PACKAGES = sorted(set(ENTRY_FILES.values()))
INTERFACE = "interface"


def table(name):
    return getattr(import_module(f"surelabel.{TABLES[name]}"), name)


def module_path(entry):
    """Return the path of the module that defines an entry, relative to the package."""
    module = entry.__name__ if ismodule(entry) else entry.__module__
    return Path(*module.split(".")[1:])


def modules_of(folder):
    return {file.stem for file in folder.glob("[a-z]*.py")}


def folders_of(folder):
    return {child for child in folder.iterdir() if (child / "__init__.py").exists()}


ENTRIES = [
    pytest.param(name, key, entry, id=f"{name}-{key}")
    for name in TABLES
    for key, entry in table(name).items()
]
FORMULAS = [entry for entry in ENTRIES if entry.values[0] not in WITHOUT_SOURCE]
HAVE_FILES = [entry for entry in ENTRIES if entry.values[0] in ENTRY_FILES]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_table_package_is_an_entry_or_the_interface(package):
    folder = SOURCE / Path(*package.split("."))
    tables = [table(name) for name, where in ENTRY_FILES.items() if where == package]
    keys = {key.replace("-", "_") for entries in tables for key in entries}
    assert modules_of(folder) - {INTERFACE} <= keys
    assert modules_of(folder).isdisjoint(child.name for child in folders_of(folder))


@pytest.mark.parametrize(("name", "key", "entry"), HAVE_FILES)
def test_the_file_of_an_entry_has_its_key(name, key, entry):
    file, package = key.replace("-", "_"), Path(*ENTRY_FILES[name].split("."))
    assert module_path(entry) in (package / file, package / file / file)


@pytest.mark.parametrize("name", ONE_FILE)
def test_a_table_in_one_file_has_all_its_entries_there(name):
    where = Path(*ONE_FILE[name].split("."))
    assert where.name == name.lower()
    assert {module_path(entry) for entry in table(name).values()} == {where}


COMMANDS = modules_of(SOURCE / "cli")  # a command's file has the command's verb
ENTRY_MODULES = {module_path(entry.values[2]) for entry in HAVE_FILES}
OTHER_FILES = [
    file.relative_to(SOURCE)
    for file in sorted(SOURCE.rglob("[a-z]*.py"))
    if file.relative_to(SOURCE).with_suffix("") not in ENTRY_MODULES
    and file.parent != SOURCE / "cli"
]


def exported_functions(folder):
    """Return the functions that the ``__init__`` of a folder imports from its own files."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.name for alias in node.names if alias.name.islower()}
    return names


@pytest.mark.parametrize("folder", sorted({file.parent for file in OTHER_FILES}), ids=str)
def test_a_file_that_is_no_entry_takes_no_name_that_means_something_else(folder):
    stems = {file.stem for file in OTHER_FILES if file.parent == folder}
    assert not stems & sys.stdlib_module_names
    assert not stems & vars(builtins).keys()
    if folder != Path():
        assert not stems & exported_functions(SOURCE / folder)


@pytest.mark.parametrize(("name", "key", "entry"), ENTRIES)
def test_every_entry_says_what_it_is(name, key, entry):
    first = (getdoc(entry) or "").split("\n\n")[0]
    assert first.endswith(".")
    assert not first.startswith("Implementation")


@pytest.mark.parametrize(("name", "key", "entry"), FORMULAS)
def test_every_formula_names_its_source(name, key, entry):
    assert "\nSource:\n" in getdoc(entry)


@pytest.mark.parametrize(("name", "key", "entry"), ENTRIES)
def test_every_entry_has_its_own_test_file(name, key, entry):
    path = module_path(entry)
    assert (ROOT / "tests" / path.with_name(f"test_{path.name}.py")).exists()


def test_a_number_for_each_class_is_named_after_the_number_for_all():
    assert table("PER_CLASS").keys() <= table("POOLED").keys()
