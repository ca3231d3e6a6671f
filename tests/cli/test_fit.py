import json
import re

import numpy as np

from surelabel.recognizer import Recognizer

LINEAR = ["--set", "method.name=linear", "--set", "epochs=3"]


def test_a_fitted_recognizer_is_saved_and_the_next_command_named(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    assert done.code == 0
    assert done.out.startswith("Fitted linear on 24 pictures for 4 labels and saved it in fitted.")
    assert Recognizer.load("fitted").names == ["lion", "coffee", "guitar", "rocket"]


def test_options_and_the_run_file_are_what_is_saved(home, run):
    (home / "run.toml").write_text('seed = 3\nepochs = 2\n[method]\nname = "linear"\n')
    run("fit", "labels.csv", "--out", "first", "--run", "run.toml")
    run("fit", "labels.csv", "--out", "second", "--run", "run.toml", "--seed", "4")
    first, second = Recognizer.load("first").run, Recognizer.load("second").run
    assert (first.seed, first.epochs, first.method.name) == (3, 2, "linear")
    assert second.seed == 4


def test_the_same_seed_gives_the_same_recognizer_and_another_one_another(home, run):
    for out, seed in (("first", 1), ("second", 1), ("third", 2)):
        run("fit", "labels.csv", "--out", out, "--seed", seed, *LINEAR, "--set", "batch=4")
    first, second, third = (Recognizer.load(n).fingerprint for n in ("first", "second", "third"))
    assert first == second
    assert first != third


def test_only_the_names_asked_for_are_learnt(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--labels", "rocket", "--json", *LINEAR)
    assert json.loads(done.out) == {"recognizer": "fitted", "names": ["rocket"], "pictures": 24}


def test_pictures_lie_under_the_root_that_is_given(home, run):
    (home / "elsewhere").mkdir()
    (home / "labels.csv").rename(home / "elsewhere" / "labels.csv")
    line = ["fit", "elsewhere/labels.csv", "--out", "fitted", *LINEAR]
    assert run(*line).code == 1
    assert run(*line, "--pictures", ".").code == 0


def test_all_pictures_that_cannot_be_read_are_named_at_the_end(home, run):
    broken = sorted((home / "pictures").iterdir())[:5]
    for picture in broken:
        picture.write_bytes(b"")
    done = run("fit", "labels.csv", "--out", "fitted", *LINEAR)
    assert done.code == 0
    assert re.search(f"Note: 5 of 24 labelled pictures.*{broken[0].name}: empty file", done.err)
    *_, title, one, two, three, four, five = done.err.splitlines()
    assert title == "Skipped 5 that cannot be read:"
    assert sorted([one, two, three, four, five]) == [
        f"  ./pictures/{picture.name}: empty file" for picture in broken
    ]
    assert done.out.startswith("Fitted linear on 19 pictures")


def test_a_method_that_learns_nothing_is_refused(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--set", "method.name=zero_shot")
    assert done.code == 1
    assert "zero_shot learns from nothing" in done.err


def test_folds_calibrate_without_other_labels(home, run):
    done = run("fit", "labels.csv", "--out", "fitted", "--loss", "spa", "--folds", "3", *LINEAR)
    assert "for 4 labels, calibrated by 3 folds and saved it in fitted." in done.out
    assert "Next: surelabel evaluate fitted OTHER_LABELS" in done.out
    made = Recognizer.load("fitted")
    assert made.calibrated_on == "beta by 3 folds of 24 labelled pictures"
    assert made.run.loss.name == "spa"


def test_ready_made_vectors_are_fitted_calibrated_and_measured(home, run):
    random = np.random.default_rng(0)
    features = random.normal(size=(90, 4))
    part = np.repeat(["train", "validation", "test"], 30)
    targets, names = features[:, :2] > 0, ["lion", "bear"]
    np.savez("vectors.npz", features=features, targets=targets, names=names, part=part)
    line = ["fit", "vectors.npz:train", "--method", "linear", "--out", "fitted"]
    done = run(*line, "--set", "learning_rate=0.3")
    assert "Fitted linear on 30 pictures for 2 labels" in done.out
    line = ["calibrate", "fitted", "vectors.npz:validation", "--out", "fitted"]
    assert run(*line, "--test", "vectors.npz:test").code == 0
    found = json.loads(run("evaluate", "fitted", "vectors.npz:test", "--json").out)
    assert (found["pictures"], found["calibration"]) == (30, "beta on 30 labelled pictures")
    assert found["summary"]["mean_average_precision"] > 0.9


def test_a_search_of_scores_asks_for_calibration_first(home, run):
    run("fit", "labels.csv", "--out", "fitted", "--loss", "two_way", *LINEAR)
    done = run("evaluate", "fitted", "labels.csv", "--search", "lion", "--report", "report")
    assert (done.code, done.out) == (1, "")
    assert "needs probabilities, and nothing calibrated this recognizer" in done.err
    assert not (home / "report").exists()
