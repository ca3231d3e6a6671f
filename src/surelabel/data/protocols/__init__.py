"""This package defines evaluation protocols: labels, splits, counts and files of public datasets.

Each count has a source, or is stated as not verified. To add an evaluation protocol, add one file
and one line to ``PROTOCOLS``.
"""

from surelabel.data.protocols.base_to_novel import BASE_TO_NOVEL
from surelabel.data.protocols.coco14 import COCO14
from surelabel.data.protocols.coco17 import COCO17
from surelabel.data.protocols.coco_48_17 import COCO_48_17
from surelabel.data.protocols.coco_captions import COCO_CAPTIONS
from surelabel.data.protocols.coco_lt import COCO_LT
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
from surelabel.data.protocols.flickr30k import FLICKR30K
from surelabel.data.protocols.imagenet import IMAGENET
from surelabel.data.protocols.mlrsnet import MLRSNET
from surelabel.data.protocols.multiscene import MULTISCENE
from surelabel.data.protocols.nuswide_81 import NUSWIDE_81
from surelabel.data.protocols.nuswide_925_81 import NUSWIDE_925_81
from surelabel.data.protocols.openimages_v6 import OPENIMAGES_V6
from surelabel.data.protocols.pa100k import PA100K
from surelabel.data.protocols.rap import RAP
from surelabel.data.protocols.vispr import VISPR
from surelabel.data.protocols.voc07 import VOC07
from surelabel.data.protocols.voc07_val import VOC07_VAL
from surelabel.data.protocols.voc12 import VOC12
from surelabel.data.protocols.voc_lt import VOC_LT
from surelabel.data.protocols.vqa_v2 import VQA_V2
from surelabel.data.protocols.wider_attribute import WIDER_ATTRIBUTE

PROTOCOLS: dict[str, EvaluationProtocol] = {
    "voc07": VOC07,
    "voc07-val": VOC07_VAL,
    "voc12": VOC12,
    "coco14": COCO14,
    "coco17": COCO17,
    "coco-48-17": COCO_48_17,
    "nuswide-81": NUSWIDE_81,
    "nuswide-925-81": NUSWIDE_925_81,
    "pa100k": PA100K,
    "rap": RAP,
    "mlrsnet": MLRSNET,
    "multiscene": MULTISCENE,
    "coco-captions": COCO_CAPTIONS,
    "flickr30k": FLICKR30K,
    "wider-attribute": WIDER_ATTRIBUTE,
    "vispr": VISPR,
    "coco-lt": COCO_LT,
    "voc-lt": VOC_LT,
    "openimages-v6": OPENIMAGES_V6,
    **IMAGENET,
    **BASE_TO_NOVEL,
    "vqa-v2": VQA_V2,
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
