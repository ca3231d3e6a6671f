"""No orphan: every module is in its table, every entry has its docstring and its test file."""

from importlib import import_module
from inspect import getdoc, ismodule
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = {  # where it stands
    "BACKBONES": "backbones",
    "CALIBRATORS": "calibration",
    "DOMAINS": "data.domains",
    "GUARANTEES": "decisions",
    "OPERATING_POINTS": "decisions",
    "FORMATS": "data.labels",
    "FUSIONS": "views",
    "LINKS": "links",
    "LOSSES": "losses",
    "METHODS": "methods",
    "SCORE_DOMAINS": "methods",
    "POOLED": "metrics",
    "OPTIMIZERS": "optimizers",
    "CORRECTIONS": "pseudolabels",
    "PSEUDOLABELS": "pseudolabels",
    "SEWINGS": "pseudolabels",
    "PER_CLASS": "metrics",
    "REGULARIZERS": "regularizers",
    "SET_LOSSES": "losses",
    "TRANSPORTS": "transport",
}
HELPERS = {  # folders of tables, and their modules that hold no entry
    "backbones": {
        "arrays",
        "attentive",
        "causal_tower",
        "checkpoints",
        "deep_texts",
        "dense",
        "familiarity",
        "fingerprint",
        "hub",
        "kept",
        "ladder",
        "loading",
        "onnx",
        "onnx_graph",
        "pictures_only",
        "positions",
        "preparation",
        "prompts",
        "protocol",
        "reference",
        "templates",
        "timm",
        "timm_network",
        "towers",
        "trained",
        "trunk",
        "upper",
    },
    "calibration": {"checked", "crossing", "curve", "estimator", "label_shift", "protocol"},
    "decisions": {
        "checked",
        "coverage",
        "evidence",
        "guarantee",
        "record",
        "thresholds",
        "tracking",
    },
    "data.labels": {"aligning", "reading", "resolving"},
    "links": {"arrays", "folded", "protocol"},
    "losses": {"properties"},
    "methods": {"clearest", "decoder", "discriminant", "fused", "leaning", "maps", "neighbourhoods"}
    | {"places", "protocol", "wording"}
    | {"local_adapter", "local_stream", "prompted_names", "region_matching"},
    "pseudolabels": {
        "ahead",
        "checked",
        "estimator",
        "expectation",
        "inversions",
        "parts",
        "selection",
    },
    "regularizers": {"covariance", "pairs"},
    "transport": {"kernel", "knowledge", "logarithms", "plan", "problem", "released"},
    "views": {"boxes", "crops", "cuts", "relative", "sewing", "subgrids", "tiles"},
    "metrics": {
        "blocks",
        "brier_parts",
        "checked",
        "debiased",
        "equal_mass",
        "groups",
        "interval",
        "noise_floor",
        "pairs",
        "piece",
        "proximity",
        "ratio",
        "reliability",
        "whole",
    },
}
SOURCE_IS_NAMED = {
    "CALIBRATORS",
    "FUSIONS",
    "LINKS",
    "LOSSES",
    "METHODS",
    "OPTIMIZERS",
    "CORRECTIONS",
    "PSEUDOLABELS",
    "SEWINGS",
    "POOLED",
    "PER_CLASS",
    "REGULARIZERS",
    "SCORE_DOMAINS",
    "SET_LOSSES",
    "GUARANTEES",
    "OPERATING_POINTS",
    "TRANSPORTS",
}


def table(name):
    return getattr(import_module(f"surelabel.{TABLES[name]}"), name)


def home(entry):
    """The path of the module that an entry is written in, from the package on."""
    module = entry.__name__ if ismodule(entry) else entry.__module__
    return Path(*module.split(".")[1:])


ENTRIES = [
    pytest.param(name, entry, id=f"{name}-{key}")
    for name in TABLES
    for key, entry in table(name).items()
]
FORMULAS = [entry for entry in ENTRIES if entry.values[0] in SOURCE_IS_NAMED]


@pytest.mark.parametrize("folder", HELPERS)
def test_every_module_of_a_folder_is_in_its_table_or_known_as_a_helper(folder):
    modules = {
        f.stem for f in (ROOT / "src/surelabel" / Path(*folder.split("."))).glob("[a-z]*.py")
    }
    tables = [table(name) for name, where in TABLES.items() if where == folder]
    entries = {home(entry).name for entries in tables for entry in entries.values()}
    assert modules == entries | HELPERS[folder]
    assert not entries & HELPERS[folder]


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_every_entry_says_what_it_is(name, entry):
    first = (getdoc(entry) or "").split("\n\n")[0]
    assert first.endswith(".")
    assert not first.startswith("Implementation")


@pytest.mark.parametrize(("name", "entry"), FORMULAS)
def test_every_formula_names_its_source(name, entry):
    assert "\nSource:\n" in getdoc(entry)


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_every_entry_has_its_own_test_file(name, entry):
    mirrored = ROOT / "tests" / home(entry).with_name(f"test_{home(entry).name}.py")
    assert mirrored.exists()


def test_a_number_for_each_class_is_named_after_the_number_for_all():
    assert table("PER_CLASS").keys() <= table("POOLED").keys()
