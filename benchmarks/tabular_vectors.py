"""Compare normalizations of ready-made vectors on two tabular data sets of Mulan.

    .venv/bin/python benchmarks/tabular_vectors.py FOLDER

FOLDER contains ``emotions-train.arff``, ``emotions-test.arff``, ``yeast-train.arff`` and
``yeast-test.arff``. The script fits ``linear`` and logistic regression of scikit-learn on rows of
unit length and on standardized rows. Each is fitted on the training split and measured on the test
split:

skill     Brier skill of the probabilities, 1 - (Brier score) / (Brier score of the prevalence).
gain      Difference of the Brier skill from that of the same model on unit rows, with the 95 %
          interval of a paired bootstrap of the test rows (1,000 samples).

``linear`` is fitted with its default settings, and by the training loop with its default recipe
(``penalty_folds=0``). C of logistic regression is selected by the log loss of 5-fold
cross-validation on the training split, for each label.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from scipy.io import arff
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import surelabel as sl
from surelabel.arrays import Array
from surelabel.metrics import brier_skill

N_LABELS = {"emotions": 6, "yeast": 14}  # number of label columns, the last columns of the files
SAMPLES, FOLDS, SEED = 1000, 5, 0


def read_vectors(path: Path, n_labels: int) -> sl.LabelledFeatures:
    """Return the vectors and the targets of an ARFF file."""
    rows, attributes = arff.loadarff(path)
    columns = [rows[name].astype(np.float64) for name in attributes.names()]
    vectors, targets = (
        np.stack(part, axis=1) for part in (columns[:-n_labels], columns[-n_labels:])
    )
    return sl.LabelledFeatures(vectors, attributes.names()[-n_labels:], targets)


def linear_probabilities(
    train: sl.LabelledFeatures, test: Array, normalize: str, penalty_folds: int
) -> Array:
    """Return the probabilities of ``linear`` for test vectors, ``(n, c)``."""
    settings = [
        f"encoder.name=features:{test.shape[1]}",
        f"encoder.normalize={normalize}",
        "method.name=linear",
        f"method.penalty_folds={penalty_folds}",
    ]
    recognizer = sl.Recognizer(sl.load_run(None, settings), train.names).fit(train)
    return recognizer.predict(test).probabilities


def logistic_regression_probabilities(
    train: sl.LabelledFeatures, test: Array, normalize: str
) -> Array:
    """Return the probabilities of logistic regression for test vectors, ``(n, c)``."""
    scaler = StandardScaler() if normalize == "standardize" else Normalizer()
    regression = LogisticRegressionCV(
        Cs=np.logspace(-4, 4, 17),
        cv=FOLDS,
        scoring="neg_log_loss",
        max_iter=5000,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    columns = [
        make_pipeline(scaler, regression).fit(train.features, targets).predict_proba(test)
        for targets in train.targets.T
    ]
    return np.stack([column[:, 1] for column in columns], axis=1)


def gain_interval(probabilities: Array, reference: Array, targets: Array) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two Brier skills, from a paired bootstrap."""
    random = np.random.default_rng(SEED)
    gains = []
    for _ in range(SAMPLES):
        rows = random.integers(0, len(targets), len(targets))
        skills = (brier_skill(p[rows], targets[rows]) for p in (probabilities, reference))
        gains.append(next(skills) - next(skills))
    low, high = np.percentile(gains, [2.5, 97.5])
    return float(low), float(high)


def print_table(folder: Path, name: str) -> None:
    """Fit and measure all models on one data set, and print the rows of the table."""
    train, test = (
        read_vectors(folder / f"{name}-{split}.arff", N_LABELS[name]) for split in ("train", "test")
    )
    lengths = np.linalg.norm(np.vstack([train.features, test.features]), axis=1)
    deviations = train.features.std(axis=0)
    print(
        f"<!-- {name}: lengths of the rows {lengths.min():.4g} to {lengths.max():.4g}, standard "
        f"deviations of the columns {deviations.min():.2g} to {deviations.max():.2g} -->"
    )
    for title in ("`linear`", "`linear`, training loop", "logistic regression"):
        reference = None
        for normalize in ("unit", "standardize"):
            if title == "logistic regression":
                probabilities = logistic_regression_probabilities(train, test.features, normalize)
            else:
                folds = FOLDS if title == "`linear`" else 0
                probabilities = linear_probabilities(train, test.features, normalize, folds)
            reference = probabilities if reference is None else reference
            print_row(name, f"{title}, `{normalize}`", probabilities, reference, test.targets)


def print_row(name: str, row: str, probabilities: Array, reference: Array, targets: Array) -> None:
    """Print a row with data set, model, Brier skill, and its gain over unit rows."""
    skill = 100 * brier_skill(probabilities, targets)
    gain = "reference"
    if probabilities is not reference:
        low, high = gain_interval(probabilities, reference, targets)
        difference = skill - 100 * brier_skill(reference, targets)
        gain = f"{difference:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})"
    print(f"| {name} | {row} | {skill:.1f} | {gain} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the ARFF files")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    print("| data set | model | Brier skill (%) | gain over unit rows (95 %) |\n|---|---|---|---|")
    for name in N_LABELS:
        print_table(folder, name)


if __name__ == "__main__":
    main()
