"""Measure the speed of the retrieval mAP over all conjunctions, for 10,000 images × 80 labels.

The log-odds are simulated and calibrated, and each label is positive in 0.5 to 15 % of the images.
All times are measured on one core. One run evaluates all queries of up to 3 labels, and 2,000
queries of each shape of 4 and 5 labels. A shape is a number of wanted and a number of unwanted
labels. A second run with another seed shows the difference between two samples. The peer is
``average_precision_score`` of scikit-learn, which is timed on a few queries of each shape; both
must return equal values.

    python benchmarks/retrieval.py [--quick]
"""

import sys
import time

import numpy as np
from scipy.special import expit
from sklearn.metrics import average_precision_score

from surelabel.retrieval.conjunction_map import (
    QueryAveragePrecision,
    mean_average_precision_of_conjunctions,
)
from surelabel.retrieval.literal_scores import (
    average_precision_of_literal_scores,
    compute_literal_scores,
)

IMAGES, LABELS, PEER_QUERIES = 10_000, 80, 30

random = np.random.default_rng(0)
LOGITS = random.normal(random.normal(-4.8, 1.0, LABELS), 1.7, (IMAGES, LABELS))
TARGETS = random.random(LOGITS.shape) < expit(LOGITS)


def print_progress(done: int, total: int) -> None:
    """Print the number of evaluated queries at intervals."""
    if done % 50_000 == 0:
        print(f"  {done:,} of at most {total:,}", file=sys.stderr)


def evaluate(seed: int, max_exact_literals: int) -> tuple[QueryAveragePrecision, float]:
    """Return the result of one run, and its processor seconds."""
    start = time.process_time()
    precision = mean_average_precision_of_conjunctions(
        LOGITS,
        TARGETS,
        max_exact_literals=max_exact_literals,
        seed=seed,
        progress=print_progress,
    )
    return precision, time.process_time() - start


def peer_ratio(precision: QueryAveragePrecision) -> float:
    """Return the time of scikit-learn divided by that of surelabel; raise if the values differ."""
    literal_scores = compute_literal_scores(LOGITS, TARGETS)
    queries = [q for shape in precision.by_shape for q in shape.sampled_queries[:PEER_QUERIES]]
    rankings = [
        (literal_scores.query_scores(query), literal_scores.relevant_images(query))
        for query in queries
    ]
    start = time.process_time()
    values = [
        average_precision_of_literal_scores(scores, relevant) for scores, relevant in rankings
    ]
    middle = time.process_time()
    peer_values = [average_precision_score(relevant, scores) for scores, relevant in rankings]
    end = time.process_time()
    np.testing.assert_allclose(values, peer_values)
    return (end - middle) / (middle - start)


def main() -> None:
    """Print the precision of each shape and length, and the time."""
    max_exact = 2 if "--quick" in sys.argv else 3
    print(
        f"{IMAGES:,} × {LABELS}, {TARGETS.mean():.3f} positive, all queries of up to {max_exact} "
        f"labels"
    )
    precision, seconds = evaluate(0, max_exact)
    for shape in precision.by_shape:
        share = shape.fulfilled / shape.queries
        print(
            f"{shape.wanted}+{shape.unwanted}  {shape.queries:>12,} queries, {share:7.2%} "
            f"fulfilled, {shape.evaluated:>8,} evaluated, mAP {shape.mean:.4f} ± "
            f"{shape.standard_error:.4f}"
        )
    print("mAP by length", format_curve(precision))
    print(
        f"overall {precision.mean:.4f} ± {precision.standard_error:.4f}, {seconds:.0f} s, "
        f"{peer_ratio(precision):.1f} times as fast as scikit-learn on the rankings"
    )
    other_sample, _ = evaluate(1, 1)
    print("other sample", format_curve(other_sample))


def format_curve(precision: QueryAveragePrecision) -> dict[int, str]:
    """Return mean and standard error as text, by query length."""
    return {p.length: f"{p.mean:.4f} ± {p.standard_error:.4f}" for p in precision.curve}


if __name__ == "__main__":
    main()
