import json
from pathlib import Path

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
        ("pretrained", "ViT-B-16-SigLIP2/webli"),
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


def test_pretrained_encoders_are_shown_with_license_and_commercial_use(run):
    found = json.loads(run("show", "pretrained", "--json").out)
    assert found["ViT-B-16/metaclip_400m"]["license"] == "cc-by-nc-4.0"
    assert found["ViT-B-16/metaclip_400m"]["permits_commercial_use"] is False
    assert found["ViT-B-16/openai"]["permits_commercial_use"] is True
    unknown = found["nllb-clip-base/v1"]
    assert unknown["license"] is None
    assert unknown["permits_commercial_use"] is None
    text = run("show", "pretrained").out
    assert "license cc-by-nc-4.0, according to timm; no commercial use" in text


def test_a_saved_recognizer_states_its_encoder_vectors_and_calibration(run, tmp_path):
    saved = Path(__file__).parents[1] / "saved" / "0.1.0" / "recognizers" / "linear_vectors"
    properties = json.loads(run("show", str(saved), "--json").out)
    assert properties["vectors"] == "scaled to unit length"
    assert (properties["encoder"], properties["labels"]) == ("features:16", "warm, loud")
    lines = run("show", str(saved)).out.splitlines()
    assert "vectors                         scaled to unit length" in [x.rstrip() for x in lines]
    refused = run("show", str(tmp_path))
    assert (refused.code, refused.out) == (1, "")
    assert "must be a complete saved recognizer" in refused.err
