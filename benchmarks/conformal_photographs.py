"""Measure accepted and wrong shares of automatic labels and guaranteed searches of photographs.

    python benchmarks/conformal_photographs.py SCORES.npz [SPLITS]

SCORES.npz is the file of benchmarks/fusion.py with scores of CLIP RN50x64 for VOC2012 train. In
each random split, the recognizer of benchmarks/score_tables.py is calibrated on 300 images, the
p-values are computed from n other images, and the same 4,417 images are labelled and searched for
every n. A wrong share is 0 if nothing is accepted, and its mean is over the splits. The column
"above" counts the labels (or queries) whose mean wrong share minus two standard errors is above the
level. The splits share images, so the standard errors are underestimated.
"""

import argparse
import tempfile
import warnings
from collections import defaultdict

import numpy as np
from score_tables import calibrated, read_inputs

from surelabel.recognizer import auto_label, search_with_guarantee
from surelabel.records import LabelledScores
from surelabel.retrieval import Index, parse
from surelabel.retrieval.query import query_to_columns

CALIBRATOR_IMAGES, SIZES, LEVELS = 300, (100, 300, 1000), (0.05, 0.1, 0.2)
N_QUERIES = 20  # conjunctions of the 10 most frequent pairs of labels: both, first without second

Shares = dict[tuple[str, int, float], dict[str, list[tuple[float, float, bool]]]]


def label_shares(
    shares: Shares, calibration: LabelledScores, new: LabelledScores, recognizer, level: float
) -> None:
    """Add the wrong and the accepted share of each label and predicted target to ``shares``."""
    unlabelled = new.without_labels()
    result = auto_label(recognizer, calibration, unlabelled, max_wrong=level)
    is_wrong = result.accepted & (result.targets != new.targets)
    predicted = np.where(recognizer.predict(unlabelled).logits >= 0, 1, 0)
    for column, label in enumerate(result.names):
        for target, kind in ((1, "positive"), (0, "negative")):
            rows = predicted[:, column] == target
            accepted = result.accepted[rows, column].sum()
            wrong = is_wrong[rows, column].sum() / max(accepted, 1)
            row = (wrong, accepted / max(rows.sum(), 1), accepted > 0)
            shares[kind, len(calibration), level][label].append(row)


def query_shares(
    shares: Shares,
    calibration: LabelledScores,
    new: LabelledScores,
    recognizer,
    queries: list[str],
    level: float,
) -> None:
    """Add the wrong share of each query, and the found share of its matches, to ``shares``."""
    row_of_path = {path: row for row, path in enumerate(new.paths)}
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(folder, recognizer.predict(new), root="/")
        for query in queries:
            result = search_with_guarantee(
                index, query, calibration, recognizer=recognizer, max_wrong=level
            )
            matches = np.ones(len(new), dtype=bool)
            for column, sign in query_to_columns(parse(query), index.names):
                matches &= new.targets[:, column] == (sign > 0)
            rows = [row_of_path[hit.path] for hit in result.hits]
            n_right = matches[rows].sum()
            row = (
                1 - n_right / max(len(rows), 1) if rows else 0.0,
                n_right / matches.sum(),
                bool(rows),
            )
            shares["query", len(calibration), level][query].append(row)


def frequent_queries(scores: LabelledScores) -> list[str]:
    """Return queries of one label, and conjunctions of the most frequent pairs of labels."""
    together = np.triu(scores.targets.T @ scores.targets, 1)
    order = np.argsort(-together, axis=None)[: N_QUERIES // 2]
    pairs = [divmod(int(pair), len(scores.names)) for pair in order]
    names = [f'"{name}"' for name in scores.names]
    both = [f"{names[a]} & {names[b]}" for a, b in pairs]
    return [*names, *both, *(f"{names[a]} & !{names[b]}" for a, b in pairs)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", help="SCORES.npz of benchmarks/fusion.py")
    parser.add_argument("splits", type=int, nargs="?", default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    scores = read_inputs(options.scores)["cosines"]
    scores = scores.with_paths([f"/{path}" for path in scores.paths])
    queries = frequent_queries(scores)
    shares: Shares = defaultdict(lambda: defaultdict(list))
    for seed in range(options.splits):
        order = np.random.default_rng(seed).permutation(len(scores))
        first, others = order[:CALIBRATOR_IMAGES], order[CALIBRATOR_IMAGES:]
        recognizer = calibrated(scores.take(first))
        for n in SIZES:
            calibration, new = scores.take(others[:n]), scores.take(others[max(SIZES) :])
            for level in LEVELS:
                label_shares(shares, calibration, new, recognizer, level)
                query_shares(shares, calibration, new, recognizer, queries, level)
    print(
        "| claim | images | level | wrong share: mean | largest of a label ± 2 SE | above | splits "
        "with acceptance | share accepted (query: found) |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    for (kind, n, level), rows in sorted(shares.items()):
        values = np.array(list(rows.values()), dtype=float)  # (labels, splits, 3)
        mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        worst = int(mean[:, 0].argmax())
        above = int((mean[:, 0] - 2 * error[:, 0] > level).sum())
        print(
            f"| {kind} | {n} | {level} | {100 * mean[:, 0].mean():.2f} | "
            f"{100 * mean[worst, 0]:.2f} ± {200 * error[worst, 0]:.2f} | {above} of {len(mean)} | "
            f"{100 * mean[:, 2].mean():.1f} | {100 * mean[:, 1].mean():.1f} |"
        )


if __name__ == "__main__":
    main()
