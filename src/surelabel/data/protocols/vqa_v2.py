"""Define the evaluation protocol of VQA v2: questions about the images of COCO 2014."""

import os
from pathlib import Path

import numpy as np

from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.vqa_answers import read_vqa_answers

_ORIGIN = "visualqa.org"


def _read_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the questions of a split as texts of their images; answers are only checked.

    Raises:
        DataError: If a file is missing or damaged, or if a question has no annotation.
    """
    data = read_vqa_answers(
        folder / f"v2_OpenEnded_mscoco_{split.name}_questions.json",
        folder / f"v2_mscoco_{split.name}_annotations.json",
        images_root=folder / split.name,
        names=("yes", "no"),  # two columns instead of one for each of thousands of answers
    )
    paths = [os.path.relpath(path, folder).replace(os.sep, "/") for path in data.paths]
    row_of = {path: row for row, path in enumerate(dict.fromkeys(paths))}
    return ProtocolRows(
        list(row_of),
        [],
        np.zeros((len(row_of), 0)),
        list(data.questions),
        [row_of[path] for path in paths],
    )


VQA_V2 = EvaluationProtocol(
    title="VQA v2",
    task="questions",
    splits=(ProtocolSplit("train2014", "train"), ProtocolSplit("val2014", "test")),
    files=tuple(
        file
        for name in ("train2014", "val2014")
        for file in (
            ProtocolFile(f"v2_OpenEnded_mscoco_{name}_questions.json", "questions", _ORIGIN),
            ProtocolFile(f"v2_mscoco_{name}_annotations.json", "answers", _ORIGIN),
            ProtocolFile(name, "images", f"{name}.zip of the COCO website"),
        )
    ),
    read_split=_read_split,
    notes=(
        "The answers of the official test split are not public, so that val2014 is evaluated here; "
        "the counts are not verified.",
    ),
)
