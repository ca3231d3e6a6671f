import json

import pytest

from surelabel.cli.show import TABLES


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("encoder", "tiny-vit"),
        ("method", "clip_adapter"),
        ("loss", "asymmetric"),
        ("link", "focal"),
        ("metric", "brier_skill"),
        ("calibrator", "platt"),
        ("format", "coco"),
        ("domain", "sketch"),
        ("words", "hot dog"),
    ],
)
def test_each_table_is_listed(kind, entry, run):
    found = json.loads(run("show", kind, "--json").out)
    assert found[entry]["about"]
    assert any(line.startswith(f"{entry} ") for line in run("show", kind).out.splitlines())


def test_settings_are_shown_with_their_defaults(run):
    assert "gamma_pos=0.0 gamma_neg=4.0 clip=0.05" in run("show", "loss").out


def test_every_table_has_an_entry(run):
    assert all(json.loads(run("show", kind, "--json").out) for kind in TABLES)
