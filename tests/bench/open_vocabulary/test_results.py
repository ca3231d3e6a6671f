import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from surelabel.bench import ComparisonTask, write_comparison
from surelabel.bench.image_splits import EncoderImageSplits
from surelabel.bench.markdown_page import markdown_section
from surelabel.bench.open_vocabulary import (
    OPEN_VOCABULARY,
    open_vocabulary_plan_of_images,
    open_vocabulary_splits_of_images,
)
from surelabel.bench.open_vocabulary import plan as plans
from surelabel.bench.open_vocabulary.costs import measure_run_cost
from surelabel.bench.open_vocabulary.fitted_rows import (
    FittedPredictions,
    fitted_rows_workload,
    predictions_of_fitted_row,
    run_of_fitted_row,
    runs_of_all_fitted_rows,
    runs_of_fitted_row,
)
from surelabel.bench.open_vocabulary.page import open_vocabulary_paragraphs
from surelabel.bench.open_vocabulary.prediction_metrics import (
    COMPARED_METRICS,
    bootstrap_prediction_metrics,
    targets_of_prediction_metrics,
)
from surelabel.bench.open_vocabulary.published import PUBLISHED
from surelabel.bench.open_vocabulary.results import measure_open_vocabulary_results
from surelabel.bench.open_vocabulary.scene_splits import load_open_vocabulary_scene_splits
from surelabel.bench.open_vocabulary.vocabulary_change import added_names_of_vocabulary_change
from surelabel.bench.resampling import bench_resampling_weights
from surelabel.bench.result_cache import ResultCache
from surelabel.config import Choice, Run
from surelabel.data import collection
from surelabel.evaluation import evaluate_unseen_classes
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledImages

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* no positive image", "ignore:Only 1 training image"
)

EACH, COSTS = deepcopy(plans.TABLES), dict(plans.COST_ROWS)  # before a fixture leaves some out
ROWS = [(heading, title) for heading, rows in EACH.items() for title in rows]


def an_answer(images, seed=0):
    """Scores and log-odds by chance."""
    random, (targets, _, _) = np.random.default_rng(seed), targets_of_prediction_metrics(images)
    scores = targets + random.normal(size=targets.shape)
    return FittedPredictions(scores, 2 * scores - 2, 0, 0.0)


def test_a_second_run_reads_what_the_first_computed(archive, place, found, small):
    cache = ResultCache(place / "cache")
    again = measure_open_vocabulary_results(ComparisonTask(archive, small, cache))
    assert cache.n_computed == 0
    assert repr(again) == repr(found)  # NaN equals nothing


def test_the_files_say_what_is_returned(archive, place, found, small):
    page, value = write_comparison(OPEN_VOCABULARY, [archive], small, place)
    assert (place / "open-vocabulary.md").read_text(encoding="utf-8") == page
    written = json.loads((place / "open-vocabulary.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(value))
    for heading, rows in found.tables.items():
        assert f"### {heading}" in page
        for row in rows:
            assert f"| {row.title} |" in page
    assert f"{archive.removed} other images were removed" in page


def test_values_are_those_of_the_recognizer_that_people_use(archive, place, found, small):
    (run,) = runs_of_fitted_row("photo", EACH[plans.OTHER_METHODS]["zero-shot"], small, 0)
    recognizer = Recognizer(run, archive.vocabulary.seen).calibrate(archive.validation)
    said = recognizer.with_names(archive.vocabulary.names).predict(archive.test)
    test, row = (
        recognizer.with_names(archive.vocabulary.names).align_labels(archive.test),
        found.row(plans.OTHER_METHODS, "zero-shot"),
    )
    whole = evaluate_unseen_classes(
        said.scores, test.targets, range(4), test.known, said.probabilities
    )
    assert row.mean("zsl_map") == whole.zsl.achieved.mean_average_precision
    assert row.mean("gzsl_f1_at_3") == whole.gzsl.achieved.micro[3].f1
    assert row.mean("unseen_ece") == pytest.approx(whole.metrics_by_group["ece"]["unseen"])


def test_rows_of_equal_runs_are_equal_and_the_reference_has_no_differences(found):
    usual = found.reference
    again = found.row(plans.MATCHING, "optimal transport, knowledge-constrained")
    assert again.metrics == usual.metrics
    assert not again.differences
    assert not usual.differences
    average, both = found.row(plans.MATCHING, "average"), found.row(plans.PARTS, "both")
    assert average.metrics == both.metrics


def test_differences_are_to_the_reference_and_paired(found):
    for metric in COMPARED_METRICS:
        average, usual = found.row(plans.MATCHING, "average"), found.reference
        apart = average.differences[metric]
        assert apart.value == pytest.approx(average.mean(metric) - usual.mean(metric))
        assert apart.over_images.value == pytest.approx(apart.value, abs=1e-9)
        assert apart.over_seeds.low <= apart.value <= apart.over_seeds.high


def test_what_learns_has_a_value_a_seed_and_what_does_not_has_one(found, small):
    assert len(found.reference.metrics["zsl_map"]) == small.seeds
    assert len(found.row(plans.OTHER_METHODS, "zero-shot").metrics["zsl_map"]) == 1
    assert found.reference.metrics["unseen_ece"][0] != found.reference.metrics["unseen_ece"][1]


def test_no_unseen_label_reaches_a_recognizer(archive, found, tmp_path, small):
    columns = [archive.validation.names.index(name) for name in archive.vocabulary.unseen]
    turned = archive.validation.targets.copy()
    turned[:, columns] = 1 - turned[:, columns]
    other = replace(archive, validation=replace(archive.validation, targets=turned))
    run, *_ = runs_of_fitted_row("photo", EACH[plans.OTHER_METHODS][plans.REFERENCE], small, 0)
    one = predictions_of_fitted_row(ResultCache(tmp_path), other, run)
    metrics = bootstrap_prediction_metrics(other, one, resamples=1)
    assert metrics["unseen_ece"][0] == pytest.approx(found.reference.metrics["unseen_ece"][0])
    assert not set(archive.train.names) & set(archive.vocabulary.unseen)


def test_other_names_do_not_move_old_ones(found, small):
    added = [one["names"] for one in found.vocabulary_change]
    assert added == [2, small.added_names]
    for one in found.vocabulary_change:
        assert 0 <= one["logit_change_median"] <= one["logit_change_95th_percentile"] < 1e-5
        assert abs(one["ece_change"]) < 1e-5
        assert 0 <= one["ece_before"] <= 1


def test_added_names_are_new_and_each_comes_once(archive):
    names = added_names_of_vocabulary_change(archive, 1000)
    assert len(names) == len({name.casefold() for name in names}) == 1000
    assert not {name.casefold() for name in names} & set(archive.test.names)


def test_resampled_metrics_equal_those_of_repeated_images(archive):
    one, (targets, known, seen) = an_answer(archive), targets_of_prediction_metrics(archive)
    measured = bootstrap_prediction_metrics(archive, one, resamples=6)
    for place, weights in enumerate(
        bench_resampling_weights(len(targets), resamples=6).astype(int)
    ):
        rows = np.repeat(np.arange(len(targets)), weights)
        whole = evaluate_unseen_classes(
            one.scores[rows], targets[rows], seen, known[rows], expit(one.logits[rows])
        )
        expected = {
            f"{part}_{name}": value
            for part in ("zsl", "gzsl")
            for name, value in (
                ("f1_at_3", getattr(whole, part).achieved.micro[3].f1),
                ("map", getattr(whole, part).achieved.mean_average_precision),
            )
        }
        expected |= {
            f"{side}_{name}": whole.metrics_by_group[name][side]
            for side in ("seen", "unseen")
            for name in ("ece", "brier_skill")
        }
        for name, value in expected.items():
            np.testing.assert_allclose(measured[name][place], value, err_msg=name)


@pytest.mark.parametrize(("heading", "title"), ROWS)
def test_each_row_is_a_run_that_can_be_made(heading, title, small):
    run = run_of_fitted_row("photo", EACH[heading][title], small, 3)
    run.entry("method")
    run.entry("loss")
    assert getattr(METHODS[run.method.name], "open_vocabulary", False)
    assert run.calibrator.name == "platt"


def test_far_from_photographs_knowledge_weighs_less(small):
    weights = [
        run_of_fitted_row(domain, {}, small, 0).method.settings.get("knowledge_weight", 0.05)
        for domain in ("photo", "sketch", "night")
    ]
    assert weights == [0.05, 0.01, 0.01]
    plain = EACH[plans.MATCHING]["optimal transport"]
    assert run_of_fitted_row("night", plain, small, 0).method.settings["knowledge_weight"] == 0.0


def test_the_reference_is_the_method_as_it_comes(small):
    run = run_of_fitted_row("photo", {}, small, 0)
    assert run == replace(
        Run(method=Choice("recover_match"), calibrator=Choice("platt")), epochs=small.epochs
    )


def test_prompts_in_all_layers_stand_in_every_layer_of_both_towers(small):
    run = run_of_fitted_row("photo", COSTS[plans.ALL_LAYER_PROMPTS], small, 0)
    method = Recognizer(run, ["lion", "fox"]).method
    assert sorted(p.shape[:2] for p in method.parameters() if p.dim() == 3) == [(2, 4), (6, 4)]


def test_published_rows_are_rows_of_ours():
    for heading, rows in PUBLISHED.items():
        assert set(rows) <= set(EACH[heading])


def test_the_forecast_counts_each_run_once(small, fewer):
    runs = runs_of_all_fitted_rows("photo", small)
    assert len(runs) == 2 + 1 + 2 + 2  # reference, zero-shot, adapter, average
    assert fitted_rows_workload("photo", small).startswith(
        "The comparison measures 7 recognizers. For 4 of these recognizers, recover and match is "
        "trained on at most 12 images."
    )


def test_training_images_with_an_unseen_label_are_removed_and_counted(small):
    images = load_open_vocabulary_scene_splits(replace(small, train=6), quick=True)
    assert (len(images.vocabulary.seen), len(images.vocabulary.unseen)) == (48, 17)
    assert len(images.train) == 6
    assert 0 < images.removed <= small.train_candidates - 6
    assert tuple(images.train.names) == images.vocabulary.seen


def test_costs_are_shares_of_prompts_everywhere(archive, found, small):
    measured = measure_run_cost(
        run_of_fitted_row("photo", {}, small, 0), archive.train.take(range(4))
    )
    assert measured["train_images_per_second"] > 0
    assert measured["predict_images_per_second"] > 0
    assert measured["parameters"] > 100_000
    rows = [
        {"title": title, **measured, "train_memory_mib": memory}
        for title, memory in (("with ladder and matching", 30.0), (plans.ALL_LAYER_PROMPTS, 100.0))
    ]
    page = markdown_section(open_vocabulary_paragraphs(replace(found, costs=rows)))
    assert (
        "Training with ladder and matching uses 30 MiB of memory, which is 30 % of the memory"
        in page
    )
    assert "The goal of at most 60 % is reached" in page


def test_images_of_a_dataset_keep_their_encoder_and_lose_unseen_classes(archive, small):
    names = list(archive.vocabulary.names)
    train = collection("scenes-80", split="train").take(range(24))
    columns = [train.names.index(name) for name in names]
    images = EncoderImageSplits(
        name="few",
        encoder="tiny-vit",
        train=LabelledImages(train.paths, names, train.targets[:, columns]),
        validation=archive.validation,
        test=archive.test,
    )
    splits = open_vocabulary_splits_of_images(images, archive.vocabulary)
    assert splits.train.names == list(archive.vocabulary.seen)
    assert len(splits.train) + splits.removed == len(images.train)
    plan = open_vocabulary_plan_of_images(small, replace(splits, encoder_name="ViT-B-32"))
    assert (plan.train, plan.validation, plan.test) == (len(splits.train), 12, 12)
    assert run_of_fitted_row("photo", {}, plan, 0).encoder == Choice("ViT-B-32")
    assert plan.epochs == small.epochs
