"""Compare the calibrator that is selected by cross-validated log loss with all calibrators.

    python benchmarks/calibrator_selection.py SCORES.npz

SCORES.npz is the file of benchmarks/fusion.py with scores of CLIP RN50x64 for VOC2012 train. The
fusion of the image and its tiles is mean_of_standardized. The calibrators are fitted on random
labelled images and evaluated on all other images. The simulations are those of
benchmarks/calibrators.py, whose true probabilities are known. The heads are fitted on random
training images of scenes-80. The calibrators of the heads are fitted on out-of-fold scores of the
same images and evaluated on the test images.

The first three tables have the mean over the draws. The column "best" names the calibrator with the
lowest mean log loss among all compared calibrators. The columns after it have the increase of the
log loss of each calibrator from the lowest one, in percent. The column "largest" has the largest
increase of cross_validated in a single draw, from the lowest log loss of this draw. The column
"selected" counts the calibrators that cross_validated selected, in the order beta, vector,
hierarchical. The fourth table has the processor time of one core for 80 labels.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from calibrators import SIMULATIONS, simulate
from fusion import fuse_scores, read_scores
from scipy.special import expit

from surelabel.arrays import Array
from surelabel.calibration import CALIBRATORS, assign_folds
from surelabel.config import load_run
from surelabel.data import collection
from surelabel.metrics import brier_skill, log_loss_of_logits
from surelabel.recognizer import Recognizer
from surelabel.recognizer.calibrating import fit_recognizer_calibration

CANDIDATES = ("beta", "vector", "hierarchical")
OTHERS = ("platt", "isotonic", "isotonic_per_class")
SELECTION = "cross_validated"
NAMES = (SELECTION, *CANDIDATES, *OTHERS)
VOC_IMAGES = (25, 50, 100, 300)
SIMULATED_IMAGES = (25, 50, 100, 300)
HEADS = {"linear": (100, 500), "clip_adapter": (100, 500)}
SETTINGS = {"linear": ["method.centred=false", "method.penalty_folds=0"], "clip_adapter": []}
HELD_OUT, FIRST_SEED, FOLDS = 10_000, 1000, 5  # no seed below 1000 was used for the design

Data = tuple[Array, Array, Array, Array]  # logits and targets, of the fit and of other images


def measure(data: Data) -> tuple[dict[str, float], dict[str, float], str]:
    """Return the log loss and the Brier skill of each calibrator, and the selected one."""
    x, y, other_x, other_y = data
    fitted = {name: CALIBRATORS[name]().fit(x, y) for name in NAMES}
    logits = {name: calibrator.logits(other_x) for name, calibrator in fitted.items()}
    losses = {name: log_loss_of_logits(z, other_y) for name, z in logits.items()}
    is_binary = np.isin(other_y, (0, 1)).all()
    skills = {n: brier_skill(expit(z), other_y) if is_binary else 0 for n, z in logits.items()}
    return losses, skills, fitted[SELECTION].selected_


def row_cells(draws: Sequence[Data]) -> list[str]:
    """Return the cells of a row with the means over the draws."""
    losses, skills, selected = zip(*map(measure, draws), strict=True)
    loss = {name: np.mean([values[name] for values in losses]) for name in NAMES}
    skill = {name: 100 * np.mean([values[name] for values in skills]) for name in NAMES}
    best = min(NAMES, key=lambda name: (loss[name], name == SELECTION))
    excess = [100 * (loss[name] / loss[best] - 1) for name in NAMES]
    largest = max(100 * (v[SELECTION] / min(v.values()) - 1) for v in losses)
    shown_skills = [f"{skill[name]:.1f}" for name in (SELECTION, *CANDIDATES)]
    return [
        f"{loss[best]:.4f} `{best}`",
        *(f"{value:.1f}" for value in excess),
        f"{largest:.1f}",
        " · ".join(str(selected.count(name)) for name in CANDIDATES),
        *([" · ".join(shown_skills)] if any(skill.values()) else []),
    ]


def print_table(title: str, rows: dict[str, Callable[[], list[Data]]], *, skill: bool) -> None:
    """Print a table in Markdown, one line at a time."""
    header = [title, "best", *(f"`{name}`" for name in NAMES), "largest", "selected"]
    header += ["Brier skill"] if skill else []
    print("\n| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for name, draws in rows.items():
        print(f"| {name} | " + " | ".join(row_cells(draws())) + " |", flush=True)


def voc_draws(scores: Array, targets: Array, n_images: int, n_draws: int) -> list[Data]:
    """Return random labelled images of VOC2012, and all other images, for each draw."""
    draws = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        order = np.random.default_rng(seed).permutation(len(scores))
        fit, other = order[:n_images], order[n_images:]
        draws.append((scores[fit], targets[fit], scores[other], targets[other]))
    return draws


def simulated_draws(differing: bool, bent: bool, n_images: int, n_draws: int) -> list[Data]:
    """Return simulated images, and other images with their true probabilities, for each draw."""
    draws = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        x, y, truth = simulate(n_images + HELD_OUT, seed, differing=differing, bent=bent)
        other = slice(n_images, None)
        draws.append((x[:n_images], y[:n_images].astype(float), x[other], expit(truth[other])))
    return draws


def head_draws(method: str, n_images: int, n_draws: int) -> list[Data]:
    """Return out-of-fold and test logits of a head that is fitted on labelled images."""
    train, test = (collection("scenes-80", split=split) for split in ("train", "test"))
    draws = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        rng = np.random.default_rng(seed)
        labelled = train.take(np.sort(rng.permutation(len(train))[:n_images]))
        fold = assign_folds(labelled.known, FOLDS, rng)
        run = load_run(overrides=[f"method.name={method}", f"seed={seed}", *SETTINGS[method]])
        out_of_fold = np.empty(labelled.targets.shape)
        for k in range(FOLDS):
            rows, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            fitted = Recognizer(run, train.names).fit(labelled.take(rows))
            scores = fitted.predict(labelled.take(held_out)).scores
            out_of_fold[held_out] = fitted.logits_of(scores)
        fitted = Recognizer(run, train.names).fit(labelled)
        logits = fitted.logits_of(fitted.predict(test).scores)
        draws.append((out_of_fold, labelled.targets, logits, test.targets))
    return draws


def print_seconds() -> None:
    """Print the processor time of a fit, and of a calibration with its validation record."""
    header = ["images", "`beta`", f"`{SELECTION}`"]
    header += [f"{name}, with the validation record" for name in header[1:]]
    print("\n| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for n_images in (100, 500, 1500):
        x, y, _ = simulate(n_images, FIRST_SEED, differing=True, bent=True)
        known, seconds = np.ones(y.shape, dtype=bool), []
        for name in ("beta", SELECTION):
            start = time.process_time()
            CALIBRATORS[name]().fit(x, y)
            seconds.append(time.process_time() - start)
        for name in ("beta", SELECTION):
            run = load_run(overrides=[f"calibrator.name={name}"])
            start = time.process_time()
            fit_recognizer_calibration(run, x, y.astype(float), known)
            seconds.append(time.process_time() - start)
        print(f"| {n_images:,} | " + " | ".join(f"{value:.2f}" for value in seconds) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scores", help="SCORES.npz of benchmarks/fusion.py")
    parser.add_argument("--draws", type=int, default=20, help="number of draws, 1 or more")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # warnings about labels without positive images
    image, tiles, labels = read_scores(arguments.scores)
    scores = fuse_scores(image, tiles)["mean_of_standardized"].numpy()
    draws, targets = arguments.draws, labels.astype(float)
    print_table(
        "VOC2012, images",
        {f"{n}": lambda n=n: voc_draws(scores, targets, n, draws) for n in VOC_IMAGES},
        skill=True,
    )
    print_table(
        "simulation, images",
        {
            f"{name}, {n}": lambda n=n, error=error: simulated_draws(*error, n, draws // 2)
            for name, error in SIMULATIONS.items()
            for n in SIMULATED_IMAGES
        },
        skill=False,
    )
    print_table(
        "head, images",
        {
            f"`{method}`, {n}": lambda n=n, method=method: head_draws(method, n, max(draws // 4, 1))
            for method, counts in HEADS.items()
            for n in counts
        },
        skill=True,
    )
    print_seconds()


if __name__ == "__main__":
    main()
