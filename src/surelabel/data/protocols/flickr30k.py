"""Define the evaluation protocol of Flickr30k: captions with the splits of Karpathy and Li."""

from pathlib import Path

from surelabel.data.protocols.definition.evaluation_protocol import (
    EvaluationProtocol,
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.protocols.definition.karpathy_captions import (
    ARCHIVE,
    CAPTION_RULE,
    read_karpathy_split,
)
from surelabel.data.protocols.definition.protocol_rows import ProtocolRows

CAPTIONS = "dataset_flickr30k.json"
IMAGES = "flickr30k-images"


def read_flickr30k_split(folder: Path, split: ProtocolSplit) -> ProtocolRows:
    """Return the captions of a split of Flickr30k.

    Args:
        folder: Folder with ``dataset_flickr30k.json`` and ``flickr30k-images``.
        split: Split of the evaluation protocol.

    Raises:
        DataError: If the file of captions is missing or invalid.
    """
    return read_karpathy_split(folder / CAPTIONS, split.name, folders={"": IMAGES}, id_key="imgid")


def _count_of_captions(n_captions: int, file: str) -> SourcedCount:
    """Return the number of images of a list of captions, which has five captions of each image."""
    source = f"f30k_precomp/{file} of the repository MSMNN: {n_captions:,} captions, 5 per image"
    return SourcedCount(n_captions // 5, source)


FLICKR30K = EvaluationProtocol(
    title="Flickr30k, splits of Karpathy and Li",
    task="captions",
    splits=(
        ProtocolSplit("train", "train", rule=CAPTION_RULE),
        ProtocolSplit(
            "val", "validation", _count_of_captions(5070, "dev_caps.txt"), rule=CAPTION_RULE
        ),
        ProtocolSplit("test", "test", _count_of_captions(5000, "test_caps.txt"), rule=CAPTION_RULE),
    ),
    files=(
        ProtocolFile(CAPTIONS, "captions and splits", ARCHIVE),
        ProtocolFile(
            IMAGES, "images", "flickr30k-images.tar.gz of the University of Illinois, on request"
        ),
    ),
    read_split=read_flickr30k_split,
    comparisons=("similarity",),
    notes=(
        "The number of training images is not verified; issue 20 of the repository VSRN states "
        "29k.",
        "VSRN states 1,000 validation images; the list of captions has 1,014.",
    ),
)
