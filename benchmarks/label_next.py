"""Compare the order of ``label_next`` with random order, in rounds of 50 annotated rows.

    .venv/bin/python benchmarks/label_next.py FOLDER [--strategies]

FOLDER contains ``yeast-train.arff`` and ``yeast-test.arff`` of Mulan. The pool of Scenes has 4,000
training images, which are rendered into the cache folder on first use. The test images of Scenes
are the 1,000 test images inside the package. The vectors are those of tiny-vit. Each seed has a
different random sample. The first 50 rows are random in both orders; ``label_next`` then chooses
20 % at random.

``linear`` is trained by the training loop on all annotated rows. It is calibrated on 5 folds by the
calibrator that the column names, which is fitted on the random rows or on all rows.

mAP         Mean average precision on the test split, in %.
log loss    Mean log loss per target of the test split, in nats.
needed      Number of rows at which an order reaches the mAP of random order with 300 rows, by
            linear interpolation between rounds.

Intervals are 95 % t intervals over the seeds, of paired differences or of the number of rows. With
``--strategies``, other strategies choose the 80 % on Scenes, up to 300 rows.
"""

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from scipy.io import arff
from scipy.special import entr, expit

import surelabel as sl
from surelabel.arrays import Array, Flags
from surelabel.bench.image_splits import load_benchmark_scenes, render_benchmark_scenes
from surelabel.calibration import CALIBRATORS
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache, default_feature_cache_folder, encode_image_files
from surelabel.metrics import log_loss, mean_average_precision
from surelabel.recognizer.method_comparison import out_of_fold_scores
from surelabel.recognizer.vector_normalization import encoder_with_fitted_normalization

N_LABELS = 14  # number of label columns of yeast, the last columns of the files
N_POOL = 4000  # number of images in the pool of Scenes
ROUND, SEEDS, FOLDS = 50, 5, 5
GOAL = 300  # number of rows of random order whose mAP must be reached
MEASURED = (50, 100, 150, 200, 250, 300, 450, 600)
CALIBRATIONS = {  # name of a column: calibrator, and whether it is fitted on random rows only
    "beta": ("beta", True),
    "beta, all rows": ("beta", False),
    "hierarchical": ("hierarchical", True),
}
Rows = npt.NDArray[np.int64]
Result = dict[str, float]


def read_splits(folder: Path, name: str) -> tuple[sl.LabelledFeatures, sl.LabelledFeatures]:
    """Return the pool and the test split of a dataset."""
    if name == "yeast":
        return read_arff(folder / "yeast-train.arff"), read_arff(folder / "yeast-test.arff")
    encoder, cache = load_encoder("tiny-vit"), FeatureCache(default_feature_cache_folder())
    splits = []
    for images in (
        render_benchmark_scenes("train", domain="photo", count=N_POOL),
        load_benchmark_scenes("test", quick=True).images,
    ):
        encoded = encode_image_files(encoder, images.paths, cache=cache, workers=0, strict=True)
        vectors = encoded.features.pooled.float().numpy()
        splits.append(sl.LabelledFeatures(vectors, images.names, images.targets))
    return splits[0], splits[1]


def read_arff(path: Path) -> sl.LabelledFeatures:
    """Return the vectors and the targets of an ARFF file."""
    rows, attributes = arff.loadarff(path)
    columns = [rows[name].astype(np.float64) for name in attributes.names()]
    parts = (columns[:-N_LABELS], columns[-N_LABELS:])
    vectors, targets = (np.stack(part, axis=1) for part in parts)
    return sl.LabelledFeatures(vectors, attributes.names()[-N_LABELS:], targets)


def linear_recognizer(rows: sl.LabelledFeatures, seed: int) -> sl.Recognizer:
    """Return an unfitted recognizer with ``linear`` and the normalization of the rows."""
    width = rows.features.shape[1]
    settings = [
        f"encoder.name=features:{width}",
        "method.name=linear",
        "method.penalty_folds=0",
        f"seed={seed}",
    ]
    run = sl.load_run(None, settings)
    encoder = encoder_with_fitted_normalization(load_encoder(run.encoder.name), rows)
    return sl.Recognizer(run, rows.names, encoder=encoder)


def measure(rows: sl.LabelledFeatures, test: sl.LabelledFeatures, seed: int) -> Result:
    """Return the results of a fit on annotated rows, with each calibration."""
    plain = replace(rows, row_selection=None)
    fitted = linear_recognizer(plain, seed).fit(plain)
    scores = fitted.predict(test).scores
    result = {"mAP": 100 * mean_average_precision(scores, test.targets)}
    folds = out_of_fold_scores(linear_recognizer(plain, seed), plain, FOLDS)
    assert rows.row_selection is not None
    for column, (key, is_random_only) in CALIBRATIONS.items():
        used = rows.row_selection.is_random | (not is_random_only)
        calibrator = CALIBRATORS[key]().fit(folds.raw[used], folds.targets[used])
        probabilities = expit(calibrator.logits(fitted.logits_of(scores)))
        result[column] = log_loss(probabilities, test.targets)
    return result


def annotate(
    batch: sl.LabelledFeatures, rows: Sequence[int], targets: Array
) -> sl.LabelledFeatures:
    """Return the table of a batch with the true targets of its rows."""
    filled, known = batch.targets.copy(), batch.known.copy()
    filled[rows], known[rows] = targets[rows], True
    return replace(batch, targets=filled, known=known)


def learning_curve(
    pool: sl.LabelledFeatures,
    test: sl.LabelledFeatures,
    seed: int,
    choose: Callable[[sl.LabelledFeatures, int], tuple[sl.LabelledFeatures, Sequence[int]]],
    measured: Sequence[int],
) -> dict[int, Result]:
    """Return the results by number of annotated rows.

    Args:
        pool: All rows with their true targets.
        test: Test split.
        seed: Seed of the random sample and of the fits.
        choose: Function of the rows annotated so far and the seed that returns the table with the
            entries of a batch, and the indices of its rows.
        measured: Numbers of annotated rows at which a recognizer is fitted.
    """
    source = replace(pool, targets=np.full(pool.targets.shape, np.nan), known=None)
    results: dict[int, Result] = {}
    for n_rows in range(ROUND, measured[-1] + 1, ROUND):
        table, chosen = choose(source, seed)
        source = annotate(table, chosen, pool.targets)
        if n_rows in measured:
            annotated = source.take(np.flatnonzero(source.known.any(axis=1)))
            assert len(annotated) == n_rows
            results[n_rows] = measure(annotated, test, seed)
    return results


def order_of_label_next(
    random_share: float,
) -> Callable[..., tuple[sl.LabelledFeatures, Sequence[int]]]:
    """Return the function that chooses rows by ``label_next``."""

    def choose(source: sl.LabelledFeatures, seed: int) -> tuple[sl.LabelledFeatures, Sequence[int]]:
        batch = sl.label_next(source, count=ROUND, random_share=random_share, seed=seed)
        return batch.table, batch.rows

    return choose


def rows_needed(curve: Mapping[int, Result], goal: float) -> float:
    """Return the number of rows at which the mAP first reaches a goal."""
    before = 0
    for n_rows, result in curve.items():
        if result["mAP"] >= goal:
            low = curve[before]["mAP"] if before else goal
            share = (goal - low) / (result["mAP"] - low) if result["mAP"] > low else 1.0
            return before + share * (n_rows - before)
        before = n_rows
    return float("nan")


def interval(values: Sequence[float], digits: int, sign: str = "+") -> str:
    """Return the mean of values with its 95 % t interval."""
    mean, error = float(np.mean(values)), float(stats.sem(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    style = f"{sign}.{digits}f"
    return f"{mean:{style}} ({mean - half:{style}} to {mean + half:{style}})"


def print_curves(name: str, pool: sl.LabelledFeatures, test: sl.LabelledFeatures) -> None:
    """Print the table of a dataset."""
    orders = {"random": order_of_label_next(1.0), "label-next": order_of_label_next(0.2)}
    curves = {
        order: [learning_curve(pool, test, seed, choose, MEASURED) for seed in range(SEEDS)]
        for order, choose in orders.items()
    }
    for n_rows in MEASURED:
        by_order = {key: [curve[n_rows] for curve in curves[key]] for key in orders}
        mean = {k: {c: np.mean([r[c] for r in v]) for c in v[0]} for k, v in by_order.items()}
        pairs = list(zip(by_order["random"], by_order["label-next"], strict=True))
        cells = [
            name,
            str(n_rows),
            f"{mean['random']['mAP']:.1f}",
            f"{mean['label-next']['mAP']:.1f}",
            interval([ours["mAP"] - theirs["mAP"] for theirs, ours in pairs], 1),
            f"{mean['random']['beta']:.4f}",
            f"{mean['label-next']['beta']:.4f}",
            interval([ours["beta"] - theirs["beta"] for theirs, ours in pairs], 4),
            f"{mean['label-next']['beta, all rows']:.4f}",
            f"{mean['random']['hierarchical']:.4f}",
            f"{mean['label-next']['hierarchical']:.4f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    goals = [curve[GOAL]["mAP"] for curve in curves["random"]]
    ours = list(zip(curves["label-next"], goals, strict=True))
    needed = [rows_needed(curve, goal) for curve, goal in ours]
    gains = [curve[200]["mAP"] - goal for curve, goal in ours]
    print(
        f"<!-- {name}: needed for the mAP of random order with {GOAL} rows: "
        f"{', '.join(f'{n:.0f}' for n in needed)}; {interval(needed, 0, '')}; mAP of label-next "
        f"with 200 rows minus that: {interval(gains, 1)} -->"
    )


Strategy = Callable[[Array, Array, Array, Flags, Rows, int], Rows]


def by_entropy(
    probabilities: Array, vectors: Array, positives: Array, known: Flags, rows: Rows, n: int
) -> Rows:
    """Choose the rows with the highest mean entropy of a label."""
    entropy = (entr(probabilities) + entr(1 - probabilities)).sum(axis=1)
    return rows[np.argsort(-entropy[rows])[:n]]


def by_rare_positives(
    probabilities: Array, vectors: Array, positives: Array, known: Flags, rows: Rows, n: int
) -> Rows:
    """Choose rows with many expected positives of labels that have few annotated positives."""
    counts, chosen = positives + 1.0, list[int]()
    left = np.isin(np.arange(len(probabilities)), rows)
    for _ in range(n):
        gains = np.where(left, (probabilities / counts).sum(axis=1), -1)
        chosen.append(int(gains.argmax()))
        left[chosen[-1]] = False
        counts = counts + probabilities[chosen[-1]]
    return np.array(chosen)


def by_core_set(
    probabilities: Array, vectors: Array, positives: Array, known: Flags, rows: Rows, n: int
) -> Rows:
    """Choose the row that is farthest from annotated and chosen rows (k-center, core set)."""
    centred = vectors - vectors.mean(axis=0)
    nearest = np.min([((centred - centred[r]) ** 2).sum(1) for r in np.flatnonzero(known)], axis=0)
    return farthest_rows(centred, nearest, np.ones(len(vectors)), rows, n)


def by_gradient_diversity(
    probabilities: Array, vectors: Array, positives: Array, known: Flags, rows: Rows, n: int
) -> Rows:
    """Choose rows whose gradients of a linear head are diverse (BADGE without sampling)."""
    centred = vectors - vectors.mean(axis=0)
    residuals = np.sqrt(probabilities * (1 - probabilities))
    squares = (residuals**2).sum(axis=1) * (centred**2).sum(axis=1)
    nearest, chosen, left = squares.copy(), list[int](), np.isin(np.arange(len(vectors)), rows)
    for _ in range(n):
        row = int(np.where(left, nearest, -1).argmax())
        chosen.append(row)
        left[row] = False
        products = (residuals @ residuals[row]) * (centred @ centred[row])
        nearest = np.minimum(nearest, (squares + squares[row] - 2 * products).clip(0))
    return np.array(chosen)


def by_weighted_representatives(
    probabilities: Array, vectors: Array, positives: Array, known: Flags, rows: Rows, n: int
) -> Rows:
    """Choose rows by facility location; uncertain rows and rare labels have larger weights."""
    weights = (probabilities * (1 - probabilities) / (positives + 1)).sum(axis=1)
    squares = (vectors**2).sum(axis=1)
    distances = np.sqrt((squares[:, None] + squares - 2 * vectors @ vectors.T).clip(0))
    nearest, chosen, left = distances[known].min(axis=0), list[int](), set(rows.tolist())
    for _ in range(n):
        candidates = np.array(sorted(left))
        gains = (nearest - distances[candidates]).clip(0) @ weights
        chosen.append(int(candidates[gains.argmax()]))
        left.discard(chosen[-1])
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return np.array(chosen)


def farthest_rows(vectors: Array, nearest: Array, weights: Array, rows: Rows, n: int) -> Rows:
    """Return rows with the largest weighted squared distance to the rows chosen so far."""
    chosen, left = list[int](), np.isin(np.arange(len(vectors)), rows)
    for _ in range(n):
        row = int(np.where(left, nearest * weights, -1).argmax())
        chosen.append(row)
        left[row] = False
        nearest = np.minimum(nearest, ((vectors - vectors[row]) ** 2).sum(axis=1))
    return np.array(chosen)


STRATEGIES: dict[str, Strategy] = {
    "entropy": by_entropy,
    "expected positives of rare labels": by_rare_positives,
    "core set": by_core_set,
    "gradient diversity": by_gradient_diversity,
    "facility location, weighted": by_weighted_representatives,
}


def order_of_strategy(
    strategy: Strategy,
) -> Callable[..., tuple[sl.LabelledFeatures, Sequence[int]]]:
    """Return the function that replaces the rows of ``label_next`` by those of a strategy."""

    def choose(source: sl.LabelledFeatures, seed: int) -> tuple[sl.LabelledFeatures, Sequence[int]]:
        batch = sl.label_next(source, count=ROUND, seed=seed)
        if batch.n_random == len(batch):
            return batch.table, batch.rows
        known = source.known.any(axis=1)
        plain = replace(source.take(np.flatnonzero(known)), row_selection=None)
        fitted = linear_recognizer(plain, seed).fit(plain)
        logits = fitted.predict(replace(source, row_selection=None)).logits
        assert logits is not None
        random_rows = np.array(batch.rows[: batch.n_random])
        is_taken = known.copy()
        is_taken[random_rows] = True
        chosen = strategy(
            expit(logits.astype(np.float64)),
            source.features.astype(np.float64),
            plain.targets.sum(axis=0),
            is_taken,
            np.flatnonzero(~is_taken),
            len(batch) - batch.n_random,
        )
        selection = batch.table.row_selection
        keys = ["random" if key == "random" else "" for key in selection.chosen_by]
        for row in chosen:
            keys[row] = "other"
        entries = sl.RowSelection(keys, selection.inclusion_probability)
        return replace(batch.table, row_selection=entries), [*random_rows, *chosen]

    return choose


def print_strategies(pool: sl.LabelledFeatures, test: sl.LabelledFeatures) -> None:
    """Print the table of the strategies on Scenes."""
    measured = (50, 100, 150, 200, 250, 300)
    orders = {
        "random": order_of_label_next(1.0),
        "label-next": order_of_label_next(0.2),
        "label-next, random share 0.1": order_of_label_next(0.1),
        "label-next, random share 0.5": order_of_label_next(0.5),
        **{name: order_of_strategy(strategy) for name, strategy in STRATEGIES.items()},
    }
    print("| strategy | mAP %, 100 | 200 | 300 | log loss, 300 | needed | mAP, 300 − random |")
    print("|---|---|---|---|---|---|---|")
    references: list[dict[int, Result]] = []
    for name, choose in orders.items():
        curves = [learning_curve(pool, test, seed, choose, measured) for seed in range(SEEDS)]
        references = references or curves
        pairs = list(zip(curves, references, strict=True))
        needed = [rows_needed(curve, ref[GOAL]["mAP"]) for curve, ref in pairs]
        is_reached = not np.isnan(needed).any()
        cells = [
            name,
            *(f"{np.mean([c[n]['mAP'] for c in curves]):.1f}" for n in (100, 200, 300)),
            f"{np.mean([c[GOAL]['beta'] for c in curves]):.4f}",
            interval(needed, 0, "") if is_reached else f"above {GOAL} for some seeds",
            interval([c[GOAL]["mAP"] - r[GOAL]["mAP"] for c, r in pairs], 1),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strategies", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if arguments.strategies:
        print_strategies(*read_splits(arguments.folder, "scenes"))
    else:
        print(
            "| data | rows | mAP %: random | label-next | difference (95 %) | log loss, beta: "
            "random | label-next | difference (95 %) | label-next, all rows | hierarchical: random "
            "| label-next |"
        )
        print("|---" * 11 + "|")
        for name in ("scenes", "yeast"):
            print_curves(name, *read_splits(arguments.folder, name))
