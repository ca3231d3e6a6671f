from dataclasses import replace

import pytest

from surelabel.bench.similarity.plan import (
    DETACHED,
    FULL,
    SIGMOID,
    VACSR,
    ZERO_SHOT_ROW,
)

STEP_SECONDS = {"cosine_projection": 0.002, "probabilistic_embedding": 0.004, "variational": 0.05}


def test_every_row_is_fitted_once():
    settings = [setting for setting in FULL.fitted_settings() if not setting.title.count(" = ")]
    keys = [replace(setting, title="") for setting in settings]
    assert len(set(keys)) == len(keys)
    sensitivity = list(FULL.sensitivity_settings())
    assert len(sensitivity) == 25
    assert FULL.fitted_settings()[-25:] == sensitivity


def test_seeds_are_those_of_the_issue():
    assert [FULL.n_seeds(setting) for setting in (VACSR, SIGMOID, DETACHED)] == [5, 5, 5]
    assert FULL.n_seeds(replace(VACSR, noise=0.5)) == 5
    assert FULL.n_seeds(ZERO_SHOT_ROW) == 1
    assert {FULL.n_seeds(setting) for setting in FULL.sensitivity_settings()} == {1}


def test_a_run_has_the_settings_of_its_row():
    run = FULL.run_of(DETACHED, "tiny-rn", 3, 0.01)
    assert (run.method.name, dict(run.method.settings)) == ("variational", {"detach_trunk": True})
    assert (run.seed, run.learning_rate, run.batch_size, run.epochs) == (3, 0.01, 64, 10)
    regularized = next(s for s in FULL.main_settings() if s.regularizer)
    assert FULL.run_of(regularized, "tiny-vit", 0, 0.01).regularizer_weight == 0.1
    assert FULL.run_of(ZERO_SHOT_ROW, "tiny-vit", 0, 0.0).epochs != FULL.epochs


def test_the_time_counts_all_fits_and_the_selection_of_learning_rates():
    expected = sum(STEP_SECONDS[s.method] * FULL.n_seeds(s) for s in FULL.fitted_settings())
    expected += 2 * (
        2 * STEP_SECONDS["cosine_projection"] + STEP_SECONDS["probabilistic_embedding"]
    )
    expected += 2 * 2 * STEP_SECONDS["variational"]
    assert FULL.fit_seconds(STEP_SECONDS) == pytest.approx(expected)
    one_rate = replace(FULL, learning_rates=(0.001,))
    assert one_rate.fit_seconds(STEP_SECONDS) < expected
