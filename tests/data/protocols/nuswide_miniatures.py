"""Write miniatures of NUS-WIDE in the official layout, with the line ends of Windows."""

import numpy as np
from miniature_files import ExpectedSplit, random_targets, write_image

from surelabel.data.vocabularies import read_vocabularies

NOT_IN_TAGS = {"computer", "fire", "map", "swimmers", "tattoo", "whales"}


def write_nuswide_lines(file, lines):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes("".join(f"{line}\r\n" for line in lines).encode())


def write_nuswide(folder, has_tags):
    """Write image lists, concepts and, optionally, tags, which have another order than labels."""
    vocabulary = read_vocabularies()["nus-925-81"]
    concepts = list(vocabulary.unseen)
    tags = [*vocabulary.seen, *(name for name in concepts if name not in NOT_IN_TAGS)]
    tags = [tags[number] for number in np.random.default_rng(5).permutation(len(tags))]
    write_nuswide_lines(folder / "ConceptsList/Concepts81.txt", concepts)
    expected = {}
    for number, (split, part, size) in enumerate([("train", "Train", 6), ("test", "Test", 5)]):
        images = [f"actor\\{row:04}_{number}.jpg" for row in range(size)]
        write_nuswide_lines(folder / f"ImageList/{part}Imagelist.txt", images)
        targets = random_targets(size, len(concepts), seed=number)
        for concept, column in zip(concepts, targets.T, strict=True):
            file = folder / f"Groundtruth/TrainTestLabels/Labels_{concept}_{part}.txt"
            write_nuswide_lines(file, [f"{target:g}" for target in column])
        paths = ["Flickr/" + image.replace("\\", "/") for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 100 * number + row)
        if has_tags:
            of_tags = random_targets(size, len(tags), seed=10 + number, share=0.01)
            lines = ["\t".join(f"{target:g}" for target in row) + "\t" for row in of_tags]
            write_nuswide_lines(folder / f"NUS_WID_Tags/{part}_Tags1k.dat", lines)
            columns = [tags.index(name) for name in vocabulary.seen]
            targets = np.hstack([of_tags[:, columns], targets])
        expected[split] = ExpectedSplit(paths, targets)
    if has_tags:
        write_nuswide_lines(folder / "NUS_WID_Tags/TagList1k.txt", tags)
    return expected


def write_nuswide_81(folder):
    return write_nuswide(folder, has_tags=False)


def write_nuswide_925_81(folder):
    return write_nuswide(folder, has_tags=True)


NUSWIDE_MINIATURES = {"nuswide-81": write_nuswide_81, "nuswide-925-81": write_nuswide_925_81}
