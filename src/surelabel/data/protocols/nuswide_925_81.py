"""Define the open-vocabulary evaluation protocol of NUS-WIDE: 925 seen and 81 unseen labels."""

from pathlib import Path
from typing import Literal

import numpy as np

from surelabel.arrays import Array
from surelabel.data.labels.nuswide import read_nuswide_targets
from surelabel.data.protocols.definition.evaluation_protocol import (
    NOT_VERIFIED,
    ZERO_SHOT_METRICS,
    EvaluationProtocol,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.nuswide_layout import (
    IMAGES,
    VOCABULARY,
    nuswide_files,
    nuswide_splits,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.errors import DataError
from surelabel.mapped_arrays import mapped_zeros


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the tags that are no concepts in alphabetical order, followed by the concepts.

    Raises:
        DataError: If a file is missing or invalid, or if the lists of tags and concepts are not
            those of NUS-WIDE.
    """
    part: Literal["train", "test"] = "train" if split.role == "train" else "test"
    images, concepts, of_concepts = read_nuswide_targets(folder, part)
    _, tags, of_tags = read_nuswide_targets(folder, part, has_tags=True)
    seen = sorted({*tags} - {*concepts})
    if len(tags) != 1000 or seen != list(VOCABULARY.seen):
        raise DataError(
            f"{folder}/NUS_WID_Tags/TagList1k.txt must have 1,000 tags, of which "
            f"{len(VOCABULARY.seen)} are no concepts; got {len(tags):,} and {len(seen)}, or other "
            "tags. Restore the official file."
        )
    targets: Array = mapped_zeros((len(images), len(seen) + len(concepts)), np.float32)
    column_of = {tag: column for column, tag in enumerate(tags)}
    for column, tag in enumerate(seen):
        targets[:, column] = of_tags[:, column_of[tag]]
    targets[:, len(seen) :] = of_concepts
    return ProtocolRows([f"{IMAGES}/{image}" for image in images], [*seen, *concepts], targets)


NUSWIDE_925_81 = EvaluationProtocol(
    title="NUS-WIDE, 925 seen and 81 unseen labels",
    task="labels",
    labels=VOCABULARY.names,
    label_source=(
        "TagList1k.txt without the 75 tags that are concepts, and Concepts81.txt, each in "
        "alphabetical order"
    ),
    splits=nuswide_splits(
        "all images of the official list; this rule is ours, because the lists of the papers "
        "could not be read",
        NOT_VERIFIED,
    ),
    files=nuswide_files(has_tags=True),
    read_split=_read_split,
    metrics=ZERO_SHOT_METRICS,
    empty_labels="zero",
    comparisons=("open-vocabulary",),
    groups={"seen": VOCABULARY.seen, "unseen": VOCABULARY.unseen},
    notes=(
        "Targets of seen labels are tags of Flickr users; targets of unseen labels are the ground "
        "truth of the concepts.",
        "Papers also report precision, recall and F1 at 5 labels for each image.",
        "Recover And Match (RAM), Table 8, states 143K training and 59K test images; the lists are "
        "not published in a form that could be read.",
        "In the zero-shot test, LESA, MKT, TGF and CoMC keep images without an unseen label; CLIP, "
        "DualCoOp and RAM leave them out, so that precision and F1 are not comparable.",
    ),
)
