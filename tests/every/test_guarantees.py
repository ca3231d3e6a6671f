"""What every guarantee must do."""

import numpy as np
import pytest
from scipy.special import expit

from surelabel.decisions import GUARANTEES, record_validation
from surelabel.errors import ConfigError
from surelabel.tables import table_entry_settings

every = pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=GUARANTEES)


def drawn(images):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(images, 4))
    return logits, (rng.random(logits.shape) < expit(logits)).astype(float)


@every
def test_the_risk_seen_is_at_most_the_level_and_the_threshold_a_probability(guarantee):
    found = guarantee(record_validation(*drawn(1000)), level=0.2)
    assert found.is_reached
    assert 0 <= found.threshold < 1
    assert 0 <= found.risk <= found.level == 0.2
    assert 0 < found.images <= 1000
    assert "at most 20 %" in found.sentence


@every
def test_what_is_seen_is_what_happens_on_the_same_images(guarantee):
    logits, targets = drawn(800)
    found = guarantee(record_validation(logits, targets), level=0.2)
    shown, there = found.predict(expit(logits)), targets.astype(bool)
    wrong = [1 - t[s].mean() for s, t in zip(shown, there, strict=True) if s.any()]
    missed = [1 - s[t].mean() for s, t in zip(shown, there, strict=True) if t.any()]
    assert (found.risk, found.images) in [
        (pytest.approx(np.mean(risks)), len(risks)) for risks in (wrong, missed)
    ]


@every
def test_nothing_is_promised_on_one_image_and_nothing_shown(guarantee):
    found = guarantee(record_validation([[3.0, -3.0]], [[1, 0]]), level=0.1)
    assert not found.is_reached
    assert found.threshold == 1
    assert found.images_needed > 1
    assert not found.predict([[1.0, 1.0]]).any()
    assert "cannot be guaranteed" in found.sentence


@every
def test_a_stricter_level_is_never_easier(guarantee):
    record = record_validation(*drawn(1000))
    risks = [guarantee(record, level=level).risk for level in (0.1, 0.2, 0.3)]
    assert risks[0] < risks[1] < risks[2]


@every
def test_more_confidence_is_never_easier(guarantee):
    if "confidence" in table_entry_settings(guarantee):
        record = record_validation(*drawn(300))
        risks = [guarantee(record, level=0.2, confidence=c).risk for c in (0.6, 0.9, 0.99)]
        assert risks[0] > risks[1] > risks[2]


@every
def test_unknown_targets_have_no_influence(guarantee):
    logits, targets = drawn(500)
    known = np.random.default_rng(1).random(targets.shape) < 0.5
    expected = guarantee(record_validation(logits, targets, known))
    assert (
        guarantee(record_validation(logits, np.where(known, targets, 1 - targets), known))
        == expected
    )
    assert guarantee(record_validation(logits, np.where(known, targets, np.nan))) == expected
    assert guarantee(record_validation(logits, targets)) != expected


@every
@pytest.mark.parametrize("level", [0.0, 1.0, 10.0, float("nan")])
def test_a_level_is_a_share(guarantee, level):
    with pytest.raises(ConfigError, match=f"level must be above 0 .* got {level}"):
        guarantee(record_validation([[0.0]], [[1]]), level=level)


@every
def test_a_confidence_is_a_share(guarantee):
    if "confidence" in table_entry_settings(guarantee):
        with pytest.raises(ConfigError, match=r"confidence must be above 0 .* got 1"):
            guarantee(record_validation([[0.0]], [[1]]), confidence=1)
