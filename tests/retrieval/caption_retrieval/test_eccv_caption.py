"""All values of the ECCV Caption package on its annotations, where these are on this machine."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surelabel.retrieval.caption_retrieval.image_folds import recall_in_image_folds
from surelabel.retrieval.caption_retrieval.query_metrics import (
    query_average_precision_at_r,
    query_r_precision,
    query_recall_at_k,
)
from surelabel.retrieval.caption_retrieval.relevant_items import NOT_RANKED, relevant_items_of_lists
from surelabel.retrieval.caption_retrieval.relevant_ranks import compute_relevant_ranks
from surelabel.retrieval.caption_retrieval.top_items import top_items_of_queries

DATA = Path(__file__).parents[4] / "shared/data/captions_labels"
GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden/caption_retrieval.json").read_text(encoding="utf-8")
)["eccv_full_gt"]
MODULUS = 1000003


def read_map(name):
    """Return the relevant ids of each id."""
    content = json.loads((DATA / f"eccv_caption_{name}.json").read_text(encoding="utf-8"))
    return {int(key): values for key, values in content.items()}


def residues(image_ids, caption_ids):
    """Return (7919 i + 104729 c + i c) mod 1000003 plus 1/2, which float64 computes exactly."""
    values = np.multiply.outer(image_ids + 104729.0, caption_ids + 7919.0)
    values -= 104729 * 7919 - 0.5
    quotients = values * (1 / MODULUS)
    np.floor(quotients, out=quotients)
    quotients *= MODULUS
    values -= quotients
    return values


def add_bonuses(scores, image_ids, caption_ids, direction, sign=1):
    """Add the terms of the rule for relevant pairs, which differ between the directions."""
    for name, factor, has_bonus in (
        ("original", 2, lambda i, c: (i + c) % 3 == 0),
        ("cxc", 1, lambda i, c: (i + c) % 2 == 0),
        ("eccv", 1, lambda i, c: (7 * i + c) % 5 < 2),
    ):
        queries = read_map(f"{name}_{direction}").items()
        pairs = np.array([(query, item) for query, items in queries for item in items])
        i, c = pairs.T if direction == "image_to_caption" else pairs.T[::-1]
        i, c = i[has_bonus(i, c)], c[has_bonus(i, c)]
        is_ranked = np.isin(c, caption_ids)
        rows = np.searchsorted(image_ids, i[is_ranked])
        columns = np.searchsorted(caption_ids, c[is_ranked])
        scores[rows, columns] += sign * factor * MODULUS


def ranks_by_map(matrix, query_ids, item_ids, direction):
    """Return the ranks of the items that each file of annotations lists; the items once."""
    row = {int(query): row for row, query in enumerate(query_ids)}
    column = {int(item): column for column, item in enumerate(item_ids)}
    listed = {name: [[] for _ in row] for name in ("original", "cxc", "eccv")}
    for name, lists in listed.items():
        for query, items in read_map(f"{name}_{direction}").items():
            lists[row[query]] = [column.get(item, NOT_RANKED) for item in items]
    union = [sorted(set().union(*lists)) for lists in zip(*listed.values(), strict=True)]
    ranks = compute_relevant_ranks(matrix, relevant_items_of_lists(union))
    return {
        name: replace(
            ranks,
            is_own=np.array(
                [item in part for items, part in zip(union, lists, strict=True) for item in items]
            ),
        ).own()
        for name, lists in listed.items()
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the annotations of ECCV Caption")
def test_every_value_equals_the_package():
    own = read_map("original_caption_to_image")
    table = (DATA / "coco_karpathy5k_captions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    captions_in_order = np.array([int(line.split("\t")[1]) for line in table])
    images_in_order = np.array(list(dict.fromkeys(own[c][0] for c in captions_in_order)))
    image_ids, caption_ids = np.sort(images_in_order), np.sort(captions_in_order)  # ties by id
    scores = np.empty((len(image_ids), len(caption_ids)), np.float32)  # below 2**24: exact
    for start in range(0, len(image_ids), 4):
        scores[start : start + 4] = residues(image_ids[start : start + 4], caption_ids)
    image_rows = np.searchsorted(image_ids, [own[int(c)][0] for c in caption_ids])
    folds = [np.searchsorted(image_ids, fold) for fold in np.split(images_in_order, 5)]

    found = {}
    for short, direction in (("i2t", "image_to_caption"), ("t2i", "caption_to_image")):
        add_bonuses(scores, image_ids, caption_ids, direction)
        ids, matrix, first = (image_ids, caption_ids), scores, "first_image"
        if short == "t2i":
            ids, matrix, first = ids[::-1], scores.T, "first_caption"
        query = int(np.searchsorted(ids[0], GOLDEN[first]))
        top = top_items_of_queries(matrix[query][None], k=10)[0]
        assert ids[1][top].tolist() == GOLDEN[f"{first}_top10"]
        recall = getattr(recall_in_image_folds(scores, image_rows, folds), direction)
        found |= {(f"coco_1k_r{k}", short): value for k, value in recall.items()}
        for name, ranks in ranks_by_map(matrix, *ids, direction).items():
            prefix = name.replace("original", "coco_5k")
            for k in (1, 5, 10):
                found[f"{prefix}_r{k}", short] = query_recall_at_k(ranks, k=k).mean()
        found["eccv_map_at_r", short] = query_average_precision_at_r(ranks).mean()
        found["eccv_rprecision", short] = query_r_precision(ranks).mean()
        add_bonuses(scores, image_ids, caption_ids, direction, sign=-1)

    for metric, expected in GOLDEN["scores"].items():
        for short, value in expected.items():
            assert found[metric, short] == pytest.approx(value, abs=1e-12), metric
