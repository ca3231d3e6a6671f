"""Compare the ranking and the flags of ``surelabel audit`` with cleanlab, on planted label errors.

    .venv/bin/python benchmarks/label_errors.py FOLDER

FOLDER contains ``emotions-train.arff`` and ``yeast-train.arff`` of Mulan. Scenes are the 1,500
training images of ``surelabel bench --quick``, with the vectors of tiny-vit. ``linear`` is fitted
on 5 folds and calibrated by ``beta`` on 5 folds. Both tools get the same probabilities:

audit       ranks by the probability of the opposite target, given the other targets of the image.
cleanlab    ranks by ``get_label_quality_scores_per_class`` with ``self_confidence``, without and
            with ``adjust_pred_probs``.
filter      flags targets by ``find_multilabel_issues_per_class``. For the comparison, the same
            number of targets with the highest rank by ``audit`` are flagged.

Errors are planted in four ways, at 5 % and 10 %:

missing     5 or 10 % of the positive targets of each label become negative.
wrong       The same number of negative targets of each label become positive.
both        The changes of ``missing`` and ``wrong`` are made together.
any         Each target is flipped with a probability of 5 or 10 %.

Missing positives are ranked among negative targets, and wrong positives among positive targets.
Intervals are 95 % t intervals of paired differences over the draws.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
from scipy import stats
from scipy.io import arff
from scipy.special import expit
from sklearn.metrics import average_precision_score

import surelabel as sl
from surelabel.arrays import Array, Flags
from surelabel.bench.image_splits import load_benchmark_scenes
from surelabel.calibration import cross_fitted_logits, logits_given_other_targets
from surelabel.encoders import load_encoder
from surelabel.evaluation import ERROR_KINDS, MISSING_POSITIVE, find_label_errors
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.recognizer.method_comparison import out_of_fold_scores
from surelabel.recognizer.vector_normalization import encoder_with_fitted_normalization

N_LABELS = {"emotions": 6, "yeast": 14}  # number of label columns, the last columns of the files
PLANTED = ("missing", "wrong", "both", "any")
SHARES = (0.05, 0.1)
FOLDS = 5
Row = dict[str, float]


def read_dataset(folder: Path, name: str) -> sl.LabelledFeatures:
    """Return the vectors and the targets of a dataset."""
    if name == "scenes":
        images = load_benchmark_scenes("train", quick=True).images
        cache = FeatureCache(default_feature_cache_folder())
        encoded = encode_image_files(load_encoder("tiny-vit"), images.paths, cache=cache, workers=0)
        vectors = encoded.features.pooled.float().numpy()
        return sl.LabelledFeatures(vectors, images.names, images.targets)
    rows, attributes = arff.loadarff(folder / f"{name}-train.arff")
    columns = [rows[column].astype(np.float64) for column in attributes.names()]
    n = N_LABELS[name]
    vectors, targets = (np.stack(part, axis=1) for part in (columns[:-n], columns[-n:]))
    return sl.LabelledFeatures(vectors, attributes.names()[-n:], targets)


def plant_errors(targets: Array, planted: str, share: float, seed: int) -> Flags:
    """Return a mask of the targets that are made wrong, ``(n, c)``."""
    random = np.random.default_rng(seed)
    if planted == "any":
        return random.random(targets.shape) < share
    errors = np.zeros(targets.shape, dtype=bool)
    for column in range(targets.shape[1]):
        positive, negative = (np.flatnonzero(targets[:, column] == value) for value in (1, 0))
        n_errors = round(share * len(positive))
        for rows, kind in ((positive, "missing"), (negative, "wrong")):
            if planted in (kind, "both"):
                errors[random.choice(rows, n_errors, replace=False), column] = True
    return errors


def out_of_fold_logits(source: sl.LabelledFeatures, normalize: str, seed: int) -> Array:
    """Return the log-odds of ``linear``, fitted and calibrated on other folds, ``(n, c)``."""
    settings = [
        f"encoder.name=features:{source.features.shape[1]}",
        f"encoder.normalize={normalize}",
        "method.name=linear",
        "calibrator.name=beta",
        f"seed={seed}",
    ]
    run = sl.load_run(None, settings)
    encoder = load_encoder(run.encoder.name, **run.encoder.settings)
    encoder = encoder_with_fitted_normalization(encoder, source)
    scores = out_of_fold_scores(sl.Recognizer(run, source.names, encoder=encoder), source, FOLDS)
    return cross_fitted_logits(
        run.entry("calibrator"),
        scores.raw,
        scores.targets,
        scores.known,
        vectors=scores.vectors,
        folds=FOLDS,
        seed=seed,
    )


def measure_draw(
    source: sl.LabelledFeatures, normalize: str, planted: str, share: float, seed: int
) -> Mapping[str, Row]:
    """Return the results of a draw of errors, for each kind of error that was planted."""
    errors = plant_errors(source.targets, planted, share, seed)
    targets = np.where(errors, 1 - source.targets, source.targets)
    noisy = sl.LabelledFeatures(source.features, source.names, targets)
    logits = out_of_fold_logits(noisy, normalize, seed)
    given_others = logits_given_other_targets(logits, targets, folds=FOLDS, seed=seed)
    found = find_label_errors(given_others, targets)
    labels = [np.flatnonzero(row).tolist() for row in targets]
    probabilities = expit(logits)
    default, adjusted = (
        1 - get_label_quality_scores_per_class(labels, probabilities, adjust_pred_probs=is_adjusted)
        for is_adjusted in (False, True)
    )
    ours = np.where(targets == 1, 1 - found.probabilities, found.probabilities)
    filtered = find_multilabel_issues_per_class(labels, probabilities, n_jobs=1)
    results = {}
    for kind in ERROR_KINDS:
        of_kind = targets == (0 if kind == MISSING_POSITIVE else 1)
        is_error = errors[of_kind]
        if not is_error.any():
            continue
        n_flags = int(filtered[of_kind].sum())
        top = np.argsort(-ours[of_kind], kind="stable")[:n_flags]
        flagged = found.flagged[of_kind]
        results[kind] = {
            "errors": int(is_error.sum()),
            "targets": int(of_kind.sum()),
            "AP": average_precision_score(is_error, ours[of_kind]),
            "cleanlab AP": average_precision_score(is_error, default[of_kind]),
            "adjusted AP": average_precision_score(is_error, adjusted[of_kind]),
            "filter flags": n_flags,
            "filter precision": is_error[filtered[of_kind]].mean() if n_flags else np.nan,
            "precision": is_error[top].mean() if n_flags else np.nan,
            "filter recall": (is_error & filtered[of_kind]).sum() / is_error.sum(),
            "recall": is_error[top].sum() / is_error.sum(),
            "own flags": int(flagged.sum()),
            "own precision": is_error[flagged].mean() if flagged.any() else np.nan,
            "own recall": (is_error & flagged).sum() / is_error.sum(),
        }
    return results


def print_rows(name: str, planted: str, share: float, draws: Mapping[str, list[Row]]) -> None:
    """Print one row of each table, for each kind of error."""
    for kind, rows in draws.items():
        mean = {key: float(np.nanmean([row[key] for row in rows])) for key in rows[0]}
        start = f"| {name} | {planted} {100 * share:.0f} % | {kind} | {mean['errors']:.0f}"
        print(
            f"R {start} of {mean['targets']:.0f} | {100 * mean['AP']:.1f} | "
            f"{100 * mean['cleanlab AP']:.1f} | {100 * mean['adjusted AP']:.1f} | "
            f"{difference(rows, 'AP', 'cleanlab AP')} |"
        )
        print(
            f"F {start} | {mean['filter flags']:.0f} | {100 * mean['precision']:.1f} | "
            f"{100 * mean['filter precision']:.1f} | "
            f"{difference(rows, 'precision', 'filter precision')} | {100 * mean['recall']:.1f} | "
            f"{100 * mean['filter recall']:.1f} | {difference(rows, 'recall', 'filter recall')} |"
        )
        print(
            f"O {start} | {mean['own flags']:.0f} | {100 * mean['own precision']:.1f} | "
            f"{100 * mean['own recall']:.1f} |",
            flush=True,
        )


def difference(rows: list[Row], key: str, other: str) -> str:
    """Return the mean paired difference in points with its 95 % t interval over the draws."""
    values = 100 * np.array([row[key] - row[other] for row in rows])
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return "–"
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{values.mean():+.1f} ({values.mean() - half:+.1f} to {values.mean() + half:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the ARFF files")
    parser.add_argument("--draws", type=int, default=5, help="number of draws of errors")
    parser.add_argument("--datasets", nargs="+", default=[*N_LABELS, "scenes"])
    parser.add_argument("--planted", nargs="+", choices=PLANTED, default=PLANTED)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    for name in arguments.datasets:
        source = read_dataset(arguments.folder, name)
        normalize = "unit" if name == "scenes" else "standardize"
        for planted in arguments.planted:
            for share in SHARES:
                draws = defaultdict[str, list[Row]](list)
                for seed in range(arguments.draws):
                    results = measure_draw(source, normalize, planted, share, seed)
                    for kind, row in results.items():
                        draws[kind].append(row)
                print_rows(name, planted, share, draws)


if __name__ == "__main__":
    main()
