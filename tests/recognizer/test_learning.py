"""Recognizers that learn from pictures without labels, with pictures and names as they come."""

import shutil

import numpy as np
import pytest
from PIL import Image

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.errors import ConfigError, DataError, InputError, NotFitted
from surelabel.methods import METHODS
from surelabel.recognizer import Recognizer, evaluate
from surelabel.recognizer.notes import note_few_steps
from surelabel.records import Images, LabelledFeatures
from surelabel.tables import settings

pytestmark = [  # to be quick, pictures are few
    pytest.mark.filterwarnings("ignore:tailor makes only"),
    pytest.mark.filterwarnings("ignore:These [0-9]+ pictures are alike"),
    pytest.mark.filterwarnings("ignore:[0-9]+ of [0-9]+ names come first at no patch"),
]
NAMES = ["lion", "guitar", "car", "airplane"]
SMALL = ["method.side=60", "method.width=32", "method.layers=1", "teacher.name=zero_shot"]
SMALL += ["epochs=1"]
WITHOUT = [name for name, entry in METHODS.items() if entry.learns_from != "labels"]
AMONG_OTHERS = [  # they hold names against each other
    name
    for name in WITHOUT
    if not METHODS[name].open_vocabulary or settings(METHODS[name])["domain"] != "reference"
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


def ready(method, pictures, *more, names=NAMES):
    recognizer = made(method, *more, names=names)
    return recognizer if recognizer.fitted else recognizer.fit(pictures)


@pytest.fixture(scope="module")
def tailored(train):
    return made("tailor").fit(Images(train.paths))


@without_labels
def test_what_is_saved_predicts_the_same(method, train, tmp_path):
    recognizer = ready(method, train.paths)
    recognizer.save(tmp_path / "saved")
    again = Recognizer.load(tmp_path / "saved")
    assert again.fingerprint == recognizer.fingerprint
    first, second = (r.predict(train.paths).scores for r in (recognizer, again))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", [n for n in WITHOUT if n != "crops"])  # drawn by a file's bytes
def test_files_and_pictures_in_memory_have_the_same_scores(method, train):
    recognizer = ready(method, train.paths)
    opened = [Image.open(path) for path in train.paths[:3]]
    there = recognizer.predict_pictures(opened).scores
    np.testing.assert_allclose(recognizer.predict(train.paths[:3]).scores, there, atol=0.05)


@without_labels
def test_every_method_is_evaluated_and_shows_where(method, train):
    recognizer = ready(method, train.paths)
    found = evaluate(recognizer, train)
    assert np.isfinite(found.predictions.scores).all()
    assert found.worst[0].where[found.worst[0].tags[0].name].ndim == 2


@pytest.mark.parametrize("method", [n for n in WITHOUT if not METHODS[n].open_vocabulary])
def test_names_that_were_learnt_are_kept_for_good(method, train):
    with pytest.raises(ConfigError, match=f"{method} knows only the names it was fitted on"):
        ready(method, train.paths).with_names(["bear"])


@pytest.mark.parametrize("method", [n for n in WITHOUT if METHODS[n].open_vocabulary])
def test_other_names_are_taken_as_if_they_had_been_the_first(method, train):
    names = [*NAMES, "bear"]
    later, first = made(method).with_names(names), made(method, names=names)
    assert later.fingerprint == first.fingerprint
    old, new = later.predict(train.paths[:3]), first.predict(train.paths[:3])
    np.testing.assert_array_equal(old.scores, new.scores)


@from_images
def test_labels_are_not_looked_at_and_that_is_said_once(method, train):
    with pytest.warns(UserWarning, match="labels of these 12 are not looked at") as said:
        labelled = made(method).fit(train)
    assert len([w for w in said if "labels" in str(w.message)]) == 1
    assert labelled.fingerprint == made(method).fit(Images(train.paths)).fingerprint


@from_images
@pytest.mark.parametrize(
    ("choices", "folds", "says"),
    [
        (["loss.name=two_way"], 0, "two_way"),
        (["loss.name=spa"], 0, "spa"),
        (["regularizer.name=label_pair"], 0, "label_pair goes by them"),
        ([], 3, "folds have nothing to calibrate on"),
    ],
)
def test_what_needs_labels_is_refused_before_a_picture_is_read(method, choices, folds, says):
    with pytest.raises(ConfigError, match=says):
        made(method, *choices).fit(["gone.jpg"], folds=folds)


@from_images
def test_one_that_has_seen_no_pictures_says_so(method, train):
    with pytest.raises(NotFitted, match=rf"{method} learns from images .* call fit\(pictures\)"):
        made(method).predict(train.paths)


def test_a_method_of_labels_is_not_fitted_without_any():
    with pytest.raises(InputError, match="clip_adapter learns from labels, and these 1 pictures"):
        made("clip_adapter").fit(["gone.jpg"])


def test_ready_made_vectors_have_no_tokens_to_learn_from():
    vectors = np.eye(3, 128, dtype=np.float32)
    with pytest.raises(ConfigError, match="ready-made vectors have none"):
        made("tailor").fit(vectors)
    with pytest.raises(ConfigError, match="ready-made vectors have none"):
        made("tailor").fit(LabelledFeatures(vectors, NAMES[:1], np.eye(3, 1)))


def test_the_loss_alone_makes_no_probabilities_of_labels_of_its_own(tailored, train):
    found = tailored.predict(train.paths)
    assert found.calibration is None
    with pytest.raises(NotFitted, match="nothing calibrated"):
        _ = found.probabilities
    again = made("tailor").fit(Images(train.paths)).calibrate(train)
    assert again.predict(train.paths).probabilities.shape == (12, 4)


def test_pictures_alone_calibrate_and_what_was_saved_still_says_so(train, tmp_path):
    recognizer = made("tiles", "method.down=2", "method.across=2").calibrate(Images(train.paths))
    about = "beta without labels: from what parts of 12 pictures show"
    assert recognizer.calibrated_on == about
    recognizer.save(tmp_path / "saved")
    again = Recognizer.load(tmp_path / "saved")
    assert again.calibrated_on == about
    first, second = (r.predict(train.paths).probabilities for r in (recognizer, again))
    np.testing.assert_array_equal(first, second)


def test_a_few_steps_are_told_and_many_are_not(train, recwarn):
    with pytest.warns(UserWarning, match="makes only 1 steps of learning with 2 pictures, .* teac"):
        made("tailor").fit(train.paths[:2])
    recwarn.clear()
    note_few_steps(load_run(overrides=["method.name=tailor"]), 480)
    assert not recwarn.list


def test_the_same_pictures_teach_the_same_and_others_something_else(tailored, train):
    assert made("tailor").fit(list(train.paths)).fingerprint == tailored.fingerprint
    assert made("tailor").fit(list(train.paths)[:6]).fingerprint != tailored.fingerprint


def test_a_saved_run_names_its_teacher_with_its_settings(train, tmp_path):
    made("tailor", "teacher.background=usual").fit(train.paths).save(tmp_path / "saved")
    run = Recognizer.load(tmp_path / "saved").run
    assert (run.teacher.name, run.teacher.settings) == ("zero_shot", {"background": "usual"})
    assert "tailored of zero_shot" in (tmp_path / "saved" / "README.md").read_text()


# Pictures and names as they come


def test_a_folder_is_its_pictures_and_an_empty_one_is_told(tailored, train, tmp_path):
    for path in train.paths:
        shutil.copy(path, tmp_path)
    assert made("tailor").fit(tmp_path).fingerprint == tailored.fingerprint
    assert len(tailored.predict(str(tmp_path))) == 12
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"found 0 of 0 files in .*empty"):
        made("tailor").fit(tmp_path / "empty")


@from_images
def test_an_unreadable_picture_among_good_ones_is_left_out_with_a_word(method, train, tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"1 of 13 pictures cannot .*broken\.jpg: empty file"):
        mixed = made(method).fit([*train.paths, str(tmp_path / "broken.jpg")])
    assert mixed.fingerprint == made(method).fit(list(train.paths)).fingerprint


@without_labels
@pytest.mark.filterwarnings("ignore:These . pictures look like nothing")
def test_identical_and_tiny_pictures_have_finite_scores_and_the_identical_the_same(
    method, tmp_path
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
@pytest.mark.filterwarnings("ignore:These [0-9]+ pictures look like nothing")
def test_a_picture_of_few_pixels_scores_alike_in_any_company(method, train, tmp_path):
    Image.effect_noise((2, 5), 99).save(tmp_path / "tiny.png")
    tiny = str(tmp_path / "tiny.png")
    within = ["method.fusion=mean_of_centred"] if method == "tiles" else []
    recognizer = ready(method, train.paths, *within)
    alone, among = recognizer.predict([tiny]), recognizer.predict([tiny, *train.paths[:2]])
    np.testing.assert_allclose(among.scores[0], alone.scores[0], atol=1e-4)
    assert among.work.passes == 3 * alone.work.passes


@without_labels
def test_no_pictures_at_all_are_told(method, train):
    recognizer = ready(method, train.paths)
    for act in (recognizer.predict, recognizer.calibrate):
        with pytest.raises(InputError, match="There are no pictures to encode"):
            act([])


@without_labels
def test_names_that_hold_each_other_are_names_of_their_own(method, train):
    names = ["car", "carrot", "dog", "hot dog"]
    scores = ready(method, train.paths, names=names).predict(train.paths).scores
    assert len(np.unique(scores, axis=1).T) == 4


@without_labels
@pytest.mark.filterwarnings("ignore:tiny-vit has never met")
def test_a_thousand_names(method, train):
    names = [f"thing number {i}" for i in range(1000)]
    found = ready(method, train.paths[:2], names=names).predict(train.paths[:2])
    assert found.scores.shape == (2, 1000)
    assert np.isfinite(found.scores).all()


@without_labels
def test_one_name_has_a_score_or_is_refused_in_a_sentence(method, train):
    if method in AMONG_OTHERS:
        with pytest.raises(ConfigError, match=r"needs 3 (names )?or more\. Got 1"):
            ready(method, train.paths, names=NAMES[:1])
        return
    scores = ready(method, train.paths, names=NAMES[:1]).predict(train.paths).scores
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", [n for n in WITHOUT if n != "tailor"])
def test_scores_within_a_list_ask_for_three_names(method):
    with pytest.raises(ConfigError, match=r"needs 3 or more\. Got 2"):
        made(method, "method.domain=centred", names=NAMES[:2])
