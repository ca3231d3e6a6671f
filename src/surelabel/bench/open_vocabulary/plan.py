"""What is measured, and how much work that is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Progress = Callable[[int, int], None]
Changed = dict[str, dict[str, Any]]  # section of a run → what differs there


@dataclass(frozen=True)
class Plan:
    """How much work is done.

    Attributes:
        drawn: Training pictures before those that show an unseen label are removed.
        train: At most so many of the rest.
        validation: Labelled pictures that calibrate, by their seen labels.
        test: Labelled pictures to measure on.
        seeds: Recognizers of each kind.
        epochs: Passes of those that match regions; the others keep their own recipe.
        exchanged: Of the test pictures, those that other names are asked of.
        added: Names that are added then.
        timed: Training pictures that speed and memory are measured with.
        draws: Resamples of test pictures, for each interval.
    """

    drawn: int = 1300
    train: int = 600
    validation: int = 300
    test: int = 1000
    seeds: int = 5
    epochs: int = 3
    exchanged: int = 500
    added: int = 1000
    timed: int = 96
    draws: int = 300


FULL = Plan()
QUICK = Plan(
    drawn=350,
    train=200,
    validation=100,
    test=200,
    seeds=2,
    epochs=1,
    exchanged=50,
    added=100,
    timed=32,
    draws=100,
)

REFERENCE = "recover and match"
NAME = "recover_match"
PLAIN = {"knowledge": 0.0, "presence": 0.0}
USUAL: dict[str, Any] = {  # what the parts of the paper are; prompts and loss are our own
    "depth": 3,
    "first": 0,
    "self_aware": True,
    "selection": True,
    "transport": "sinkhorn",
    "regularization": 0.1,
    "presence": 10.0,
}
KNOWLEDGE = {"photo": 0.05, "sketch": 0.01, "night": 0.01}  # lambda2; the paper's far domains: 0.01
FROZEN = {"transport": "average", **PLAIN, "self_aware": False, "selection": False}

BESIDE = "Beside others"
MATCHING = "Matching (table 5)"
PARTS = "Parts (tables 6 and 11)"
PROMPTS = "Learnt tokens in each text layer (table 9)"
LOSSES = "Losses (table 10)"
LAYERS = "Where the ladder begins (figure 11)"

TABLES: dict[str, dict[str, Changed]] = {
    BESIDE: {
        REFERENCE: {},
        "with the paper's prompts and loss": {
            "method": {"prompts": 4},
            "loss": {"name": "multi_matching"},
        },
        "zero-shot": {"method": {"name": "zero_shot"}},
        "dense regions": {"method": {"name": "dense_regions"}},
        "adapter on the same pictures": {"method": {"name": "clip_adapter"}},
    },
    MATCHING: {
        "average": {"method": {"transport": "average", **PLAIN}},
        "softmax re-weighting": {"method": {"transport": "softmax", **PLAIN}},
        "bipartite": {"method": {"transport": "bipartite", **PLAIN}},
        "optimal transport": {"method": dict(PLAIN)},
        "the same, knowledge-constrained": {},
    },
    PARTS: {
        "none": {"method": FROZEN},
        "self-aware attention": {"method": FROZEN | {"self_aware": True}},
        "spatial selection": {"method": FROZEN | {"selection": True}},
        "both": {"method": FROZEN | {"self_aware": True, "selection": True}},
        "both, transport": {"method": dict(PLAIN)},
        "both, transport, presence": {"method": {"knowledge": 0.0}},
        "both, transport, knowledge": {"method": {"presence": 0.0}},
        "all": {},
        "all without self-aware attention": {"method": {"self_aware": False}},
        "all without spatial selection": {"method": {"selection": False}},
    },
    PROMPTS: {
        "none": {"method": {"prompts": 0}},
        "1": {"method": {"prompts": 1}},
        "2": {"method": {"prompts": 2}},
        "4": {"method": {"prompts": 4}},
        "8": {"method": {"prompts": 8}},
        "16": {"method": {"prompts": 16}},
    },
    LOSSES: {
        "multi-matching": {"loss": {"name": "multi_matching"}},
        "InfoNCE": {"loss": {"name": "info_nce"}},
        "ranking": {"loss": {"name": "ranking"}},
        "asymmetric": {"loss": {"name": "asymmetric"}},
        "binary": {"loss": {"name": "binary"}},
    },
    LAYERS: {
        "networks in the last block": {"method": {"depth": 1}},
        "in the last 2": {"method": {"depth": 2}},
        "in the last 3": {"method": {"depth": 3}},
        "in the last 4": {"method": {"depth": 4}},
        "in all 6": {"method": {"depth": 6}},
        "in the last 3, attention from block 2 on": {"method": {"first": 1}},
        "in the last 3, attention from block 4 on": {"method": {"first": 3}},
    },
}

LEARNT = {"prompts": 4}
COSTS: dict[str, Changed] = {  # table 12
    "prompted names alone": {"method": FROZEN | LEARNT},
    "with the ladder": {"method": FROZEN | LEARNT | {"self_aware": True, "selection": True}},
    "with ladder and matching": {"method": LEARNT},
    "the same, names as they are": {},
    "prompts in all layers of both towers": {
        "method": FROZEN | LEARNT | {"depth": 6, "visual_prompts": 4, "text_layers": 12}
    },
}
PROMPTED = "prompts in all layers of both towers"
GOAL = 0.6  # of its training memory


def changes() -> Iterator[Changed]:
    """What differs in each row of each table."""
    for rows in TABLES.values():
        yield from rows.values()
