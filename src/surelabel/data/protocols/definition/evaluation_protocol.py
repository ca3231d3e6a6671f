"""Define evaluation protocols: labels, splits, counts with their sources, files and metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from surelabel.data.protocols.definition.protocol_rows import ProtocolRows

ZERO_SHOT_METRICS: Mapping[str, Mapping[str, object]] = {
    "f1_at_k": {"k": 3},
    "precision_at_k": {"k": 3},
    "recall_at_k": {"k": 3},
    "mean_average_precision": {},
}  # of the papers on seen and unseen labels

ProtocolTask = Literal["labels", "captions", "questions"]
SplitRole = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class SourcedCount:
    """Number of images or captions, with the publication or file that states it.

    Attributes:
        value: Number, or None if no source states it.
        source: Publication, table or file. If ``value`` is None, the source is empty.
    """

    value: int | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) == bool(self.source):
            raise ValueError("A count must have a value and a source, or neither.")

    def __str__(self) -> str:
        return "not verified" if self.value is None else f"{self.value:,} ({self.source})"


NOT_VERIFIED = SourcedCount()


@dataclass(frozen=True)
class ProtocolSplit:
    """Split of a dataset in an evaluation protocol.

    Attributes:
        name: Official name, such as ``trainval``.
        role: Use of the split: ``train``, ``validation`` (selection of settings and calibration) or
            ``test``.
        official: Number of images of the published split.
        evaluated: Number of images that the papers evaluate, if it differs from ``official``.
        rule: Which images of the split are used, and how. A rule that no source gives states that
            it is ours.
    """

    name: str
    role: SplitRole
    official: SourcedCount = NOT_VERIFIED
    evaluated: SourcedCount = NOT_VERIFIED
    rule: str = "all images"


@dataclass(frozen=True)
class ProtocolFile:
    """File or folder that a folder of the dataset must contain.

    Attributes:
        path: Path relative to the folder of the dataset.
        content: What it contains.
        origin: Where it comes from.
    """

    path: str
    content: str
    origin: str


@dataclass(frozen=True)
class EvaluationProtocol:
    """Data and rules by which results of papers can be compared.

    Attributes:
        title: Name of the dataset, and of the variant if there are several.
        task: Annotations: ``labels``, ``captions`` or ``questions``.
        labels: Labels in the order of the columns. Aliases are separated by ``|``. An entry for
            captions or questions has no labels. An entry for labels whose source could not be read
            has none either; the files of the folder then define them.
        label_source: Source of the labels and their order.
        splits: Splits, in the order train, validation, test.
        files: Files that the folder must contain.
        read_split: Function that reads the annotations of a split. It is called with the folder and
            the split, and does not open images.
        metrics: Settings of each metric, by the key of the metric.
        empty_labels: Value of a label without positives in a mean over labels: ``excluded``, or
            ``zero`` if its average precision counts as 0.
        comparisons: Names of the comparisons of ``surelabel bench`` that the protocol fits.
        groups: Labels by group, such as ``seen`` and ``unseen``.
        notes: Differences between publications, and rules of this entry, one sentence each.
    """

    title: str
    task: ProtocolTask
    splits: tuple[ProtocolSplit, ...]
    files: tuple[ProtocolFile, ...]
    read_split: Callable[[Path, ProtocolSplit], ProtocolRows]
    labels: tuple[str, ...] = ()
    label_source: str = ""
    metrics: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    empty_labels: Literal["excluded", "zero"] = "excluded"
    comparisons: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def split(self, name: str) -> ProtocolSplit:
        """Return the split with an official name, or raise KeyError."""
        return next(split for split in self.splits if split.name == name)
