from dataclasses import replace

import numpy as np
import pytest
import torch
from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel.config import Choice, Run, load_run
from surelabel.data import collection, label_captions
from surelabel.encoders import OpenClipEncoder
from surelabel.errors import ConfigError, InputError, NotFitted
from surelabel.features import FeatureCache
from surelabel.recognizer import Recognizer, evaluate
from surelabel.records import Captions, EncodingStats, Images, LabelledImages

NAMES = ["lion", "guitar", "car", "airplane"]
PLATT = {"calibrator.name": "platt"}  # the default selects a calibrator in each fold: slow


@pytest.fixture(scope="module")
def test():
    return collection("scenes-80", split="test").take(range(40))


@pytest.fixture(scope="module")
def train():
    return collection("scenes-80", split="train").take(range(120))


@pytest.fixture(scope="module")
def zero_shot():
    return Recognizer.zero_shot("tiny-vit", NAMES)


def fitted(train, method="linear", **settings):
    sets = [f"{k}={v}" for k, v in settings.items()]
    return Recognizer(load_run(overrides=[f"method.name={method}", "epochs=5", *sets]), NAMES).fit(
        train
    )


def test_zero_shot_gives_probabilities_at_once(zero_shot, test):
    found = zero_shot.predict(test)
    assert found.probabilities.shape == (40, 4)
    assert "generated scenes" in found.calibration


def test_a_name_alone_has_the_same_probability_as_among_others(zero_shot, test):
    alone = Recognizer.zero_shot("tiny-vit", NAMES[:1]).predict(test).probabilities
    np.testing.assert_allclose(alone[:, 0], zero_shot.predict(test).probabilities[:, 0], atol=1e-5)


def test_present_labels_are_likelier_than_absent_ones(zero_shot, test):
    wanted = zero_shot.align_labels(test)
    probabilities = zero_shot.predict(test).probabilities
    there, not_there = (probabilities[wanted.targets == v].mean() for v in (1, 0))
    assert there > 2 * not_there


def test_zero_shot_cannot_be_fitted(zero_shot, train):
    with pytest.raises(ConfigError, match="no parameters to fit"):
        zero_shot.fit(train)


def test_other_prompts_have_no_shipped_calibration(test):
    recognizer = Recognizer.zero_shot("tiny-vit", NAMES, templates="a drawing of {}")
    with pytest.raises(NotFitted, match="are uncalibrated"):
        _ = recognizer.predict(test).probabilities


@pytest.mark.parametrize("loss", ["binary", "asymmetric"])
def test_fitting_helps_and_calibrating_replaces_what_made_the_probabilities(train, test, loss):
    recognizer = fitted(train, **{"loss.name": loss, "epochs": 30})
    before = recognizer.predict(train)
    truth = recognizer.align_labels(train).targets
    present, absent = (before.scores[truth == v].mean() for v in (1, 0))
    assert present > absent + 0.5
    assert before.calibration == f"by its loss alone ({loss})"
    after = recognizer.calibrate(test).predict(train)
    assert after.calibration == "beta (selected by log loss) on 40 labelled images"
    assert not np.allclose(before.logits, after.logits)
    np.testing.assert_array_equal(before.scores, after.scores)


def test_labels_in_another_order_and_unknown_ones_are_aligned(train):
    turned = LabelledImages(train.paths, train.names[::-1], train.targets[:, ::-1])
    first, second = (fitted(source).predict(train) for source in (train, turned))
    np.testing.assert_array_equal(first.scores, second.scores)


def test_fitting_twice_from_the_same_seed_is_the_same(train):
    first, second = (fitted(train, method="clip_adapter").predict(train) for _ in range(2))
    np.testing.assert_array_equal(first.logits, second.logits)


def test_labels_of_other_things_are_refused(train):
    others = LabelledImages(train.paths, ["spam"], np.zeros((len(train), 1)))
    with (
        pytest.warns(UserWarning, match="4 of 4 labels .* no known target"),
        pytest.raises(InputError, match="needs at least one known target"),
    ):
        fitted(others)


def test_a_calibrator_setting_out_of_range_is_refused_before_the_fit(train):
    run = load_run(overrides=["method.name=linear", "calibrator.name=vector"])
    bad = replace(run, calibrator=Choice("vector", {"shrinkage": -1}))
    with pytest.raises(ConfigError, match="shrinkage"):
        Recognizer(bad, NAMES).fit(train, progress=lambda *_: pytest.fail("the fit started"))


def test_untrained_tokens_and_out_of_distribution_images_give_one_warning_each(tmp_path):
    with pytest.warns(UserWarning, match=r"1 of 2 labels \(xylophone\) contain tokens"):
        recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "xylophone"])
    rng = np.random.default_rng(0)
    for i in range(8):
        noise = rng.integers(0, 256, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{i}.png")
    with pytest.warns(UserWarning, match="8 images are out of distribution"):
        recognizer.predict(sorted(str(p) for p in tmp_path.iterdir()))


def test_places_show_every_label_on_the_grid(zero_shot, test):
    paths, maps = zero_shot.localize(test.paths[:3])
    assert paths == list(test.paths[:3])
    assert maps.shape == (3, 4, 8, 8)


def test_the_evaluation_shows_where_its_examples_have_their_labels(zero_shot, test):
    found = evaluate(zero_shot, test)
    for example in (*found.worst_examples, *found.best_examples):
        assert list(example.heat_maps) == [tag.name for tag in example.labels]


@pytest.mark.parametrize(
    ("vision", "grid"),
    [
        ({"timm_model_name": "test_convnext", "timm_pool": "", "image_size": 64}, (2, 2)),
        ({"patch_size": 16, "width": 32, "head_width": 8, "layers": 2}, (2, 2)),
        ({"patch_size": 16, "width": 64, "layers": 1, "attentional_pool": True}, (2, 2)),
    ],
)
def test_every_tower_is_evaluated_and_shows_what_patches_it_has(vision, grid, test):
    recognizer = Recognizer(Run(method=Choice("zero_shot")), NAMES, encoder=untrained(**vision))
    found = evaluate(recognizer, test)
    shown = {
        example.heat_maps[example.labels[0].name].shape
        for example in found.worst_examples
        if example.heat_maps
    }
    assert shown == {grid}
    assert {example.regions.crop_mode for example in found.worst_examples if example.heat_maps} <= {
        "border"
    }


def untrained(**vision):
    """Towers of any kind, whose images are padded."""
    torch.manual_seed(0)
    text = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    vision = {"image_size": 32, **vision}
    config = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}
    half = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic"}
    return OpenClipEncoder(
        CLIP(**config),
        SimpleTokenizer(context_length=16),
        name="untrained",
        config=config,
        preprocess_cfg={**half, "resize_mode": "longest", "size": vision["image_size"]},
    )


def test_the_fingerprint_follows_whatever_changes_a_prediction(train, test):
    recognizer = fitted(train, **PLATT)
    marks = [recognizer.fingerprint, fitted(train, **PLATT, epochs=6).fingerprint]
    marks.append(recognizer.calibrate(test).fingerprint)
    assert len(set(marks)) == 3


def test_an_unfitted_head_says_so_instead_of_guessing(test):
    unfitted = Recognizer(load_run(overrides=["method.name=linear"]), NAMES)
    with pytest.raises(NotFitted, match="is not fitted yet"):
        unfitted.predict(test)


def test_fitting_again_starts_anew(train, test):
    once, twice = fitted(train), fitted(train).fit(train)
    np.testing.assert_array_equal(once.predict(test).scores, twice.predict(test).scores)


def test_fitting_again_drops_the_calibration_of_the_earlier_fit(train, test):
    recognizer, fresh = fitted(train, **PLATT).calibrate(test), fitted(train, **PLATT)
    assert recognizer.calibration is not None
    recognizer.fit(train)
    assert recognizer.calibration is None
    assert recognizer.calibrated_on == "by its loss alone (binary)"
    assert recognizer.fingerprint == fresh.fingerprint
    np.testing.assert_array_equal(recognizer.predict(test).logits, fresh.predict(test).logits)


def test_fitting_again_without_folds_drops_the_calibration_of_the_folds(train):
    run = load_run(overrides=["method.name=linear", "epochs=1", "calibrator.name=platt"])
    recognizer = Recognizer(run, NAMES).fit(train, folds=2)
    assert recognizer.calibrated_on.endswith("(2-fold cross-validation)")
    assert recognizer.fit(train).calibrated_on == "by its loss alone (binary)"


def test_fitting_again_on_images_drops_the_calibration_of_the_earlier_fit(train):
    run = load_run(overrides=["method.name=standardized", "calibrator.name=platt"])
    images = Images(train.paths[:12])
    recognizer, fresh = (Recognizer(run, NAMES).fit(images) for _ in range(2))
    recognizer.calibrate(train)
    assert recognizer.calibration is not None
    assert recognizer.predict(train).calibration is not None
    recognizer.fit(images)
    assert recognizer.calibration is None
    assert recognizer.predict(train).calibration is None
    assert recognizer.fingerprint == fresh.fingerprint


def test_a_fit_that_was_interrupted_leaves_nothing_of_the_earlier_one(train, test):
    def stop(done, total):
        if total == 5:  # epochs, not images
            raise InterruptedError("enough")

    recognizer = fitted(train, **PLATT).calibrate(test)
    with pytest.raises(InterruptedError, match="enough"):
        recognizer.fit(train, progress=stop)
    assert (recognizer.calibration, recognizer.link, recognizer.calibrated_on) == (None,) * 3
    assert not any(parameter.any() for parameter in recognizer.method.parameters())
    with pytest.raises(NotFitted, match="is not fitted yet"):
        recognizer.predict(test)


def test_stats_of_predictions_are_those_of_the_encoding(tmp_path, test, timed):
    run = load_run(overrides=["method.name=tiles", "method.rows=1", "method.columns=2"])
    recognizer = Recognizer(run, NAMES, cache=FeatureCache(tmp_path))
    recognizer.encoder = timed(recognizer.encoder)
    recognizer.predict(test.take(range(3)))
    stats = recognizer.predict(test.take(range(5))).encoding_stats
    assert stats == EncodingStats(
        n_cached=3, decode_seconds=2 * 3 * 10, model_seconds=2 * 1000, encoder_passes=5 * 3
    )


def test_empty_entries_and_spaces_around_aliases_change_nothing(test):
    first = Recognizer.zero_shot("tiny-vit", ["lion", "car | taxi", ""])
    second = Recognizer.zero_shot("tiny-vit", ["lion", "car|taxi"])
    assert first.fingerprint == second.fingerprint
    assert first.predict(test).names == ["lion", "car"]


def test_an_untrained_alias_is_told():
    with pytest.warns(UserWarning, match=r"1 of 2 labels \(xylophone\) contain tokens"):
        Recognizer.zero_shot("tiny-vit", ["lion|xylophone"])


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("where", "localize"),
        ("linked", "logits_of"),
        ("move_to", "adapt_to_shift"),
        ("predict_pictures", "predict"),
    ],
)
def test_an_attribute_of_0_1_0_names_the_current_one(name, current):
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion"])
    assert hasattr(recognizer, current)
    with pytest.raises(AttributeError, match=f"{name!r}; it is now {current!r}"):
        getattr(recognizer, name)


def test_a_fit_on_texts_is_saved_resumed_and_takes_new_labels(test, tmp_path):
    texts = label_captions(Captions(["a lion and a guitar.", "a lion", "a car"]), NAMES[:3])
    run = load_run(overrides=["method.name=tai_plus", "epochs=1", "regularizer.name=knowledge"])
    made = [Recognizer(run, NAMES[:3]).fit(texts, checkpoint=tmp_path / "fit") for _ in range(2)]
    made[0].save(tmp_path / "saved")
    made.append(Recognizer.load(tmp_path / "saved"))
    first, *others = (recognizer.predict(test.take(range(4))) for recognizer in made)
    assert first.calibration == "by its loss alone (binary on texts)"
    assert np.isfinite(first.logits).all()
    for other in others:
        assert np.array_equal(first.logits, other.logits)
    extended = made[0].with_names([NAMES[3], *NAMES[:3]])
    extended.save(tmp_path / "extended")
    again = Recognizer.load(tmp_path / "extended")
    scores, same = (r.predict(test.take(range(4))).scores for r in (extended, again))
    assert np.array_equal(scores, same)
    np.testing.assert_allclose(scores[:, 1:], first.scores, atol=1e-4)
