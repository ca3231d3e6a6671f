import math
import os
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from torch import nn

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.losses import LOSSES, SET_LOSSES
from surelabel.methods import METHODS, Linear, TrainingRecipe
from surelabel.recognizer import Recognizer
from surelabel.recognizer.fitting import (
    FittingData,
    fit_recognizer_method,
    fitting_out_of_fold_scores,
)
from surelabel.records import Features, LabelledFeatures, LabelledImages
from surelabel.regularizers import REGULARIZERS
from surelabel.training import Checkpoint

NAMES = ["lion", "guitar", "car"]
WIDTH = 16
PLATT = "calibrator.name=platt"  # the default selects a calibrator in each fold, which is slow


def rows(n=60, width=WIDTH, seed=0, **changed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, width)).astype(np.float32)
    noise = rng.normal(size=(n, 3))
    given = {"features": features, "targets": (features[:, :3] + noise > 1).astype(float)}
    return LabelledFeatures(names=NAMES, **(given | changed))


def unfitted(*settings, encoder=f"features:{WIDTH}", method="linear"):
    given = [f"encoder.name={encoder}", f"method.name={method}", "epochs=3", *settings]
    return Recognizer(load_run(overrides=given), NAMES)


def examples(source):
    known, targets = torch.from_numpy(source.known), torch.from_numpy(source.targets).float()
    pooled = nn.functional.normalize(torch.from_numpy(source.features), dim=-1)
    return FittingData(list(source.paths), Features(pooled), targets, known)


@pytest.mark.parametrize("regularizer", [None, "label_pair", "mdca"])
@pytest.mark.parametrize("loss", [*LOSSES, *SET_LOSSES])
def test_every_loss_learns_beside_a_regularizer_and_is_calibrated(loss, regularizer):
    more = [f"regularizer.name={regularizer}", PLATT] if regularizer else []
    recognizer = unfitted(f"loss.name={loss}", "epochs=20", *more).fit(rows())
    test = rows(seed=1, n=200)
    scores = recognizer.predict(test).scores
    present, absent = (scores[test.targets == v].mean() for v in (1, 0))
    assert present > absent
    assert (recognizer.predict(test).logits is None) == (loss in SET_LOSSES)
    probabilities = recognizer.calibrate(rows(seed=2, n=200)).predict(test).probabilities
    assert abs(probabilities.mean() - test.targets.mean()) < 0.1


@pytest.mark.parametrize("method", ["linear", "clip_adapter"])
@pytest.mark.parametrize("regularizer", [r for r in REGULARIZERS if r.startswith("class_")])
def test_regularizers_of_names_work_where_the_encoder_knows_words(method, regularizer):
    source = rows(width=128)
    weights = []
    for weight in (0, 10):
        run = (f"regularizer.name={regularizer}", f"regularizer_weight={weight}", "loss.name=spa")
        recognizer = unfitted(*run, encoder="tiny-vit", method=method).fit(source)
        weights.append(next(recognizer.method.parameters()).detach())
    assert weights[1].isfinite().all()
    assert not torch.equal(*weights)


def test_batches_in_parts_make_the_same_step_as_whole_ones():
    made = [
        unfitted("optimizer.name=sgd", "batch_size=12", f"micro_batch_size={k}")
        .fit(rows())
        .method.weight
        for k in (12, 5)
    ]
    torch.testing.assert_close(*made)


def test_the_scores_of_a_image_do_not_depend_on_its_own_labels():
    recognizer, source = unfitted(), rows()
    fold = np.arange(60) % 3
    flipped = rows(targets=np.where(fold[:, None] == 1, 1 - source.targets, source.targets))
    common = (recognizer.run, recognizer.encoder, recognizer.names_with_aliases)
    first, second = (
        fitting_out_of_fold_scores(*common, examples(s), fold=fold) for s in (source, flipped)
    )
    np.testing.assert_array_equal(first[fold == 1], second[fold == 1])
    assert (first[fold != 1] != second[fold != 1]).all()
    others = examples(source).take(np.flatnonzero(fold != 1))
    by_hand = fit_recognizer_method(*common, others)(examples(source).features).detach()[fold == 1]
    np.testing.assert_array_equal(first[fold == 1], by_hand)


@pytest.mark.filterwarnings("ignore:2 of 3 labels .* have no positive image")
@pytest.mark.parametrize("loss", ["binary", "spa", "ranking"])
@pytest.mark.parametrize("method", ["linear", "clip_adapter"])
def test_folds_may_lack_the_only_positive_image(method, loss):
    targets = np.zeros((24, 3))
    targets[5, 2] = 1
    source = rows(24, width=128, targets=targets)
    choices = (f"loss.name={loss}", "calibrator.name=platt")
    recognizer = unfitted(*choices, encoder="tiny-vit", method=method)
    recognizer.fit(source, folds=2)
    assert recognizer.calibration.record.true_positives[:, 0].tolist() == [0, 0, 1]
    common = (recognizer.run, recognizer.encoder, recognizer.names_with_aliases)
    fold = np.arange(24) % 2
    scores = fitting_out_of_fold_scores(*common, examples(source), fold=fold)
    expected = np.log(1 / (12 * 3 + 1))  # of 36 negatives in the other fold
    if recognizer.link:
        expected = recognizer.link.scores(np.array(expected))
    np.testing.assert_allclose(scores[fold == 1], expected, rtol=1e-5)
    assert np.ptp(scores[fold == 0]) > 0


def test_rows_are_taken_with_their_patches():
    whole = FittingData(
        ["a", "b"],
        Features(torch.eye(2), torch.arange(8.0).view(2, 2, 2), (1, 2)),
        torch.eye(2),
        torch.eye(2) == 1,
    )
    part = whole.take(np.array([1]))
    assert part.paths == ["b"]
    assert part.features.patches.tolist() == [[[4, 5], [6, 7]]]
    assert part.features.grid == (1, 2)


def test_folds_calibrate_and_the_method_that_stays_has_seen_all():
    alone, folded = unfitted().fit(rows()), unfitted().fit(rows(), folds=3)
    np.testing.assert_array_equal(alone.predict(rows()).scores, folded.predict(rows()).scores)
    about = "beta (selected by log loss) on 60 labelled rows (3-fold cross-validation)"
    assert folded.calibrated_on == about
    assert folded.calibration.record.images == 60


NOWHERE = LabelledImages(["no/such.png"] * 9, NAMES, np.eye(3)[[0, 1, 2] * 3])


@pytest.mark.parametrize(
    ("settings", "options", "says"),
    [
        ({}, {"folds": 1}, "folds must be 0 \\(no cross-validation\\) or at least 2; got 1"),
        (
            {"loss": "ranking", "calibrator": "temperature"},
            {"folds": 3},
            "got raw scores of ranking",
        ),
        ({"method": "finetune"}, {"folds": 2}, "each fold would train the encoder again; got 2"),
        ({"method": "finetune", "encoder": "features:16"}, {}, "features:16 cannot be trained"),
        (
            {"regularizer": "class_covariance", "encoder": "features:16"},
            {},
            "needs the text vectors",
        ),
        ({"regularizer": "outlier", "method": "clip_adapter"}, {}, r"learned prompts.*method.name"),
        (
            {"regularizer": "outlier", "method": "coop", "method.class_specific": "true"},
            {},
            "exist only for the labels of the fit; got words that are not labels",
        ),
        (
            {"regularizer": "class_covariance", "batch_size": 1},
            {},
            r"needs 4 or more images .*\(regularizer\.min_images\); got 1\. Increase batch_size",
        ),
        (
            {"regularizer": "class_correlation", "regularizer.min_images": 1, "batch_size": 1},
            {},
            r"needs 2 or more images per forward pass \(regularizer\.min_images\); got 1\.",
        ),
        (
            {"regularizer": "class_second_moment", "batch_size": 12, "micro_batch_size": 3},
            {},
            r"needs 4 or more .* got 3\. Increase batch_size and micro_batch_size",
        ),
        ({"loss": "spa", "loss.zeta_pos": -1}, {}, "zeta_pos"),
        ({"method": "zero_shot"}, {}, "no parameters to fit"),
    ],
)
def test_what_cannot_work_is_told_before_a_image_is_read(settings, options, says):
    given = {"method": "linear"} | settings
    names = [f"{k if '.' in k or '_' in k else f'{k}.name'}={v}" for k, v in given.items()]
    recognizer = Recognizer(load_run(overrides=names), NAMES)
    with pytest.raises((ConfigError, InputError), match=says):
        recognizer.fit(NOWHERE, **options)


def test_fewer_images_than_a_regularizer_compares_are_told():
    recognizer = unfitted("regularizer.name=class_correlation", encoder="tiny-vit")
    with pytest.raises(InputError, match=r"needs 4 or more .*; got 3 training images\. Give more"):
        recognizer.fit(rows(3, width=128))


def test_too_few_images_for_the_folds_are_told_before_fitting():
    passes = []
    with pytest.raises(InputError, match="got 20 folds and 9 such images"):
        unfitted().fit(rows(9), folds=20, progress=lambda *done: passes.append(done))
    assert not passes


def test_vectors_of_another_width_are_refused():
    with pytest.raises(InputError, match=r"16 columns, .* got 7"):
        unfitted().fit(rows(width=7))


def test_vectors_cannot_train_a_network():
    with pytest.raises(ConfigError, match="is trained on image files; got precomputed features"):
        unfitted(method="finetune", encoder="tiny-vit").fit(rows(width=128))


def test_vectors_have_no_places():
    recognizer = unfitted(encoder="tiny-vit").fit(rows(width=128))
    with pytest.raises(InputError, match="Localization requires images; got precomputed"):
        recognizer.localize(rows(width=128))


class OfPatches(Linear):
    """Looks at patches, as regional methods do."""

    needs = ("patches",)

    def heat_maps(self, features):
        return self(features)[:, :, None, None]


def test_a_method_of_patches_needs_an_encoder_that_gives_them(monkeypatch):
    monkeypatch.setitem(METHODS, "of_patches", OfPatches)
    with pytest.raises(
        ConfigError, match="of_patches requires patch features; features:16 does not"
    ):
        unfitted(method="of_patches")
    assert unfitted(method="of_patches", encoder="tiny-vit").method.needs == ("patches",)


@pytest.mark.parametrize("setting", ["device", "name"])
def test_an_encoder_has_no_setting_of_this_name(setting):
    from surelabel.config import Choice, Run

    with pytest.raises(ConfigError, match=rf"encoder\.{setting} is not a setting"):
        Run(encoder=Choice("tiny-vit", {setting: "cuda"}))


@pytest.mark.parametrize("setting", ["method.table=3", "loss.table=3", "calibrator.table=x"])
def test_a_setting_called_table_is_refused_as_any_other(setting):
    with pytest.raises(ConfigError, match="has no setting table"):
        load_run(overrides=[setting])
    with pytest.raises(ConfigError, match="has no setting table"):
        Recognizer(load_run(overrides=["encoder.name=timm:test_vit", "encoder.table=1"]), NAMES)


class Stop(Exception):
    pass


def stop_in_fold(number):
    def progress(done, total):
        if (done, total) == (number, 3):
            raise Stop("enough")

    return progress


def stop_after(passes):
    def progress(done, _):
        if done == passes:
            raise Stop("enough")

    return progress


def test_a_stopped_fit_goes_on_and_is_the_same_in_the_end(tmp_path):
    kept = tmp_path / "kept"
    with pytest.raises(Stop, match="enough"):
        unfitted().fit(rows(), checkpoint=kept, progress=stop_after(2))
    assert kept.exists()
    seen = []
    again = unfitted().fit(rows(), checkpoint=kept, progress=lambda *done: seen.append(done))
    assert seen == [(3, 3)]
    assert again.fingerprint == unfitted().fit(rows()).fingerprint


def test_only_saving_deletes_the_checkpoints_and_until_then_a_fit_resumes_at_its_end(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    files = ["kept", "kept.fold-1-of-2", "kept.fold-2-of-2"]
    fitted = unfitted(PLATT).fit(rows(), folds=2, checkpoint="kept")
    assert sorted(os.listdir()) == files
    (tmp_path / "in the way").write_text("mine")
    message = r"in the way.*The fit is stored in the checkpoint .*kept\. .* run the same fit again"
    with pytest.raises(DataError, match=message):
        fitted.save("in the way")
    seen = []
    again = unfitted(PLATT).fit(
        rows(), folds=2, checkpoint="kept", progress=lambda *done: seen.append(done)
    )
    assert seen == [(1, 2), (2, 2)]  # no epoch, and no epoch of a fold
    uninterrupted = unfitted(PLATT).fit(rows(), folds=2)
    assert again.fingerprint == fitted.fingerprint == uninterrupted.fingerprint
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    again.save(tmp_path / "saved")
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "in the way", "saved"]
    again.save(tmp_path / "saved")  # there is nothing to delete any more


def test_a_fit_that_was_stopped_in_a_fold_resumes_in_that_fold(tmp_path, monkeypatch):
    epochs = []
    save = Checkpoint.save
    monkeypatch.setattr(
        Checkpoint, "save", lambda self, *given: epochs.append(self.path.name) or save(self, *given)
    )
    with pytest.raises(Stop, match="enough"):
        unfitted("epochs=1", PLATT).fit(
            rows(), folds=3, checkpoint=tmp_path / "kept", progress=stop_in_fold(2)
        )
    again = unfitted("epochs=1", PLATT).fit(rows(), folds=3, checkpoint=tmp_path / "kept")
    assert epochs == ["kept", *(f"kept.fold-{k}-of-3" for k in (1, 2, 3))]
    assert again.fingerprint == unfitted("epochs=1", PLATT).fit(rows(), folds=3).fingerprint


def test_the_checkpoint_may_be_in_the_folder_of_the_recognizer(tmp_path):
    unfitted(PLATT).fit(rows(), folds=2, checkpoint=tmp_path / "out" / "kept").save(
        tmp_path / "out"
    )
    assert Recognizer.load(tmp_path / "out").names == NAMES
    assert not (tmp_path / "out" / "kept").exists()


def test_a_method_that_is_not_trained_leaves_the_file_alone(tmp_path):
    (tmp_path / "mine").write_text("precious")
    recognizer = unfitted(method="standardized", encoder="tiny-vit")
    images = collection("scenes-80", split="test").take(range(4))
    recognizer.fit(images.paths, checkpoint=tmp_path / "mine").save(tmp_path / "saved")
    assert (tmp_path / "mine").read_text() == "precious"


def unfitted_with_outliers(*settings):
    given = ["regularizer.name=outlier", "regularizer.nearest=9", "regularizer.sampled=4"]
    return unfitted(*given, "batch_size=30", *settings, encoder="tiny-vit", method="coop")


def test_sampled_words_are_the_same_after_a_stop_and_for_the_same_seed(tmp_path):
    source, kept = rows(width=128), tmp_path / "kept"
    with pytest.raises(Stop, match="enough"):
        unfitted_with_outliers().fit(source, checkpoint=kept, progress=stop_after(2))
    torch.rand(3)  # the state of the global generator has no influence
    again = unfitted_with_outliers().fit(source, checkpoint=kept)
    expected = unfitted_with_outliers().fit(source).fingerprint
    assert again.fingerprint == expected
    other = unfitted_with_outliers("regularizer.sampled=3").fit(source)
    assert other.fingerprint != expected


def test_a_file_of_words_becomes_part_of_the_run(tmp_path):
    source, file = rows(width=128), tmp_path / "words.txt"
    file.write_text("crab\n\n tree \nlion\ncrab\n")
    recognizer = unfitted_with_outliers(f"regularizer.words={file}")
    state = torch.random.get_rng_state()
    fitted = recognizer.fit(source)
    assert torch.equal(torch.random.get_rng_state(), state)  # although words are sampled
    assert fitted.run.regularizer.settings["words"] == ["crab", "tree", "lion"]
    fitted.save(tmp_path / "saved")
    file.unlink()
    assert Recognizer.load(tmp_path / "saved").run == fitted.run
    listed = unfitted_with_outliers('regularizer.words=["crab", "tree"]').fit(source)
    assert torch.equal(listed.method.context.vectors, fitted.method.context.vectors)


@pytest.mark.parametrize("other", ["learning_rate=0.1", "seed=1", "loss.name=spa"])
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other):
    with pytest.raises(Stop, match="enough"):
        unfitted().fit(rows(), checkpoint=tmp_path / "kept", progress=stop_after(1))
    with pytest.raises(DataError, match=r"got the checkpoint of another run .* Delete .*kept"):
        unfitted(other).fit(rows(), checkpoint=tmp_path / "kept")
    with pytest.raises(DataError, match="got the checkpoint of another run"):
        unfitted().fit(rows(seed=1), checkpoint=tmp_path / "kept")


def weights_of(recognizer):
    return torch.cat([p.detach().flatten() for p in recognizer.method.parameters()])


@pytest.mark.parametrize("setting", ["warm_up=0.5", "ema_decay=0.9", "weight_decay=90"])
def test_warm_up_averaging_and_weight_decay_of_a_run_reach_the_loop(setting):
    plain, changed = unfitted().fit(rows()), unfitted(setting).fit(rows())
    assert torch.equal(weights_of(plain), weights_of(unfitted("ema_decay=0").fit(rows())))
    assert not torch.allclose(weights_of(plain), weights_of(changed), atol=1e-4)


def test_a_stopped_fit_with_warm_up_and_averaging_goes_on(tmp_path):
    settings = ["warm_up=0.3", "ema_decay=0.9", "loss.name=multi_matching"]
    whole = unfitted(*settings).fit(rows())
    with pytest.raises(Stop, match="enough"):
        unfitted(*settings).fit(rows(), checkpoint=tmp_path / "kept", progress=stop_after(2))
    resumed = unfitted(*settings).fit(rows(), checkpoint=tmp_path / "kept")
    assert torch.equal(weights_of(resumed), weights_of(whole))


def test_a_recipe_fills_what_the_run_leaves_out():
    run = load_run(overrides=["method.name=finetune", "epochs=2"])
    recipe = METHODS["finetune"].recipe
    assert (run.epochs, run.batch_size, run.optimizer.name) == (
        2,
        recipe.batch_size,
        recipe.optimizer,
    )
    assert load_run().learning_rate == TrainingRecipe().learning_rate
    assert math.isclose(run.weight_decay, recipe.weight_decay)


def test_the_encoder_is_not_touched_by_a_head():
    encoder = load_encoder("tiny-vit")
    mark = encoder.fingerprint
    run = load_run(overrides=["method.name=linear", "epochs=2"])
    recognizer = Recognizer(run, NAMES, encoder=encoder).fit(rows(width=128))
    assert recognizer.encoder.fingerprint == mark


AT_ONCE = ["extra_trees", "gradient_boosting"]
at_once = pytest.mark.parametrize("method", AT_ONCE)


def unfitted_trees(method, *settings):
    return unfitted("method.n_trees=8", *settings, method=method)


@at_once
def test_a_finished_fit_at_once_is_loaded_from_its_checkpoint(method, tmp_path, monkeypatch):
    known = np.random.default_rng(1).random((60, 3)) < 0.8
    source, kept = rows(known=known), tmp_path / "kept"
    fitted = unfitted_trees(method, PLATT).fit(source, folds=2, checkpoint=kept)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["kept", "kept.fold-1-of-2", "kept.fold-2-of-2"]
    (tmp_path / "kept.fold-2-of-2").unlink()
    fits, fit = [], METHODS[method].fit_targets
    monkeypatch.setattr(
        METHODS[method], "fit_targets", lambda self, *given: fits.append(given) or fit(self, *given)
    )
    again = unfitted_trees(method, PLATT).fit(source, folds=2, checkpoint=kept)
    assert len(fits) == 1
    assert again.fingerprint == fitted.fingerprint
    again.save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


@at_once
def test_trees_are_saved_copied_and_pickled_without_a_change(method, tmp_path):
    fitted = unfitted_trees(method).fit(rows())
    fitted.save(tmp_path / "saved")
    expected = fitted.predict(rows(seed=1)).probabilities
    loaded = Recognizer.load(tmp_path / "saved")
    assert loaded.fingerprint == fitted.fingerprint
    for other in (loaded, pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(rows())):
        assert np.array_equal(other.predict(rows(seed=1)).probabilities, expected)


@at_once
def test_damaged_trees_are_refused_with_the_folder(method, tmp_path):
    unfitted_trees(method).fit(rows()).save(tmp_path / "saved")
    file = tmp_path / "saved" / "weights.safetensors"
    weights = load_file(file)
    weights["trees.left"][0] = 10**6
    save_file(weights, file)
    damage = (
        r"saved do not match run\.toml: .*The decision trees are damaged: each child must be in "
        r"the tree of its parent and have a larger node number\. Copy"
    )
    with pytest.raises(DataError, match=damage):
        Recognizer.load(tmp_path / "saved")


@at_once
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("loss.name=focal", "not trained with a loss; got loss.name=focal"),
        ("regularizer.name=mdca", "not trained with a regularizer; got regularizer.name=mdca"),
    ],
)
def test_settings_of_training_are_refused_by_a_fit_at_once(method, setting, message):
    with pytest.raises(ConfigError, match=f"{method} is {message}"):
        unfitted_trees(method, setting).fit(rows())
