"""Compare `linear` with logistic regression and trees of scikit-learn on vectors of two kinds.

    python benchmarks/photographs.py voc12_animals photographs.npz
    python benchmarks/vector_comparison.py MULAN photographs.npz

MULAN is a folder with the ARFF files of emotions and yeast. For each seed, the rows are split at
random into training and test rows, with as many training rows as in the published split. For the
photographs, 500 or 1,300 training images are sampled for each seed; the test images are those of
the archive. The rows of Mulan are normalized by `auto`, and the rows of the photographs to unit
length, like image vectors of encoders. The models of scikit-learn receive standardized columns of
Mulan, and rows of unit length of the photographs.

The models are fitted on the training rows only:

linear                       `linear` with default settings: penalty of each label by 5 folds.
linear, training loop        `linear` with `penalty_folds=0`: AdamW, 30 epochs, weight decay 0.01.
linear, 0.1.0                `linear` with `penalty_folds=0` and `centred=false`.
logistic regression          One LogisticRegression for each label, with C by 5 folds (log loss).
extra trees                  One ExtraTreesClassifier for all labels, 300 trees, default settings.
linear, calibrated           `linear`, fitted with `folds=5` and the default calibrator.
linear, beta                 `linear`, fitted with `folds=5` and `calibrator.name=beta`.
logistic regression, sigmoid CalibratedClassifierCV (5 folds, sigmoid) of LogisticRegression, with C
                             by 5 folds. The row "isotonic" uses isotonic regression instead. A
                             label with 2 to 4 positive rows has as many folds as positive rows.

The first table has the means over the seeds, with the processor time of fit and prediction on one
core. The second has the differences of `linear` from scikit-learn, with 95 % t intervals over the
seeds. The log loss is multiplied by 100. "not below" is yes if 0 or a better value is in the
interval, and if the mean is at most 0.5 worse.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import Normalizer, StandardScaler
from tabular_vectors import N_LABELS, read_vectors

import surelabel as sl
from surelabel.arrays import Array
from surelabel.bench.rows import difference_over_seeds
from surelabel.metrics import brier_skill, log_loss
from surelabel.metrics.mean_average_precision import mean_average_precision

FIRST_SEED, SEEDS, FOLDS, TREES = 100, 5, 5, 300  # no seed of 100 or above was used for the design
PARTS = ("train", "test")
PHOTOGRAPHS = (500, 1300)
CS = np.logspace(-4, 4, 17)
LARGEST_LOSS = 0.5  # maximum loss of the mean, in points or 1/100 nats
COMPARISONS = (
    ("linear", "logistic regression"),
    ("linear", "extra trees"),
    ("linear, calibrated", "logistic regression, sigmoid"),
    ("linear, calibrated", "logistic regression, isotonic"),
    ("linear, beta", "logistic regression, sigmoid"),
    ("linear, beta", "logistic regression, isotonic"),
)
Split = tuple[sl.LabelledFeatures, sl.LabelledFeatures]
Model = Callable[[sl.LabelledFeatures, Array, str, int], Array]


def mulan_split(folder: Path, name: str, seed: int) -> Split:
    """Return training and test rows of a data set of Mulan, split at random."""
    parts = [read_vectors(folder / f"{name}-{part}.arff", N_LABELS[name]) for part in PARTS]
    vectors, targets = (
        np.concatenate([getattr(part, key) for part in parts]) for key in ("features", "targets")
    )
    rows = sl.LabelledFeatures(vectors, parts[0].names, targets)
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows.take(order[: len(parts[0])]), rows.take(order[len(parts[0]) :])


def photograph_split(archive: Path, n_images: int, seed: int) -> Split:
    """Return sampled training images and the test images of an archive."""
    with np.load(archive, allow_pickle=False) as file:
        features, targets, names, part = (file[k] for k in ("features", "targets", "names", "part"))
    images = sl.LabelledFeatures(features, list(names), targets)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(part != "test"))
    return images.take(order[:n_images]), images.take(np.flatnonzero(part == "test"))


def linear(
    *settings: str, folds: int = 0
) -> Callable[[sl.LabelledFeatures, Array, str, int], Array]:
    """Return a function that fits ``linear`` and returns the probabilities of test vectors."""

    def fit(train: sl.LabelledFeatures, test: Array, normalize: str, seed: int) -> Array:
        run = sl.load_run(
            None,
            [
                f"encoder.name=features:{test.shape[1]}",
                f"encoder.normalize={normalize}",
                "method.name=linear",
                f"seed={seed}",
                *settings,
            ],
        )
        return sl.Recognizer(run, train.names).fit(train, folds=folds).predict(test).probabilities

    return fit


def fit_each_label(
    classifier: Callable[[Array, Array], Callable[[Array], Array]],
    train: sl.LabelledFeatures,
    test: Array,
    normalize: str,
    seed: int,
) -> Array:
    """Return the probabilities of one classifier of scikit-learn for each label, ``(n, c)``."""
    scaler = (Normalizer() if normalize == "unit" else StandardScaler()).fit(train.features)
    vectors, others = scaler.transform(train.features), scaler.transform(test)
    columns = [classifier(vectors, targets)(others)[:, 1] for targets in train.targets.T]
    return np.stack(columns, axis=1)


def logistic_regression(vectors: Array, targets: Array) -> Callable[[Array], Array]:
    """Fit logistic regression with C by cross-validation; return a function of probabilities."""
    return _regression_with_selected_c(vectors, targets).predict_proba


def calibrated_regression(
    vectors: Array, targets: Array, *, method: str
) -> Callable[[Array], Array]:
    """Fit calibrated logistic regression, and return a function of probabilities."""
    c = float(np.ravel(_regression_with_selected_c(vectors, targets).C_)[0])
    regression = LogisticRegression(C=c, max_iter=5000)
    folds = _folds_of_label(targets)
    calibrated = CalibratedClassifierCV(regression, method=method, cv=folds)
    return calibrated.fit(vectors, targets).predict_proba


def _regression_with_selected_c(vectors: Array, targets: Array) -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=CS,
        cv=_folds_of_label(targets),
        scoring="neg_log_loss",
        max_iter=5000,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    ).fit(vectors, targets)


def _folds_of_label(targets: Array) -> int:
    """Return the number of stratified folds: 5, or the number of positives if it is lower."""
    return int(min(FOLDS, targets.sum()))


def extra_trees(train: sl.LabelledFeatures, test: Array, normalize: str, seed: int) -> Array:
    """Return the probabilities of extremely randomized trees, which all labels share."""
    trees = ExtraTreesClassifier(TREES, random_state=seed).fit(train.features, train.targets)
    return np.stack([label[:, 1] for label in trees.predict_proba(test)], axis=1)


MODELS: dict[str, Model] = {
    "linear": linear(),
    "linear, training loop": linear("method.penalty_folds=0"),
    "linear, 0.1.0": linear("method.penalty_folds=0", "method.centred=false"),
    "logistic regression": partial(fit_each_label, logistic_regression),
    "extra trees": extra_trees,
    "linear, calibrated": linear(folds=FOLDS),
    "linear, beta": linear("calibrator.name=beta", folds=FOLDS),
    **{
        f"logistic regression, {method}": partial(
            fit_each_label, partial(calibrated_regression, method=method)
        )
        for method in ("sigmoid", "isotonic")
    },
}


def measure(model: Model, split: Split, normalize: str, seed: int) -> tuple[float, ...]:
    """Return mAP and Brier skill in percent, 100 times the log loss, and the processor time."""
    train, test = split
    start = time.process_time()
    probabilities = model(train, test.features, normalize, seed)
    seconds = time.process_time() - start
    return (
        100 * mean_average_precision(probabilities, test.targets),
        100 * brier_skill(probabilities, test.targets),
        100 * log_loss(probabilities, test.targets),
        seconds,
    )


def difference_cells(ours: Array, theirs: Array) -> list[str]:
    """Return the cells with the differences of mAP, skill and log loss, and whether they pass."""
    cells, passes = [], True
    for column, sign in enumerate((1, 1, -1)):
        interval = difference_over_seeds(ours[:, column], theirs[:, column])
        high = interval.high if sign > 0 else -interval.low
        passes = passes and high >= 0 and sign * interval.value >= -LARGEST_LOSS
        cells.append(f"{interval.value:+.2f} ({interval.low:+.2f} to {interval.high:+.2f})")
    return [*cells, "yes" if passes else "no"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mulan", type=Path, help="folder of the ARFF files")
    parser.add_argument("photographs", type=Path, help="archive of benchmarks/photographs.py")
    folders = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    datasets: dict[str, tuple[Callable[[int], Split], str]] = {
        name: (partial(mulan_split, folders.mulan, name), "auto") for name in N_LABELS
    }
    for n_images in PHOTOGRAPHS:
        split = partial(photograph_split, folders.photographs, n_images)
        datasets[f"photographs, {n_images:,} images"] = split, "unit"
    results: dict[tuple[str, str], Array] = {}
    print("| data set | model | mAP (%) | Brier skill (%) | 100 · log loss | processor time (s) |")
    print("|---|---|---|---|---|---|")
    for dataset, (split_of_seed, normalize) in datasets.items():
        splits = {seed: split_of_seed(seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)}
        for name, model in MODELS.items():
            rows = [measure(model, split, normalize, seed) for seed, split in splits.items()]
            results[dataset, name] = np.array(rows)
            cells = [f"{value:.1f}" for value in results[dataset, name].mean(axis=0)]
            print(f"| {dataset} | {name} | {' | '.join(cells)} |", flush=True)
    print("\n| data set | model | compared with | mAP | Brier skill | 100 · log loss | not below |")
    print("|---|---|---|---|---|---|---|")
    for dataset in datasets:
        for ours, theirs in COMPARISONS:
            cells = difference_cells(results[dataset, ours], results[dataset, theirs])
            print(f"| {dataset} | {ours} | {theirs} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
