import json

import numpy as np
import pytest

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError
from surelabel.records import LabelledFeatures, LabelledScores


def encoder(kind="logits", **settings):
    return load_encoder(f"scores:{kind}", columns=["dog", "sofa|couch"], **settings)


def scores(values, columns=("sofa|couch", "dog"), kind="logits"):
    return LabelledScores(values, kind, columns=list(columns))


def test_columns_are_matched_by_name_and_views_by_position():
    assert encoder().vectors(scores([[1, 2]])).tolist() == [[2, 1]]
    two_views = scores([[[1, 2], [3, 4]]])
    assert encoder(views=2).vectors(two_views).tolist() == [[2, 1, 4, 3]]
    plain = LabelledFeatures([[0.5, 0.9]], (), np.zeros((1, 0)))
    assert encoder("probabilities").vectors(plain) == pytest.approx(np.array([[0, np.log(9)]]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (scores([[1, 2]], ["dog", "sofa"]), r"missing: sofa\|couch; not expected: sofa\)"),
        (scores([[1]], ["dog"]), r"got 1 columns \(missing: sofa\|couch\)"),
        (scores([[1, 0]], kind="cosines"), "needs logits of 1 view of each image; got cosines"),
        (scores([[[1, 2], [1, 2]]]), "got logits of 2 views"),
        (LabelledFeatures([[1.0]], (), np.zeros((1, 0))), "got vectors of width 1"),
    ],
)
def test_other_scores_are_refused(source, message):
    with pytest.raises(ConfigError, match=message):
        encoder().vectors(source)


def test_a_label_selects_its_column_by_any_spelling():
    assert encoder().encode_labels(["Couch", "dog"], []).tolist() == [[0, 1], [1, 0]]
    assert encoder(views=4).encode_labels(["dog"], []).tolist() == [[0.5, 0] * 4]
    with pytest.raises(ConfigError, match=r"scores:logits has no column for lion\. Columns: dog"):
        encoder().encode_labels(["lion"], [])


def test_a_saved_placeholder_is_the_same(tmp_path):
    fitted = encoder("cosines", views=2).with_log_odds(30.0, -7.0)
    fitted = fitted.fit_normalization(np.random.default_rng(0).normal(size=(5, 4)))
    fitted.save(tmp_path / "saved")
    again = load_encoder(f"local-dir:{tmp_path / 'saved'}")
    assert again.fingerprint == fitted.fingerprint != encoder("cosines", views=2).fingerprint
    assert (again.scale, again.logit_bias) == (30 / np.sqrt(2), -7)
    assert (again.columns, again.views, again.kind) == (fitted.columns, 2, "cosines")


@pytest.mark.parametrize("change", [{"slope": -1.0}, {"columns": []}, {"views": 0}, {"level": "x"}])
def test_a_damaged_manifest_is_refused(tmp_path, change):
    encoder().save(tmp_path / "saved")
    file = tmp_path / "saved" / "surelabel_encoder.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(DataError, match="must contain a valid description of scores"):
        load_encoder(f"local-dir:{tmp_path / 'saved'}")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("scores:s.csv", {}, r"must be one of logits, probabilities, cosines; got 's\.csv'"),
        ("scores:logits", {}, r"encoder\.columns must be a list.*got \(\)"),
        ("scores:logits", {"columns": ["a", "a"]}, r"without duplicates; got \['a', 'a'\]"),
        ("scores:logits", {"columns": ["a"], "views": 0}, r"encoder\.views must be.*got 0"),
    ],
)
def test_settings_out_of_range_are_refused(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        load_encoder(name, **settings)


def test_images_are_refused():
    with pytest.raises(ConfigError, match=r"needs scores of images.*got image files"):
        _ = encoder().input_side
