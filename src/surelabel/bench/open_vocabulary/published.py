"""This module contains tables 5, 6, 9, 10 and 11 of "Recover and Match" (arXiv:2503.15337).

Tan et al., Recover and Match: Open-Vocabulary Multi-Label Recognition through Knowledge-Constrained
Optimal Transport, CVPR 2025, arXiv:2503.15337. The values are F1@3 in percent from one run each,
without intervals, in this order: zero-shot and generalized zero-shot on NUS-WIDE, zero-shot and
generalized zero-shot on COCO. The paper does not print the values of figure 11.
"""

from surelabel.bench.open_vocabulary.plan import LOSSES, MATCHING, OTHER_METHODS, PARTS, PROMPTS

PAPER_ROW = "with the paper's prompts and loss"
MISSING = float("nan")
F1Scores = tuple[float, float, float, float]
COMPLETE: F1Scores = (48.4, 23.5, 54.5, 67.3)
PUBLISHED: dict[str, dict[str, F1Scores]] = {
    OTHER_METHODS: {PAPER_ROW: COMPLETE, "zero-shot": (37.1, 16.5, 43.5, 34.2)},
    MATCHING: {
        "average": (41.8, 22.0, 51.5, 65.5),
        "softmax re-weighting": (41.2, 18.2, 49.8, 63.6),
        "bipartite": (MISSING, MISSING, 51.9, 66.1),
        "optimal transport": (43.5, 22.3, 52.2, 66.8),
        "optimal transport, knowledge-constrained": COMPLETE,
    },
    PARTS: {
        "none": (40.6, 19.4, 50.6, 60.8),
        "self-aware attention": (41.0, 20.1, 51.2, 62.3),
        "spatial selection": (41.2, 21.8, 50.9, 64.5),
        "both": (41.8, 22.0, 51.5, 65.5),
        "both, transport": (43.5, 22.3, 52.2, 66.8),
        "both, transport, presence": (47.1, 22.9, 53.9, 67.0),
        "both, transport, knowledge": (44.9, 22.6, 53.7, 66.9),
        "all": COMPLETE,
        "all without self-aware attention": (45.2, 22.5, 52.9, 66.8),
        "all without spatial selection": (47.6, 23.2, 53.6, 67.0),
    },
    PROMPTS: {
        "none": (41.2, 20.3, 52.7, 66.7),
        "2": (46.4, 22.9, 54.5, 67.1),
        "4": COMPLETE,
        "8": (47.9, 23.4, 54.1, 67.7),
        "16": (47.9, 23.3, 53.6, 67.5),
    },
    LOSSES: {
        "multi-matching": COMPLETE,
        "InfoNCE": (45.6, 24.2, 53.8, 67.7),
        "ranking": (41.3, 20.8, 53.5, 66.4),
        "asymmetric": (43.2, 22.4, 53.3, 66.9),
    },
}
