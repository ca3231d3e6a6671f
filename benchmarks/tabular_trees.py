"""Compare decision trees and the method that `fit` selects with scikit-learn on tabular vectors.

    python benchmarks/tabular_trees.py MULAN
    python benchmarks/tabular_trees.py MULAN --limit

MULAN is a folder with the ARFF files of emotions and yeast. The splits are those of
benchmarks/vector_comparison.py: for each of five seeds, the rows are split at random into training
and test rows, with as many training rows as in the published split. The models are fitted on the
training rows:

selected               `sl.select_method` with default settings: the method with the lowest
                       cross-validated log loss among `linear` and the decision trees, calibrated.
extra_trees            Method with default settings, without calibration.
gradient_boosting      Method with default settings, without calibration.
linear                 Method with default settings, without calibration.
ExtraTrees             One ExtraTreesClassifier for all labels, with default settings.
ExtraTrees, by folds   One ExtraTreesClassifier with 300 trees; leaf size and number of features
                       have the lowest log loss in 5 folds of the training rows.
HistGradientBoosting   One HistGradientBoostingClassifier for each label, with default settings.

The first table has the means over the seeds, with the processor time of fit and prediction on one
core. The second has the differences from scikit-learn, with 95 % t intervals over the seeds. The
log loss is multiplied by 100, and probabilities of scikit-learn are clipped to [0.001, 0.999],
because some are 0.

With `--limit`, the script instead measures the effect of the limit of 50 MB on mAP and log loss.
`extra_trees` is fitted with and without the limit on 20,000 simulated rows with 60 columns and 40
labels, for which the limit is about a twelfth of the size. It is also fitted on yeast with limits
of a half to a sixteenth of the size. The probabilities of the test rows are calibrated by `beta`
with cross-fitting.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from tabular_vectors import N_LABELS
from vector_comparison import FIRST_SEED, FOLDS, SEEDS, TREES, measure, mulan_split

import surelabel as sl
from surelabel.arrays import Array
from surelabel.bench.rows import difference_over_seeds
from surelabel.calibration import Beta, assign_folds, cross_fitted_logits
from surelabel.methods.decision_trees import tree_limits
from surelabel.metrics import log_loss, log_loss_of_logits
from surelabel.metrics.mean_average_precision import mean_average_precision

SMALLEST = 0.001  # minimum probability of scikit-learn after clipping
LEAVES, SHARES = (1, 2, 5), ("sqrt", 0.3)
REFERENCES = ("ExtraTrees", "ExtraTrees, by folds", "HistGradientBoosting")
OURS = ("selected", "extra_trees", "gradient_boosting", "linear")
SELECTED = Counter[str]()  # methods that were selected


def our_method(
    method: str, train: sl.LabelledFeatures, test: Array, normalize: str, seed: int
) -> Array:
    """Return the probabilities of a method of surelabel with default settings."""
    settings = [
        f"encoder.name=features:{test.shape[1]}",
        f"encoder.normalize={normalize}",
        f"method.name={method}",
        f"seed={seed}",
    ]
    recognizer = sl.Recognizer(sl.load_run(None, settings), train.names)
    return recognizer.fit(train).predict(test).probabilities


def selected(train: sl.LabelledFeatures, test: Array, normalize: str, seed: int) -> Array:
    """Return the probabilities of the method with the lowest cross-validated log loss."""
    settings = [f"encoder.normalize={normalize}", f"seed={seed}"]
    recognizer = sl.select_method(train, model=f"features:{test.shape[1]}", settings=settings)
    SELECTED[recognizer.run.method.name] += 1
    return recognizer.predict(test).probabilities


def forest(train: sl.LabelledFeatures, test: Array, seed: int, **settings: object) -> Array:
    """Return the probabilities of an ExtraTreesClassifier."""
    trees = ExtraTreesClassifier(random_state=seed, **settings).fit(train.features, train.targets)
    columns = [label[:, 1] for label in trees.predict_proba(test)]
    return np.stack(columns, axis=1).clip(SMALLEST, 1 - SMALLEST)


def default_forest(train: sl.LabelledFeatures, test: Array, _normalize: str, seed: int) -> Array:
    """Return the probabilities of an ExtraTreesClassifier with default settings."""
    return forest(train, test, seed)


def forest_by_folds(train: sl.LabelledFeatures, test: Array, _normalize: str, seed: int) -> Array:
    """Return the probabilities of an ExtraTreesClassifier with settings chosen by folds."""
    fold = assign_folds(train.known, FOLDS, np.random.default_rng(seed))

    def validation_loss(settings: tuple[int, object]) -> float:
        leaf, share = settings
        probabilities = np.empty(train.targets.shape)
        for k in range(FOLDS):
            rows, others = train.take(np.flatnonzero(fold != k)), np.flatnonzero(fold == k)
            probabilities[others] = forest(
                rows, train.features[others], seed, min_samples_leaf=leaf, max_features=share
            )
        return log_loss(probabilities, train.targets)

    leaf, share = min(product(LEAVES, SHARES), key=validation_loss)
    return forest(train, test, seed, n_estimators=TREES, min_samples_leaf=leaf, max_features=share)


def boosting(train: sl.LabelledFeatures, test: Array, _normalize: str, seed: int) -> Array:
    """Return the probabilities of one HistGradientBoostingClassifier for each label."""
    columns = [
        HistGradientBoostingClassifier(random_state=seed)
        .fit(train.features, targets)
        .predict_proba(test)[:, 1]
        for targets in train.targets.T
    ]
    return np.stack(columns, axis=1).clip(SMALLEST, 1 - SMALLEST)


MODELS: dict[str, Callable[[sl.LabelledFeatures, Array, str, int], Array]] = {
    "selected": selected,
    **{name: partial(our_method, name) for name in OURS[1:]},
    "ExtraTrees": default_forest,
    "ExtraTrees, by folds": forest_by_folds,
    "HistGradientBoosting": boosting,
}


def print_differences(results: dict[tuple[str, str], Array], dataset: str) -> None:
    """Print the differences of our models from those of scikit-learn on a data set."""
    for ours in OURS:
        for theirs in REFERENCES:
            columns = zip(results[dataset, ours].T, results[dataset, theirs].T, strict=True)
            intervals = [difference_over_seeds(*pair) for pair in list(columns)[:3]]
            cells = [f"{i.value:+.2f} ({i.low:+.2f} to {i.high:+.2f})" for i in intervals]
            print(f"| {dataset} | {ours} | {theirs} | {' | '.join(cells)} |")


def simulated_split(seed: int) -> tuple[sl.LabelledFeatures, sl.LabelledFeatures]:
    """Return 20,000 training rows and 5,000 test rows whose labels depend on pairs of columns."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(25_000, 60))
    first, second = (random.integers(0, 60, size=(40, 8)) for _ in range(2))
    terms = np.sign(vectors[:, first]) * np.minimum(vectors[:, first], vectors[:, second])
    logits = terms @ np.ones(8) + random.uniform(-3, 0, size=40)
    targets = (random.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    rows = sl.LabelledFeatures(vectors, [f"label {label}" for label in range(40)], targets)
    return rows.take(range(20_000)), rows.take(range(20_000, 25_000))


def print_limits(folder: Path) -> None:
    """Print mAP and log loss of `extra_trees` for limits of the size of its trees."""
    limits = {"simulated": (10**12, 50 * 10**6)}
    limits["yeast"] = (10**12, *(int(17e6 / factor) for factor in (2, 4, 8, 16)))
    print("| data set | seed | limit (MB) | trees | size (MB) | mAP (%) | 100 · log loss |")
    print("|---|---|---|---|---|---|---|")
    seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
    splits = [("yeast", seed, mulan_split(folder, "yeast", seed)) for seed in seeds]
    splits.append(("simulated", FIRST_SEED, simulated_split(FIRST_SEED)))
    for dataset, seed, split in splits:
        for limit in limits[dataset]:
            tree_limits.MAX_TREE_BYTES = limit
            cells = limited_forest_cells(*split, seed)
            shown = "none" if limit == 10**12 else f"{limit / 1e6:.1f}"
            print(f"| {dataset} | {seed} | {shown} | {' | '.join(cells)} |", flush=True)


def limited_forest_cells(
    train: sl.LabelledFeatures, test: sl.LabelledFeatures, seed: int
) -> list[str]:
    """Return number and size of the trees, mAP and log loss of calibrated `extra_trees`."""
    settings = [f"encoder.name=features:{test.features.shape[1]}", "method.name=extra_trees"]
    run = sl.load_run(None, [*settings, f"seed={seed}"])
    recognizer = sl.Recognizer(run, train.names).fit(train)
    arrays = recognizer.method.trees.state_dict().values()
    size = sum(array.numel() * array.element_size() for array in arrays)
    logits = recognizer.predict(test.features).logits.astype(np.float64)
    calibrated = cross_fitted_logits(
        Beta, logits, test.targets, test.known, vectors=None, folds=FOLDS, seed=seed
    )
    return [
        str(recognizer.method.trees.n_trees[0]),
        f"{size / 1e6:.1f}",
        f"{100 * mean_average_precision(calibrated, test.targets):.2f}",
        f"{100 * log_loss_of_logits(calibrated, test.targets):.2f}",
    ]


def print_comparison(folder: Path) -> None:
    """Fit and measure all models on both data sets, and print both tables."""
    results: dict[tuple[str, str], Array] = {}
    print("| data set | model | mAP (%) | Brier skill (%) | 100 · log loss | processor time (s) |")
    print("|---|---|---|---|---|---|")
    for dataset in N_LABELS:
        seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
        splits = {seed: mulan_split(folder, dataset, seed) for seed in seeds}
        for name, model in MODELS.items():
            rows = [measure(model, split, "auto", seed) for seed, split in splits.items()]
            results[dataset, name] = np.array(rows)
            cells = [f"{value:.1f}" for value in results[dataset, name].mean(axis=0)]
            print(f"| {dataset} | {name} | {' | '.join(cells)} |", flush=True)
        print(f"<!-- selected: {dict(SELECTED)} -->", flush=True)
        SELECTED.clear()
    print("\n| data set | model | compared with | mAP | Brier skill | 100 · log loss |")
    print("|---|---|---|---|---|---|")
    for dataset in N_LABELS:
        print_differences(results, dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mulan", type=Path, help="folder of the ARFF files")
    parser.add_argument("--limit", action="store_true", help="measure the effect of the limit")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    (print_limits if arguments.limit else print_comparison)(arguments.mulan)


if __name__ == "__main__":
    main()
