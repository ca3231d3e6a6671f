"""Compare retrieval metrics of 5,000 images and 25,000 captions of COCO with eccv_caption 0.1.0.

    OMP_NUM_THREADS=1 python benchmarks/caption_metrics.py [--quick]

The metrics are R@k of COCO 1K and 5K, R@k of CxC, and R@1, R-Precision and mAP@R of ECCV Caption,
in both directions. The scores are random, random with many ties, or rank the own or the relevant
pairs first. All values must agree to 1e-9. eccv_caption receives ranked lists of 500 items, as in
the code of PCME++; the time to sort these lists is printed separately. surelabel receives the score
matrix. The script prints processor seconds, their ratio, and the peak memory of surelabel in
addition to the score matrix. It needs eccv_caption 0.1.0 with its annotations, which is not a
dependency of the package.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import eccv_caption
import numpy as np
from eccv_caption import Metrics

from surelabel.retrieval.caption_retrieval.image_folds import recall_in_image_folds
from surelabel.retrieval.caption_retrieval.query_metrics import (
    query_average_precision_at_r,
    query_r_precision,
    query_recall_at_k,
)
from surelabel.retrieval.caption_retrieval.relevant_items import NOT_RANKED, relevant_items_of_lists
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks

LIST_LENGTH, CUTOFFS, TOLERANCE = 500, (1, 5, 10), 1e-9
METRICS = (
    "coco_1k_recalls",
    "coco_5k_recalls",
    "cxc_recalls",
    "eccv_r1",
    "eccv_map_at_r",
    "eccv_rprecision",
)
MAPS = {"coco_5k": "original", "cxc": "cxc", "eccv": "eccv"}
DIRECTIONS = {"i2t": "image_to_caption", "t2i": "caption_to_image"}
Lists = dict[tuple[str, str], list[list[int]]]


class Annotations:
    """Ids in the order of COCO, and the rows of relevant items by map and direction."""

    def __init__(self) -> None:
        """Read the annotations of the package."""
        folder = Path(eccv_caption.__file__).parent / "data"
        self.caption_ids = np.load(folder / "coco_test_ids.npy")
        own = json.loads((folder / "original_caption_to_image.json").read_text())
        image_of_caption = [own[str(caption)][0] for caption in self.caption_ids]
        self.image_ids = np.array(list(dict.fromkeys(image_of_caption)))
        rows = {image: row for row, image in enumerate(self.image_ids.tolist())}
        columns = {caption: row for row, caption in enumerate(self.caption_ids.tolist())}
        self.image_rows = np.array([rows[image] for image in image_of_caption])
        self.lists: Lists = {}
        for prefix, name in MAPS.items():
            for direction, file in DIRECTIONS.items():
                queries, items = (rows, columns) if direction == "i2t" else (columns, rows)
                lists: list[list[int]] = [[] for _ in queries]
                content = json.loads((folder / f"{name}_{file}.json").read_text())
                for query, relevant in content.items():
                    lists[queries[int(query)]] = [items.get(item, NOT_RANKED) for item in relevant]
                self.lists[prefix, direction] = lists


def our_metrics(scores: np.ndarray, annotations: Annotations) -> dict[tuple[str, str], float]:
    """Return all metrics of surelabel by name and direction."""
    folds = np.split(np.arange(len(scores)), 5)
    recall = recall_in_image_folds(scores, annotations.image_rows, folds)
    values = {}
    for direction, file in DIRECTIONS.items():
        for k in CUTOFFS:
            values[f"coco_1k_r{k}", direction] = getattr(recall, file)[k]
        matrix = scores if direction == "i2t" else scores.T
        for prefix in MAPS:
            relevant = relevant_items_of_lists(annotations.lists[prefix, direction])
            ranks = compute_relevant_ranks(matrix, relevant)
            if prefix == "eccv":
                values["eccv_r1", direction] = query_recall_at_k(ranks, k=1).mean()
                values["eccv_map_at_r", direction] = query_average_precision_at_r(ranks).mean()
                values["eccv_rprecision", direction] = query_r_precision(ranks).mean()
                continue
            for k in CUTOFFS:
                values[f"{prefix}_r{k}", direction] = query_recall_at_k(ranks, k=k).mean()
    return values


def ranked_lists(
    matrix: np.ndarray, query_ids: np.ndarray, item_ids: np.ndarray
) -> dict[int, list[int]]:
    """Return the first items of a stable sort, as ids by query id."""
    lists = {}
    for query, row in zip(query_ids.tolist(), matrix, strict=True):
        lists[query] = item_ids[np.argsort(-row, kind="stable")[:LIST_LENGTH]].tolist()
    return lists


def score_matrices(annotations: Annotations, quick: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the scores of each kind of ranking, one at a time."""
    shape = len(annotations.image_ids), len(annotations.caption_ids)
    random = np.random.default_rng(0)
    yield "random", random.random(shape, dtype=np.float32)
    if quick:
        return
    yield "random with ties", random.integers(2000, size=shape).astype(np.float32)
    for prefix in MAPS:
        scores = random.random(shape, dtype=np.float32)
        for row, columns in enumerate(annotations.lists[prefix, "i2t"]):
            scores[row, [c for c in columns if c != NOT_RANKED]] += 1
        for column, rows in enumerate(annotations.lists[prefix, "t2i"]):
            scores[rows, column] += 1
        yield f"ideal for {prefix}", scores


def main() -> None:
    """Compare and time both implementations on each kind of ranking."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="random scores only")
    annotations, package = Annotations(), Metrics()
    for name, scores in score_matrices(annotations, parser.parse_args().quick):
        start = time.process_time()
        ours = our_metrics(scores, annotations)
        our_seconds = time.process_time() - start
        tracemalloc.start()
        our_metrics(scores, annotations)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = time.process_time()
        ids = annotations.image_ids, annotations.caption_ids
        lists = ranked_lists(scores, *ids), ranked_lists(scores.T, *ids[::-1])
        sort_seconds = time.process_time() - start
        start = time.process_time()
        theirs = package.compute_all_metrics(*lists, target_metrics=METRICS, Ks=CUTOFFS)
        their_seconds = time.process_time() - start
        differences = [
            abs(ours[metric, direction] - value)
            for metric, by_direction in theirs.items()
            for direction, value in by_direction.items()
        ]
        if len(differences) != len(ours) or max(differences) > TOLERANCE:
            raise SystemExit(
                f"{name}: both must have the same number of values, equal to {TOLERANCE}; got "
                f"{len(differences)} and {len(ours)} values, and a difference of "
                f"{max(differences):.1e}. Compare both implementations."
            )
        print(
            f"{name}: {len(differences)} values equal, largest difference {max(differences):.1e}; "
            f"mAP@R {ours['eccv_map_at_r', 'i2t']:.4f} / {ours['eccv_map_at_r', 't2i']:.4f}, "
            f"COCO 1K R@1 {ours['coco_1k_r1', 'i2t']:.4f} / {ours['coco_1k_r1', 't2i']:.4f}\n"
            f"  ours {our_seconds:.1f} s, eccv_caption {their_seconds:.1f} s after "
            f"{sort_seconds:.1f} s of sorting; time relative to ours: "
            f"{their_seconds / our_seconds:.1f} without the sort, "
            f"{(their_seconds + sort_seconds) / our_seconds:.1f} with it; "
            f"peak memory of ours {peak / 1e6:.0f} MB beside {scores.nbytes / 1e6:.0f} MB of scores"
        )


if __name__ == "__main__":
    main()
