"""Recognizers that learn from images without labels, with images and names as they come."""

import copy
import shutil
from functools import cache as cached

import numpy as np
import pytest
import torch
from PIL import Image

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.features import FeatureCache
from surelabel.methods import METHODS
from surelabel.pseudolabels import tailored as tailored_rule
from surelabel.recognizer import Recognizer, evaluate
from surelabel.recognizer.unlabelled_fitting import (
    fit_unlabelled_student,
    make_pseudolabels_for_unlabelled_fitting,
)
from surelabel.recognizer.user_warnings import warn_few_steps
from surelabel.records import Images, LabelledFeatures
from surelabel.tables import table_entry_settings

pytestmark = [  # to be quick, images are few
    pytest.mark.filterwarnings("ignore:tailor makes only"),
    pytest.mark.filterwarnings("ignore:The [0-9]+ images have equal scores"),
    pytest.mark.filterwarnings("ignore:[0-9,]+ of [0-9,]+ labels have no selected patch"),
]
SCENES = collection("scenes-80", split="train")
FIVE = list(SCENES.names[:5])
STUDENT = [
    "method.name=tailor",
    "method.image_size=24",
    "method.width=16",
    "teacher.name=zero_shot",
]
STUDENT += ["epochs=1"]
NAMES = ["lion", "guitar", "car", "airplane"]
SMALL = ["method.image_size=60", "method.width=32", "method.layers=1", "teacher.name=zero_shot"]
SMALL += ["epochs=1"]
WITHOUT = [n for n, entry in METHODS.items() if entry.learns_from in ("images", "nothing")]
AMONG_OTHERS = [  # they hold names against each other
    name
    for name in WITHOUT
    if not METHODS[name].open_vocabulary
    or table_entry_settings(METHODS[name])["domain"] not in (None, "reference")
]
LEARNING = [name for name in WITHOUT if METHODS[name].learns_from == "images"]
without_labels = pytest.mark.parametrize("method", WITHOUT)
from_images = pytest.mark.parametrize("method", LEARNING)


@pytest.fixture(scope="module")
def train():
    return collection("scenes-80", split="train").take(range(12))


def made(method, *more, names=NAMES):
    small = SMALL if method == "tailor" else []
    return Recognizer(load_run(overrides=[f"method.name={method}", *small, *more]), names)


@pytest.fixture(scope="module")
def ready():
    """Return a function that fits equal recognizers once; tests must not change them."""

    @cached
    def fit_once(method, paths, *more, names):
        recognizer = made(method, *more, names=names)
        return recognizer if recognizer.is_fitted else recognizer.fit(list(paths))

    def call(method, paths, *more, names=NAMES):
        return fit_once(method, tuple(paths), *more, names=tuple(names))

    return call


@pytest.fixture(scope="module")
def tailored(train):
    return made("tailor").fit(Images(train.paths))


@without_labels
def test_what_is_saved_predicts_the_same(method, train, tmp_path, ready):
    recognizer = ready(method, train.paths)
    recognizer.save(tmp_path / "saved")
    again = Recognizer.load(tmp_path / "saved")
    assert again.fingerprint == recognizer.fingerprint
    first, second = (r.predict(train.paths[:4]).scores for r in (recognizer, again))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", [n for n in WITHOUT if n != "crops"])  # drawn by a file's bytes
def test_files_and_images_in_memory_have_the_same_scores(method, train, ready):
    recognizer = ready(method, train.paths)
    opened = [Image.open(path) for path in train.paths[:3]]
    there = recognizer.predict(opened).scores
    np.testing.assert_allclose(recognizer.predict(train.paths[:3]).scores, there, atol=0.05)


@without_labels
def test_every_method_is_evaluated_and_shows_where(method, train, ready):
    recognizer = ready(method, train.paths)
    found = evaluate(recognizer, train.take(range(4)))
    assert np.isfinite(found.predictions.scores).all()
    assert found.worst_examples[0].heat_maps[found.worst_examples[0].labels[0].name].ndim == 2


@pytest.mark.parametrize("method", [n for n in WITHOUT if not METHODS[n].open_vocabulary])
def test_names_that_were_learnt_are_kept_for_good(method, train, ready):
    with pytest.raises(ConfigError, match=f"{method} supports only the labels of the fit"):
        ready(method, train.paths).with_names(["bear"])


@pytest.mark.parametrize("method", [n for n in WITHOUT if METHODS[n].open_vocabulary])
def test_other_names_are_taken_as_if_they_had_been_the_first(method, train):
    names = [*NAMES, "bear"]
    later, first = made(method).with_names(names), made(method, names=names)
    assert later.fingerprint == first.fingerprint
    old, new = later.predict(train.paths[:3]), first.predict(train.paths[:3])
    np.testing.assert_array_equal(old.scores, new.scores)


@from_images
def test_labels_are_not_looked_at_and_that_is_said_once(method, train, ready):
    with pytest.warns(UserWarning, match="labels of 12 images are ignored") as said:
        labelled = made(method).fit(train)
    assert len([w for w in said if "labels" in str(w.message)]) == 1
    assert labelled.fingerprint == ready(method, train.paths).fingerprint


@from_images
@pytest.mark.parametrize(
    ("choices", "folds", "says"),
    [
        (["loss.name=two_way"], 0, "two_way"),
        (["loss.name=spa"], 0, "spa"),
        (["regularizer.name=label_pair"], 0, "label_pair requires labels"),
        ([], 3, "folds requires labels"),
    ],
)
def test_what_needs_labels_is_refused_before_a_image_is_read(method, choices, folds, says):
    with pytest.raises(ConfigError, match=says):
        made(method, *choices).fit(["gone.jpg"], folds=folds)


@from_images
def test_one_that_has_seen_no_images_says_so(method, train):
    with pytest.raises(
        NotFitted, match=rf"{method} must be fitted on images .* Call fit\(images\)"
    ):
        made(method).predict(train.paths)


def test_a_method_of_labels_is_not_fitted_without_any():
    with pytest.raises(InputError, match="clip_adapter requires labels; got 1 image "):
        made("clip_adapter").fit(["gone.jpg"])


def test_ready_made_vectors_have_no_tokens_to_learn_from():
    vectors = np.eye(3, 128, dtype=np.float32)
    with pytest.raises(ConfigError, match="got precomputed features"):
        made("tailor").fit(vectors)
    with pytest.raises(ConfigError, match="got precomputed features"):
        made("tailor").fit(LabelledFeatures(vectors, NAMES[:1], np.eye(3, 1)))


def test_the_loss_alone_makes_no_probabilities_of_pseudolabels(tailored, train):
    found = tailored.predict(train.paths)
    assert found.calibration is None
    with pytest.raises(NotFitted, match="are uncalibrated"):
        _ = found.probabilities
    again = copy.copy(tailored).calibrate(train)
    assert tailored.calibration is None
    assert again.predict(train.paths).probabilities.shape == (12, 4)


def test_images_alone_calibrate_and_what_was_saved_still_says_so(train, tmp_path):
    recognizer = made("tiles", "method.rows=2", "method.columns=2").calibrate(Images(train.paths))
    about = "beta on pseudo-labels of 12 images without labels"
    assert recognizer.calibrated_on == about
    recognizer.save(tmp_path / "saved")
    again = Recognizer.load(tmp_path / "saved")
    assert again.calibrated_on == about
    first, second = (r.predict(train.paths).probabilities for r in (recognizer, again))
    np.testing.assert_array_equal(first, second)


def test_a_few_steps_are_told_and_many_are_not(train, recwarn):
    with pytest.warns(UserWarning, match="makes only 1 optimizer steps with 2 images; .* teac"):
        made("tailor").fit(train.paths[:2])
    recwarn.clear()
    warn_few_steps(load_run(overrides=["method.name=tailor"]), 480)
    assert not recwarn.list


def test_the_same_images_teach_the_same_and_others_something_else(tailored, train):
    assert made("tailor").fit(list(train.paths)).fingerprint == tailored.fingerprint
    assert made("tailor").fit(list(train.paths)[:6]).fingerprint != tailored.fingerprint


def test_a_saved_run_names_its_teacher_with_its_settings(train, tmp_path):
    made("tailor", "teacher.background=usual").fit(train.paths).save(tmp_path / "saved")
    run = Recognizer.load(tmp_path / "saved").run
    assert (run.teacher.name, run.teacher.settings) == ("zero_shot", {"background": "usual"})
    assert "tailored of zero_shot" in (tmp_path / "saved" / "README.md").read_text()


# Images and names as they come


def test_a_folder_is_its_images_and_an_empty_one_is_told(tailored, train, tmp_path):
    for path in train.paths:
        shutil.copy(path, tmp_path)
    assert made("tailor").fit(tmp_path).fingerprint == tailored.fingerprint
    assert len(tailored.predict(str(tmp_path))) == 12
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"got 0 images among 0 files in .*empty"):
        made("tailor").fit(tmp_path / "empty")


@from_images
def test_an_unreadable_image_among_good_ones_is_left_out_with_a_word(
    method, train, tmp_path, ready
):
    (tmp_path / "broken.jpg").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"1 of 13 images cannot .*broken\.jpg: empty file"):
        mixed = made(method).fit([*train.paths, str(tmp_path / "broken.jpg")])
    assert mixed.fingerprint == ready(method, train.paths).fingerprint


@without_labels
@pytest.mark.filterwarnings("ignore:These . images are out of dist")
def test_identical_and_tiny_images_have_finite_scores_and_the_identical_the_same(
    method, tmp_path, ready
):
    for i in range(4):
        Image.new("RGB", (40, 30), "teal").save(tmp_path / f"same-{i}.png")
    Image.new("RGB", (1, 1), "red").save(tmp_path / "tiny.png")
    Image.new("RGB", (3, 200), "red").save(tmp_path / "thin.png")
    paths = sorted(str(p) for p in tmp_path.iterdir())
    scores = ready(method, paths[:4]).predict(paths).scores
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[:4], scores[:1].repeat(4, 0))


@without_labels
@pytest.mark.filterwarnings("ignore:These [0-9]+ images are out of dist")
def test_a_image_of_few_pixels_scores_alike_in_any_company(method, train, tmp_path, ready):
    Image.effect_noise((2, 5), 99).save(tmp_path / "tiny.png")
    tiny = str(tmp_path / "tiny.png")
    within = ["method.fusion=mean_of_centred"] if method == "tiles" else []
    recognizer = ready(method, train.paths, *within)
    alone, among = recognizer.predict([tiny]), recognizer.predict([tiny, *train.paths[:2]])
    np.testing.assert_allclose(among.scores[0], alone.scores[0], atol=1e-4)
    assert among.encoding_stats.encoder_passes == 3 * alone.encoding_stats.encoder_passes


@without_labels
def test_no_images_at_all_are_told(method, train, ready):
    recognizer = ready(method, train.paths)
    for act in (recognizer.predict, recognizer.calibrate):
        with pytest.raises(InputError, match="at least one image file; got none"):
            act([])


@without_labels
def test_names_that_hold_each_other_are_names_of_their_own(method, train, ready):
    names = ["car", "carrot", "dog", "hot dog"]
    scores = ready(method, train.paths[:4], names=names).predict(train.paths[:4]).scores
    assert len(np.unique(scores, axis=1).T) == 4


@without_labels
@pytest.mark.filterwarnings("ignore:1,000 of 1,000 labels")
def test_a_thousand_names(method, train, ready):
    names = [f"thing number {i}" for i in range(1000)]
    found = ready(method, train.paths[:2], names=names).predict(train.paths[:2])
    assert found.scores.shape == (2, 1000)
    assert np.isfinite(found.scores).all()


@without_labels
def test_one_name_has_a_score_or_is_refused_in_a_sentence(method, train, ready):
    if method in AMONG_OTHERS:
        with pytest.raises(ConfigError, match=r"(needs|requires) (at least )?3 .*[gG]ot 1"):
            ready(method, train.paths[:4], names=NAMES[:1])
        return
    scores = ready(method, train.paths[:4], names=NAMES[:1]).predict(train.paths[:4]).scores
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", [n for n in WITHOUT if n != "tailor"])
def test_scores_within_a_list_ask_for_three_names(method):
    with pytest.raises(ConfigError, match=r"needs 3 or more.*[gG]ot 2"):
        made(method, "method.domain=centred", names=NAMES[:2])


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-vit")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return FeatureCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def learn(encoder, cache):
    def call(paths=SCENES.paths[:10], *overrides, names=FIVE, **options):
        run = load_run(overrides=[*STUDENT, *overrides])
        return fit_unlabelled_student(
            run, encoder, names, list(paths), cache=cache, workers=0, **options
        )

    return call


@pytest.fixture(scope="module")
def student(learn):
    """Fit the student of ten images, which tests must not change."""
    return learn()


def test_ten_images_teach_a_student(student, encoder):
    got = student
    assert len(got.initial_labels.paths) == 10
    assert got.initial_labels.targets.shape == got.final_labels.targets.shape == (10, 5)
    seen = encoder.with_image_size(24).encode_trunk_tokens(torch.zeros(2, 3, 24, 24))
    assert not got.method.training
    assert got.method(seen).isfinite().all()


def test_the_same_seed_teaches_the_same(learn, student):
    first, second, other = student, learn(), learn(SCENES.paths[:10], "seed=1")
    for name, value in first.method.state_dict().items():
        assert torch.equal(second.method.state_dict()[name], value)
    assert torch.equal(first.final_labels.targets, second.final_labels.targets)
    assert not torch.equal(first.method.decoder.weight, other.method.decoder.weight)


def test_pseudolabels_are_the_rule_of_the_teachers_softmax(encoder, cache):
    paths, run = list(SCENES.paths[:6]), load_run(overrides=[*STUDENT, "pseudolabels.top_k=2"])
    got = make_pseudolabels_for_unlabelled_fitting(run, encoder, FIVE, paths, cache=cache)
    pixels = [encoder.preprocess(Image.open(path)) for path in paths]
    pooled = encoder.encode_images(torch.stack(pixels)).pooled
    texts = encoder.encode_labels(FIVE, ["a photo of a {}"])
    z = encoder.scale / 2 * pooled @ texts.T
    p = z.softmax(dim=1)
    expected = tailored_rule((p / (1 - p)).log(), top_k=2)
    assert got.paths == paths
    assert torch.allclose(got.targets, expected, atol=0.02)  # the cache holds half precision


def test_labels_move_towards_the_student_unless_they_rest(learn, student):
    moved, resting = student, learn(SCENES.paths[:10], "sewing.label_learning_rate=0")
    assert not torch.allclose(moved.initial_labels.targets, moved.final_labels.targets, atol=1e-4)
    assert torch.allclose(resting.initial_labels.targets, resting.final_labels.targets, atol=1e-5)


def test_images_that_cannot_be_read_are_left_out(learn, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="1 of 4 images cannot be read"):
        got = learn([SCENES.paths[0], str(tmp_path / "broken.jpg"), *SCENES.paths[1:3]])
    assert got.final_labels.paths == [SCENES.paths[0], *SCENES.paths[1:3]]
    with pytest.raises(DataError, match="got 1 unreadable image"):
        learn([str(tmp_path / "broken.jpg")])


def test_images_that_are_all_alike_teach_without_an_accident(learn, tmp_path):
    for i in range(4):
        Image.new("RGB", (30, 20), "grey").save(tmp_path / f"{i}.png")
    got = learn([str(tmp_path / f"{i}.png") for i in range(4)])
    assert torch.equal(got.initial_labels.targets, got.initial_labels.targets[:1].expand(4, -1))
    assert all(value.isfinite().all() for value in got.method.state_dict().values())


def test_one_image_is_enough(learn):
    assert learn(SCENES.paths[:1]).final_labels.targets.shape == (1, 5)


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_names_are_refused_with_the_remedy(learn, count):
    with pytest.raises(ConfigError, match=rf"at least 3 labels; got {count}. Add labels .*=tiles"):
        learn(names=FIVE[:count])


def test_a_teacher_of_another_domain_is_refused(learn):
    with pytest.raises(ConfigError, match=r"teacher\.domain must be softmax"):
        learn(SCENES.paths[:10], "teacher.domain=reference")


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("tiles", "fusion=mean"),
        ("crops", "fusion_parameter=0.5"),
        ("region_statistics", "patch_weight=0.5"),
    ],
)
def test_a_setting_of_the_teacher_that_would_change_nothing_is_refused(learn, name, setting):
    with pytest.raises(ConfigError, match=rf"teacher\.{setting.partition('=')[0]} must not be set"):
        learn(["no/such.png"], f"teacher.name={name}", f"teacher.{setting}")


def test_too_many_places_are_told_before_a_image_is_read(learn):
    with pytest.raises(InputError, match=r"at most 50 rows and columns; got 51 by 51"):
        learn(["no/such.png"], "method.image_size=612")


def test_a_setting_of_sewing_out_of_its_range_is_told_before_a_image_is_read(learn):
    with pytest.raises(ConfigError, match=r"overlay_scale must be .*in \(0, 1\]"):
        learn(["no/such.png"], "sewing.overlay_scale=2.0")


def test_stopped_learning_goes_on_and_is_the_same_in_the_end(learn, tmp_path):
    kept, steps = tmp_path / "kept", []

    def stop(done, total):
        steps.append((done, total))
        if len(steps) == 3:  # encoded, then once a pass
            raise InterruptedError("enough")

    three = (SCENES.paths[:10], "epochs=3")
    with pytest.raises(InterruptedError, match="enough"):
        learn(*three, checkpoint=kept, progress=stop)
    assert kept.exists()
    got, whole = learn(*three, checkpoint=kept), learn(*three)
    assert torch.equal(got.final_labels.targets, whole.final_labels.targets)
    for name, value in whole.method.state_dict().items():
        assert torch.equal(got.method.state_dict()[name], value)
    assert kept.exists()  # until the recognizer is saved


def test_the_checkpoint_of_other_images_is_refused(learn, tmp_path):
    kept, seen = tmp_path / "kept", []

    def stop(done, total):
        seen.append(done)
        if len(seen) == 3:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        learn(SCENES.paths[:10], "epochs=2", checkpoint=kept, progress=stop)
    with pytest.raises(DataError, match="got the checkpoint of another run"):
        learn(SCENES.paths[10:20], "epochs=2", checkpoint=kept)


def test_a_name_that_no_image_shows_stays_low(learn, tmp_path):
    draws = np.random.default_rng(0)
    for i in range(3):
        noise = draws.integers(256, size=(32, 32, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{i}.png")
    got = learn([*SCENES.paths[:6], *(str(tmp_path / f"{i}.png") for i in range(3))])
    assert got.final_labels.targets.isfinite().all()
    assert ((got.final_labels.targets > 0) & (got.final_labels.targets < 1)).all()
