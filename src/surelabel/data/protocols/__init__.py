"""This package defines evaluation protocols: labels, splits, counts and files of public datasets.

Each count has a source, or is stated as not verified. To add an evaluation protocol, add one file
and one line to ``PROTOCOLS``.
"""

from surelabel.data.protocols.definition.evaluation_protocol import (
    NOT_VERIFIED,
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.folder_check import (
    ProtocolCheck,
    SplitCheck,
    check_protocol_folder,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows
from surelabel.data.protocols.voc12 import VOC12

PROTOCOLS: dict[str, EvaluationProtocol] = {
    "voc12": VOC12,
}

__all__ = [
    "NOT_VERIFIED",
    "PROTOCOLS",
    "EvaluationProtocol",
    "ProtocolCheck",
    "ProtocolFile",
    "ProtocolRows",
    "ProtocolSplit",
    "SourcedCount",
    "SplitCheck",
    "check_protocol_folder",
]
