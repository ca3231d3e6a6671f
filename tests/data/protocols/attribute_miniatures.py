"""Write miniatures of datasets of attributes and aerial scenes in their official layouts."""

import numpy as np
from miniature_files import ExpectedSplit, write_image
from scipy.io import savemat

from surelabel.data.protocols import PROTOCOLS

PUBLISHED = {
    "Skirt and Dress": "Skirt&Dress",
    "Pushing": "Pusing",
    "Other Attachment": "Other Attchment",
    "Single Shoulder Bag": "SSBag",
    "Solar Panel": "SolarPannel",
    "Wind Turbine": "WindTrubine",
    "Oil Field": "OilFiled",
    "harbor": "habor",
}
CATEGORIES = {"airport": 10, "harbor&port": 7, "island": 12}  # images


def published(name, separator=""):
    return PUBLISHED.get(name, name).replace(" ", separator)


def cells(values):
    """Return a cell array with one column."""
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


def distinct_targets(n_images, protocol, seed):
    """Return targets, in which seen labels are more frequent, and no two labels are identical."""
    names = PROTOCOLS[protocol].labels
    unseen = [name in PROTOCOLS[protocol].groups["unseen"] for name in names]
    rng = np.random.default_rng(seed)
    while True:
        targets = (rng.random((n_images, len(names))) < 0.7).astype(float)
        targets[:, unseen] = (rng.random((n_images, sum(unseen))) < 0.15).astype(float)
        counts = targets.sum(axis=0)
        is_ordered = counts[unseen].max() < counts[np.logical_not(unseen)].min()
        if is_ordered and len({column.tobytes() for column in targets.T}) == len(names):
            return targets


def write_pa100k(folder):
    """Write the MATLAB file of PA-100K, with images in the folder data."""
    names = PROTOCOLS["pa100k"].labels
    variables = {"attributes": cells([cells([published(name)]) for name in names])}
    expected = {}
    for number, (split, size) in enumerate([("train", 30), ("val", 6), ("test", 8)]):
        targets = distinct_targets(30, "pa100k", seed=number)[:size]
        images = [f"{1000 * number + row:06}.jpg" for row in range(size)]
        variables[f"{split}_images_name"] = cells([cells([image]) for image in images])
        variables[f"{split}_label"] = targets.astype(np.uint8)
        paths = [f"data/{image}" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 1000 * number + row)
        expected[split] = ExpectedSplit(paths, targets)
    savemat(folder / "annotation.mat", variables)
    return expected


def rap_annotation(images, targets, names, train, test):
    """Return the structure of RAP, with the fields in their order and rows counted from 1."""
    partition = {"train_index": train + 1, "test_index": test + 1}
    return {
        "partition": cells([partition, {"train_index": test + 1, "test_index": train + 1}]),
        "label": targets.astype(np.uint8),
        "attribute_chinese": cells(["-"] * len(names)),
        "attribute_eng": cells([f"ub-{name}" for name in names]),
        "position": np.zeros((len(images), 16)),
        "imagesname": cells([cells([image]) for image in images]),
        "attribute_exp": cells([cells([name]) for name in names]),
    }


def write_rap(folder):
    """Write the MATLAB file of RAP, with two attributes after the 51 that are evaluated."""
    n_train, n_test = 40, 10
    names = [*map(published, PROTOCOLS["rap"].labels), "faceFront", "faceBack"]
    order = np.random.default_rng(3).permutation(n_train + n_test)
    train, test = order[:n_train], order[n_train:]
    targets = np.zeros((len(order), 51))
    targets[train] = distinct_targets(n_train, "rap", seed=1)
    targets[test] = distinct_targets(n_train, "rap", seed=2)[:n_test]
    images = [f"CAM01_{row:05}.png" for row in range(len(order))]
    matrix = np.hstack([targets, np.ones((len(order), 2))])
    (folder / "RAP_annotation").mkdir()
    annotation = rap_annotation(images, matrix, names, train, test)
    savemat(folder / "RAP_annotation/RAP_annotation.mat", {"RAP_annotation": annotation})
    paths = [f"RAP_dataset/{image}" for image in images]
    for row, path in enumerate(paths):
        write_image(folder / path, row)
    return {
        name: ExpectedSplit([paths[row] for row in rows], targets[rows])
        for name, rows in (("train", train), ("test", test))
    }


def write_target_table(file, names, images, targets):
    """Write a CSV file with a header, and an image in each row."""
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{image}," + ",".join(f"{target:g}" for target in row)
            for image, row in zip(images, targets, strict=True)]  # fmt: skip
    file.write_text("\n".join([",".join(["image", *names]), *rows]) + "\n")


def write_multiscene(folder):
    """Write the tables of MultiScene-Clean, whose images have no extension."""
    names, expected = [published(name) for name in PROTOCOLS["multiscene"].labels], {}
    for number, (split, file, size) in enumerate([("train", "Tra", 40), ("test", "Test", 12)]):
        targets = distinct_targets(40, "multiscene", seed=number)[:size]
        images = [f"img_{1000 * number + row}" for row in range(size)]
        write_target_table(folder / f"{file}.csv", names, images, targets)
        paths = [f"images/{image}.jpg" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 1000 * number + row)
        expected[split] = ExpectedSplit(paths, targets)
    return expected


def write_mlrsnet(folder):
    """Write one table for each category of MLRSNet, each with another order of the columns."""
    labels = PROTOCOLS["mlrsnet"].labels
    parts = {"train": ([], []), "test": ([], [])}
    for number, (category, size) in enumerate(sorted(CATEGORIES.items())):
        targets = distinct_targets(40, "mlrsnet", seed=number)[:size]
        if category in labels:
            targets[:, labels.index(category)] = 1.0
        images = [f"{category}_{row + 1:05}.jpg" for row in range(size)]
        order = np.random.default_rng(number).permutation(len(labels))
        names = [published(labels[column], " ") for column in order]
        write_target_table(folder / f"labels/{category}.csv", names, images, targets[:, order])
        test = {*np.random.default_rng(0).permutation(size)[: size // 5].tolist()}
        for row, image in enumerate(images):
            paths, rows = parts["test" if row in test else "train"]
            paths.append(f"Images/{category}/{image}")
            rows.append(targets[row])
            write_image(folder / paths[-1], 1000 * number + row)
    return {name: ExpectedSplit(paths, np.array(rows)) for name, (paths, rows) in parts.items()}


ATTRIBUTE_MINIATURES = {
    "mlrsnet": write_mlrsnet,
    "multiscene": write_multiscene,
    "pa100k": write_pa100k,
    "rap": write_rap,
}
