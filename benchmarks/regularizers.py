"""Measure the effect of each regularizer and weight on base and new labels of scenes-80.

The encoder is tiny-vit. For each seed, a random half of the 80 labels are base labels; the other
labels are new. The method is fitted on training images of the base labels, with at least 16
positives per label if a label has 16 positives, and predicts all labels. The regularizer outlier
excludes the new labels.

The script prints two tables for the validation images and two tables for the test images: without
calibration, and after Platt scaling with one slope and intercept, fitted on the base labels of the
validation images. The tables have the mean over the seeds for weight 0, and for each other row the
mean of the paired changes from weight 0 with its 95 % interval (t distribution). An asterisk marks
the weight of a regularizer with the lowest log loss of the base labels on the validation images.
Results are cached, so the same command resumes.

    python benchmarks/regularizers.py --methods clip_adapter coop
    python benchmarks/regularizers.py --methods clip_adapter --first-seed 5
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit
from scipy.stats import t

from surelabel.bench.result_cache import ResultCache
from surelabel.calibration import Platt
from surelabel.config import Choice, Run
from surelabel.data import collection, sample_shots
from surelabel.features import default_feature_cache_folder
from surelabel.metrics import brier_skill, ece, log_loss_of_logits, mean_average_precision
from surelabel.recognizer import Recognizer

SHOTS = 16
WEIGHTS = (0.05, 0.1, 0.3, 1.0)
WEIGHTS_OF_TEXTS = (1.0, 2.0, 8.0)
COVARIANCES = (
    "class_covariance",
    "class_covariance centered",
    "class_covariance minmax",
    "class_covariance_shuffled",
    "class_covariance_of_logits",
    "class_covariance_of_logits centered",
    "class_covariance_pairwise",
    "class_second_moment",
)  # key, and the text similarity if it is not the cosine
GRIDS = {  # weights of each regularizer, by method
    "clip_adapter": dict.fromkeys((*COVARIANCES, "mdca", "label_smoothing"), WEIGHTS),
    "coop": {
        **dict.fromkeys(
            ("class_covariance", "class_covariance_shuffled", "mdca", "label_smoothing"),
            (0.1, 0.3, 1.0),
        ),
        **dict.fromkeys(("knowledge", "outlier"), WEIGHTS_OF_TEXTS),
    },
}
START = {"coop": {"initial_context": "a photo of a"}}  # settings that start at zero-shot
LEARNING_RATES = {"coop": 0.002}
SPLITS = ("validation", "test")
METRICS = {
    "Brier skill %": lambda logits, y: 100 * brier_skill(expit(logits), y),
    "log loss mnat": lambda logits, y: 1000 * log_loss_of_logits(logits, y),
    "ECE %": lambda logits, y: 100 * ece(expit(logits), y),
    "mAP %": lambda logits, y: 100 * mean_average_precision(expit(logits), y),
}
COLUMNS = {
    "without calibration": [f"{half} {metric}" for half in ("base", "new") for metric in METRICS],
    "calibrated": [
        f"calibrated {half} {metric}" for half in ("base", "new") for metric in list(METRICS)[:3]
    ],
}


def measure(method, form, weight, seed):
    """Return the metrics of one fit, by split and column."""
    regularizer, _, similarity = form.partition(" ")
    train = collection("scenes-80", split="train")
    rng = np.random.default_rng(seed)
    base, new = (list(half) for half in np.split(rng.permutation(train.names), 2))
    columns = [train.names.index(name) for name in base]
    rows = sample_shots(train.targets[:, columns], train.known[:, columns], SHOTS, rng)
    settings = {"exclude": new} if regularizer == "outlier" else {}
    settings |= {"similarity": similarity} if similarity else {}
    run = Run(
        method=Choice(method, START.get(method, {})),
        learning_rate=LEARNING_RATES.get(method),
        regularizer=Choice(regularizer, settings) if weight else None,
        regularizer_weight=weight,
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recognizer = Recognizer(run, base).fit(train.take(rows)).with_names([*base, *new])
    predicted = {split: logits_and_targets(recognizer, split) for split in SPLITS}
    logits, targets = (values[:, : len(base)] for values in predicted["validation"])
    platt = Platt().fit(logits, targets)
    return {
        split: metrics_of_logits(logits, targets, COLUMNS["without calibration"])
        | metrics_of_logits(platt.slope_ * logits + platt.shift_, targets, COLUMNS["calibrated"])
        for split, (logits, targets) in predicted.items()
    }


def logits_and_targets(recognizer, split):
    """Return the log-odds and targets of the images of a split, base labels first."""
    images = recognizer.align_labels(collection("scenes-80", split=split))
    return recognizer.predict(images).logits, images.targets


def metrics_of_logits(logits, targets, columns):
    """Return the metrics of base and new labels, by column."""
    n_base = logits.shape[1] // 2
    halves = {"base": slice(n_base), "new": slice(n_base, None)}
    values = {}
    for column in columns:
        half, metric = column.removeprefix("calibrated ").split(" ", 1)
        values[column] = float(METRICS[metric](logits[:, halves[half]], targets[:, halves[half]]))
    return values


def paired_change(values, reference):
    """Return the mean of the paired changes, with its 95 % interval, as text."""
    changes = np.array(values) - reference
    n = len(changes)
    half_width = t.ppf(0.975, n - 1) * changes.std(ddof=1) / n**0.5
    return f"{changes.mean():+.2f} ± {half_width:.2f}"


def print_table(title, split, columns, results):
    """Print the changes from weight 0; ``results`` has one list of metrics per row."""
    values = {
        row: np.array([[r[split][c] for c in columns] for r in of_seeds])
        for row, of_seeds in results.items()
    }
    reference = values["none", 0.0]
    print(f"\n{title}, {len(reference)} seeds\n")
    print("| regularizer | λ |", " | ".join(columns), "|")
    print("|", "---|" * (len(columns) + 2), sep="")
    print("| none | 0 |", " | ".join(f"{m:.2f}" for m in reference.mean(axis=0)), "|")
    best = best_weights(results)
    for (regularizer, weight), table in values.items():
        if weight:
            cells = (paired_change(a, b) for a, b in zip(table.T, reference.T, strict=True))
            mark = "*" if best[regularizer] == weight else ""
            name, _, similarity = regularizer.partition(" ")
            form = f"`{name}`, {similarity}" if similarity else f"`{name}`"
            print(f"| {form} | {weight:g}{mark} |", " | ".join(cells), "|")


def print_control(method, split, columns, results):
    """Print the changes from class_covariance_shuffled to class_covariance, by weight."""
    print(f"\n{method}, {split}, class_covariance minus class_covariance_shuffled\n")
    for weight in GRIDS[method]["class_covariance"]:
        right, shuffled = (
            np.array([[r[split][c] for c in columns] for r in results[name, weight]]).T
            for name in ("class_covariance", "class_covariance_shuffled")
        )
        print(f"| {weight:g} |", " | ".join(map(paired_change, right, shuffled)), "|")


def best_weights(results):
    """Return the weight with the lowest validation log loss of base labels, by regularizer."""
    losses = {}
    for (regularizer, weight), of_seeds in results.items():
        loss = np.mean([r["validation"]["base log loss mnat"] for r in of_seeds])
        losses.setdefault(regularizer, {})[weight] = loss
    return {regularizer: min(of, key=of.get) for regularizer, of in losses.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", default=[*GRIDS], choices=[*GRIDS])
    parser.add_argument("--regularizers", nargs="+", help="rows of the table (default: all)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds, 2 or more")
    default_folder = default_feature_cache_folder() / "regularizers"
    parser.add_argument("--cache", type=Path, default=default_folder, help="folder of results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = ResultCache(arguments.cache)
    for method in arguments.methods:
        names = arguments.regularizers or [*GRIDS[method]]
        grid = [("none", 0.0), *((name, w) for name in names for w in GRIDS[method][name])]
        results = {row: [] for row in grid}
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            for row in grid:
                key = (method, *row, seed)
                value = cache.load_or_compute(
                    *key, "calibrated", compute=lambda key=key: measure(*key)
                )
                results[row].append(value)
                print(*key, flush=True)
        for split in SPLITS:
            for readout, columns in COLUMNS.items():
                print_table(f"{method}, {split}, {readout}", split, columns, results)
                if {"class_covariance", "class_covariance_shuffled"} <= set(names):
                    print_control(method, split, columns, results)


if __name__ == "__main__":
    main()
