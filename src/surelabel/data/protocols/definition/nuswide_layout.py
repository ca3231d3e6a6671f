"""State the files, labels and counts of NUS-WIDE."""

from surelabel.data.protocols.definition.evaluation_protocol import (
    ProtocolFile,
    ProtocolSplit,
    SourcedCount,
)
from surelabel.data.vocabularies import read_vocabularies

IMAGES = "Flickr"
VOCABULARY = read_vocabularies()["nus-925-81"]
IMAGE_RULE = (
    "The images of the test split in papers differ: akang-wang/PIAA evaluates 60,260 images "
    "(imageset/nuswideval_labels.txt), which are not the official test split."
)

_SOURCE = "README.md of NExTplusplus/NUS-WIDE, the official repository"
_ARCHIVE = "NUS-WIDE.zip of NExTplusplus/NUS-WIDE"
_PAGE = "the NUS-WIDE page of the Lab for Media Search, National University of Singapore"


def nuswide_splits(rule: str, evaluated: SourcedCount) -> tuple[ProtocolSplit, ...]:
    """Return the official splits.

    Args:
        rule: Which images are used.
        evaluated: Number of test images that papers evaluate.
    """
    return (
        ProtocolSplit("train", "train", SourcedCount(161_789, _SOURCE), rule=rule),
        ProtocolSplit("test", "test", SourcedCount(107_859, _SOURCE), evaluated, rule),
    )


def nuswide_files(*, has_tags: bool) -> tuple[ProtocolFile, ...]:
    """Return the files of the official layout.

    Args:
        has_tags: Whether the tags of Flickr users are needed.
    """
    tags = (
        ("TagList1k.txt", "list of 1,000 tags"),
        ("Train_Tags1k.dat", "tags of the training images"),
        ("Test_Tags1k.dat", "tags of the test images"),
    )
    return (
        ProtocolFile("ImageList/TrainImagelist.txt", "list of training images", _PAGE),
        ProtocolFile("ImageList/TestImagelist.txt", "list of test images", _PAGE),
        ProtocolFile("ConceptsList/Concepts81.txt", "list of 81 concepts", _ARCHIVE),
        ProtocolFile("Groundtruth/TrainTestLabels", "targets of each concept", _ARCHIVE),
        *(
            ProtocolFile(
                f"NUS_WID_Tags/{name}", content, "NUS_WID_Tags.zip of NExTplusplus/NUS-WIDE"
            )
            for name, content in tags
            if has_tags
        ),
        ProtocolFile(IMAGES, "images", f"{_PAGE}, by request"),
    )
