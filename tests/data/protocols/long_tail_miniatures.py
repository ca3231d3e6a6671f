"""Write miniatures of the long-tailed parts of COCO and Pascal VOC, and of Open Images."""

import numpy as np
from coco_miniatures import write_coco
from miniature_files import ExpectedSplit, write_image


def write_coco_lt(folder):
    """Write COCO 2017, and a list of three training images in another order."""
    expected = write_coco(folder, year=2017)
    train = expected["train2017"]
    rows = [1, 4, 6]
    names = [train.images[row].removeprefix("train2017/").removesuffix(".jpg") for row in rows]
    (folder / "coco_lt_train.txt").write_text("\n".join(names[::-1]) + "\n")
    images = [train.images[row] for row in rows]
    return expected | {"train2017": ExpectedSplit(images, train.targets[rows])}


def write_voc_lt(folder, write_voc):
    """Write VOC 2012 and VOC 2007, and a list of four training images."""
    expected = {}
    for part, name, first in (("VOC2012", "trainval", 1), ("VOC2007", "test", 500)):
        (folder / part).mkdir()
        (split,) = write_voc(folder / part, [name], [9], first=first).values()
        expected[name] = split._replace(images=[f"{part}/{image}" for image in split.images])
    train, rows = expected["trainval"], [0, 2, 3, 7]
    (folder / "longtail2012").mkdir()
    lines = [train.images[row].rsplit("/", 1)[1][:-4] + "\n" for row in rows[::-1]]
    (folder / "longtail2012/img_id.txt").write_text("".join(lines))
    images = [train.images[row] for row in rows]
    return expected | {"trainval": ExpectedSplit(images, train.targets[rows])}


def write_openimages_v6(folder):
    """Write three classes, of which two have the same name."""
    classes = ["/m/01", "/m/02", "/m/03"]
    (folder / "oidv6-classes-trainable.txt").write_text("\n".join(classes) + "\n")
    (folder / "oidv6-class-descriptions.csv").write_text(
        "LabelName,DisplayName\n/m/01,Bat\n/m/02,Dog\n/m/03,Bat\n/m/04,Cat\n"
    )
    expected = {}
    for seed, name in enumerate(["validation", "test"]):
        images = [f"{seed}{row:015x}" for row in range(3)]
        targets = np.array([[1, 0, np.nan], [np.nan, 1, 1], [0, np.nan, np.nan]])
        lines = ["ImageID,Source,LabelName,Confidence\n"]
        for image, row in zip(images, targets, strict=True):
            lines += [
                f"{image},verification,{label},{target:g}\n"
                for label, target in zip(classes, row, strict=True)
                if not np.isnan(target)
            ]
            lines.append(f"{image},verification,/m/04,1\n")  # is not trainable
        (folder / f"{name}-annotations-human-imagelabels.csv").write_text("".join(lines))
        paths = [f"{name}/{image}.jpg" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 100 * seed + row)
        expected[name] = ExpectedSplit(paths, targets)
    return expected
