"""Define table rows, sizes and settings of the open-vocabulary comparison."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

RunChanges = dict[str, dict[str, Any]]  # changed settings by run section


@dataclass(frozen=True)
class OpenVocabularyPlan:
    """Sizes and settings of the open-vocabulary comparison.

    Attributes:
        train_candidates: Number of training images before images with an unseen class are removed.
        train: Maximum number of training images after images with an unseen class are removed.
        validation: Number of images for calibration, annotated with the seen classes only.
        test: Number of test images.
        seeds: Number of recognizers of each row, one for each seed. Untrained methods have one
            recognizer.
        epochs: Number of epochs of recover and match. Other methods use their default.
        vocabulary_change_images: Number of test images on which the effect of added labels is
            measured.
        added_names: Number of labels added to the vocabulary.
        timed_images: Number of training images for the measurement of speed and memory.
        resamples: Number of resamples of the test images for each interval.
        encoder: Name of the encoder of all methods, whose blocks can be run separately.
    """

    train_candidates: int = 1300
    train: int = 600
    validation: int = 300
    test: int = 1000
    seeds: int = 5
    epochs: int = 3
    vocabulary_change_images: int = 500
    added_names: int = 1000
    timed_images: int = 96
    resamples: int = 300
    encoder: str = "tiny-vit"


FULL = OpenVocabularyPlan()
QUICK = OpenVocabularyPlan(
    train_candidates=350,
    train=200,
    validation=100,
    test=200,
    seeds=2,
    epochs=1,
    vocabulary_change_images=50,
    added_names=100,
    timed_images=32,
    resamples=100,
)

REFERENCE = "recover and match"
METHOD_NAME = "recover_match"
WITHOUT_PRIORS = {"knowledge_weight": 0.0, "presence_scale": 0.0}
PAPER_SETTINGS: dict[str, Any] = {  # of the paper, except prompts and loss
    "depth": 3,
    "first_block": 0,
    "self_aware": True,
    "text_guided_selection": True,
    "transport": "sinkhorn",
    "regularization": 0.1,
    "presence_scale": 10.0,
}
# weight lambda2 by domain; the paper uses 0.01 for domains that differ from photographs
KNOWLEDGE_WEIGHT = {"photo": 0.05, "sketch": 0.01, "night": 0.01}
AVERAGE_POOLING = {
    "transport": "average",
    **WITHOUT_PRIORS,
    "self_aware": False,
    "text_guided_selection": False,
}

OTHER_METHODS = "Comparison with other methods"
MATCHING = "Matching (table 5)"
PARTS = "Parts (tables 6 and 11)"
PROMPTS = "Learned prompt tokens per text layer (table 9)"
LOSSES = "Losses (table 10)"
LAYERS = "Depth of the ladder (figure 11)"

TABLES: dict[str, dict[str, RunChanges]] = {
    OTHER_METHODS: {
        REFERENCE: {},
        "with the paper's prompts and loss": {
            "method": {"text_prompts": 4},
            "loss": {"name": "multi_matching"},
        },
        "zero-shot": {"method": {"name": "zero_shot"}},
        "dense regions": {"method": {"name": "dense_regions"}},
        "clip_adapter on the same images": {"method": {"name": "clip_adapter"}},
    },
    MATCHING: {
        "average": {"method": {"transport": "average", **WITHOUT_PRIORS}},
        "softmax re-weighting": {"method": {"transport": "softmax", **WITHOUT_PRIORS}},
        "bipartite": {"method": {"transport": "bipartite", **WITHOUT_PRIORS}},
        "optimal transport": {"method": dict(WITHOUT_PRIORS)},
        "optimal transport, knowledge-constrained": {},
    },
    PARTS: {
        "none": {"method": AVERAGE_POOLING},
        "self-aware attention": {"method": AVERAGE_POOLING | {"self_aware": True}},
        "spatial selection": {"method": AVERAGE_POOLING | {"text_guided_selection": True}},
        "both": {"method": AVERAGE_POOLING | {"self_aware": True, "text_guided_selection": True}},
        "both, transport": {"method": dict(WITHOUT_PRIORS)},
        "both, transport, presence": {"method": {"knowledge_weight": 0.0}},
        "both, transport, knowledge": {"method": {"presence_scale": 0.0}},
        "all": {},
        "all without self-aware attention": {"method": {"self_aware": False}},
        "all without spatial selection": {"method": {"text_guided_selection": False}},
    },
    PROMPTS: {
        "none": {"method": {"text_prompts": 0}},
        "1": {"method": {"text_prompts": 1}},
        "2": {"method": {"text_prompts": 2}},
        "4": {"method": {"text_prompts": 4}},
        "8": {"method": {"text_prompts": 8}},
        "16": {"method": {"text_prompts": 16}},
    },
    LOSSES: {
        "multi-matching": {"loss": {"name": "multi_matching"}},
        "InfoNCE": {"loss": {"name": "info_nce"}},
        "ranking": {"loss": {"name": "ranking"}},
        "asymmetric": {"loss": {"name": "asymmetric"}},
        "binary": {"loss": {"name": "binary"}},
    },
    LAYERS: {
        "ladder in the last block": {"method": {"depth": 1}},
        "ladder in the last 2 blocks": {"method": {"depth": 2}},
        "ladder in the last 3 blocks": {"method": {"depth": 3}},
        "ladder in the last 4 blocks": {"method": {"depth": 4}},
        "ladder in all 6 blocks": {"method": {"depth": 6}},
        "ladder in the last 3 blocks, attention from block 2 on": {"method": {"first_block": 1}},
        "ladder in the last 3 blocks, attention from block 4 on": {"method": {"first_block": 3}},
    },
}

LEARNED_PROMPTS = {"text_prompts": 4}
COST_ROWS: dict[str, RunChanges] = {  # rows of table 12 of the paper
    "prompted labels only": {"method": AVERAGE_POOLING | LEARNED_PROMPTS},
    "with the ladder": {
        "method": AVERAGE_POOLING
        | LEARNED_PROMPTS
        | {"self_aware": True, "text_guided_selection": True}
    },
    "with ladder and matching": {"method": LEARNED_PROMPTS},
    "with ladder and matching, without prompts": {},
    "prompts in all layers of both towers": {
        "method": AVERAGE_POOLING
        | LEARNED_PROMPTS
        | {"depth": 6, "visual_prompts": 4, "text_prompt_layers": 12}
    },
}
ALL_LAYER_PROMPTS = "prompts in all layers of both towers"
MEMORY_GOAL = 0.6  # largest fraction of the training memory of prompts in all layers


def open_vocabulary_plan_changes() -> Iterator[RunChanges]:
    """Iterate over the changed settings of each row, table by table."""
    for rows in TABLES.values():
        yield from rows.values()
