from dataclasses import replace

import pytest

from surelabel.bench.base_new_predictions import BaseNewFit, SynthesizedFit
from surelabel.bench.base_new_splits import HALVES, base_new_splits_of_images
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.prompts.plan import (
    CCR,
    DOR,
    FULL,
    NONE,
    QUICK,
    PromptPlan,
    PromptSetting,
    epochs_within_time,
    prompt_plan_of_images,
    prompt_workload,
    variants_of_tuner,
)

TWO = PromptPlan(
    tuners={"coop": 2, "cocoop": 1},
    losses=("binary",),
    variants=(NONE, CCR),
    curve_shots=(),
    weights=(),
    open_vocabulary_tuners=(),
)


def costs_of(**step_seconds):
    return {
        tuner: {variant: {"step_seconds": seconds, "other_seconds": 1.0} for variant in (NONE, CCR)}
        for tuner, seconds in step_seconds.items()
    }


def seconds_of(plan, steps, costs, epochs):
    """Time of all fits, by loops."""
    total = 0.0
    for setting in plan.trained_settings():
        cost = costs[setting.tuner][setting.variant]
        per_fit = (
            epochs[setting.tuner] * steps[setting] * cost["step_seconds"] + cost["other_seconds"]
        )
        total += plan.seeds(setting.tuner) * per_fit
    return total


@pytest.mark.parametrize("minutes", [0.5, 1.0, 1000.0])
def test_epochs_fit_into_the_time_and_are_at_most_ten(minutes):
    plan, steps = replace(TWO, minutes=minutes), dict.fromkeys(TWO.trained_settings(), 4)
    costs = costs_of(coop=0.1, cocoop=2.0)
    epochs = epochs_within_time(plan, steps, costs)
    assert all(1 <= n <= 10 for n in epochs.values())
    assert seconds_of(plan, steps, costs, epochs) <= 60 * minutes
    assert epochs["cocoop"] <= epochs["coop"]
    if minutes == 1000:
        assert epochs == {"coop": 10, "cocoop": 10}
    else:
        one_more = epochs | {"cocoop": epochs["cocoop"] + 1}
        assert seconds_of(plan, steps, costs, one_more) > 60 * minutes


def test_a_plan_that_never_fits_has_one_epoch():
    plan, costs = replace(TWO, minutes=0.001), costs_of(coop=1.0, cocoop=1.0)
    epochs = epochs_within_time(plan, dict.fromkeys(plan.trained_settings(), 4), costs)
    assert epochs == {"coop": 1, "cocoop": 1}


def test_a_row_of_several_tables_is_trained_once():
    settings = QUICK.trained_settings()
    assert len(settings) == len(set(settings))
    main = PromptSetting("coop", shots=QUICK.shots)
    for rows in (QUICK.curve_settings(), QUICK.weight_settings(32), QUICK.domain_settings()):
        assert main in list(rows)


def test_all_rows_of_a_tuner_have_equal_epochs_and_only_the_regularizer_differs(images):
    plan = replace(FULL, epochs={"coop": 3})
    none, dor, ccr = (
        plan.fit_of(PromptSetting("coop", variant=variant), images, seed=4).run
        for variant in (NONE, DOR, CCR)
    )
    assert (none.epochs, none.batch_size, none.seed, none.regularizer) == (3, 32, 4, None)
    assert (ccr.regularizer.name, ccr.regularizer_weight) == ("class_covariance", 0.1)
    assert (dor.regularizer.name, dor.regularizer_weight) == ("outlier", 8.0)
    assert list(dor.regularizer.settings["exclude"]) == list(images.test.names[3:])
    other = plan.fit_of(PromptSetting("dualcoop", variant=DOR), images, seed=4).run
    assert (other.regularizer_weight, other.epochs) == (2.0, 10)
    for run in (dor, ccr):
        same = replace(run, regularizer=None, regularizer_weight=none.regularizer_weight)
        assert same == none


def test_only_samples_of_more_than_32_shots_need_the_large_training_set(images):
    fits = [FULL.fit_of(PromptSetting("coop", shots=n), images, 0) for n in (1, 32, 64, 128)]
    assert [fit.uses_large_train for fit in fits] == [False, False, True, True]


def test_rows_of_synthesized_images_name_their_domain(images):
    settings = [s for s in FULL.main_settings("ranking") if s.tuner == "t2i_pal"]
    assert [setting.title for setting in settings] == [
        f"t2i_pal ({domain}), {variant}"
        for domain in ("test distribution", "sketch")
        for variant in (NONE, DOR, CCR)
    ]
    fits = [FULL.fit_of(setting, images, 1) for setting in settings]
    assert [fit.training_domain for fit in fits] == ["photo"] * 3 + ["sketch"] * 3
    assert all(isinstance(fit, SynthesizedFit) and fit.run.epochs == 10 for fit in fits)


def test_fits_on_other_images_have_the_cache_key_of_fits_before_synthesis(images):
    others = [s for s in FULL.trained_settings() if not s.synthesized_domain]
    fits = [FULL.fit_of(setting, images, 0) for setting in others]
    assert {type(fit) for fit in fits} == {BaseNewFit}
    assert not any("training_domain" in repr(fit) for fit in fits)


def test_dor_needs_learned_prompts_in_the_text_tower():
    assert variants_of_tuner("coop", FULL.variants) == [NONE, DOR, CCR]
    assert variants_of_tuner("clip_adapter", FULL.variants) == [NONE, CCR]


def test_the_workload_states_fits_seeds_and_epochs():
    text = prompt_workload(replace(TWO, epochs={"cocoop": 4}))
    assert text.startswith("The comparison runs 6 fits per encoder in 4 rows")
    assert "coop (2 seeds, 10 epochs), cocoop (1 seeds, 4 epochs)" in text


def test_the_plan_of_a_dataset_has_no_texts_and_no_other_domains(images):
    dataset = EncoderImageSplits(
        name="few",
        encoder="tiny-vit",
        train=images.train,
        validation=images.validation,
        test=images.test,
    )
    splits = base_new_splits_of_images(dataset)
    assert (splits.domains, splits.large_train) == ({}, images.train)
    plan = prompt_plan_of_images(FULL, splits)
    assert list(plan.tuners) == ["coop", "kgcoop", "dualcoop", "clip_adapter", "cocoop"]
    assert (plan.validation, plan.test) == (len(images.validation), len(images.test))
    settings = plan.trained_settings()
    assert {setting.split for setting in settings} == {HALVES}
    assert not any(plan.fit_of(setting, splits, 0).domains for setting in settings)
    assert {setting.synthesized_domain for setting in settings} == {""}
