"""The whole protocol of conjunctive search on 10,000 pictures × 80 labels, on one core.

Made-up calibrated log-odds, each label in 0.5 to 15 % of the pictures. One pass judges all queries
of up to 3 labels and 2,000 of each shape of 4 and 5; a second one, of other draws, shows how far
apart two samples are. The peer is scikit-learn's ``average_precision_score``, timed on a few
queries of each shape; both must agree.

    python benchmarks/retrieval.py [--quick]
"""

import sys
import time

import numpy as np
from scipy.special import expit
from sklearn.metrics import average_precision_score

from surelabel.retrieval.judged import judged, precision_of
from surelabel.retrieval.protocol import QueryPrecision, mean_average_precision_of_queries

PICTURES, LABELS, FEW = 10_000, 80, 30

random = np.random.default_rng(0)
LOGITS = random.normal(random.normal(-4.8, 1.0, LABELS), 1.7, (PICTURES, LABELS))
TARGETS = random.random(LOGITS.shape) < expit(LOGITS)


def told(done: int, total: int) -> None:
    """Say how far it is."""
    if done % 50_000 == 0:
        print(f"  {done:,} of at most {total:,}", file=sys.stderr)


def run(seed: int, exact: int) -> tuple[QueryPrecision, float]:
    """One pass, and its processor seconds."""
    start = time.process_time()
    settings = {"exact_literals": exact, "seed": seed}
    found = mean_average_precision_of_queries(LOGITS, TARGETS, **settings, progress=told)
    return found, time.process_time() - start


def peer_ratio(found: QueryPrecision) -> float:
    """How much longer scikit-learn takes for the same queries; both sides must agree."""
    pictures = judged(LOGITS, TARGETS)
    queries = [query for cell in found.cells for query in cell.sample[:FEW]]
    data = [(pictures.scores(query), pictures.relevant(query)) for query in queries]
    start = time.process_time()
    ours = [precision_of(scores, relevant) for scores, relevant in data]
    middle = time.process_time()
    theirs = [average_precision_score(relevant, scores) for scores, relevant in data]
    end = time.process_time()
    np.testing.assert_allclose(ours, theirs)
    return (end - middle) / (middle - start)


def main() -> None:
    """Print the cells, the curve and the time."""
    exact = 2 if "--quick" in sys.argv else 3
    print(
        f"{PICTURES:,} × {LABELS}, {TARGETS.mean():.3f} present, all queries up to {exact} labels"
    )
    found, seconds = run(0, exact)
    for cell in found.cells:
        share = cell.fulfilled / cell.queries
        print(
            f"{cell.wanted}+{cell.unwanted}  {cell.queries:>12,} queries, {share:7.2%} fulfilled, "
            f"{cell.judged:>8,} judged, mAP {cell.mean:.4f} ± {cell.error:.4f}"
        )
    print("mAP by length", {p.length: f"{p.mean:.4f} ± {p.error:.4f}" for p in found.curve})
    print(
        f"overall {found.mean:.4f} ± {found.error:.4f}, {seconds:.0f} s, {peer_ratio(found):.1f} "
        f"times as fast as scikit-learn on the rankings"
    )
    again, _ = run(1, 1)
    print("other draws", {p.length: f"{p.mean:.4f} ± {p.error:.4f}" for p in again.curve})


if __name__ == "__main__":
    main()
