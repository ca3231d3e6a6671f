"""Write miniatures of datasets with one class for each image, and of other small entries."""

import json
from functools import partial

import numpy as np
from miniature_files import ExpectedSplit, random_targets, write_image

SPLITS = {"train": 6, "val": 3, "test": 4}
CLASSES = ["abyssinian", "basset hound", "bengal"]
JSON_DATASETS = {
    "caltech101": ("Caltech101", "101_ObjectCategories"),
    "dtd": ("DescribableTextures", "images"),
    "eurosat": ("EuroSAT", "2750"),
    "flowers102": ("OxfordFlowers", "jpg"),
    "food101": ("Food101", "images"),
    "oxford-pets": ("OxfordPets", "images"),
    "stanford-cars": ("StanfordCars", "."),
    "sun397": ("SUN397", "SUN397"),
    "ucf101": ("UCF101", "UCF-101-midframes"),
}


def write_class_images(folder, paths, classes, seed):
    """Write images, and return the expected split."""
    for row, path in enumerate(paths):
        write_image(folder / path, 100 * seed + row)
    return ExpectedSplit(paths, np.eye(len(CLASSES))[classes])


def write_class_json(folder, name, images):
    """Write the list of CoOp, whose class numbers start at 1 and are not in order."""
    content, expected = {}, {}
    for seed, (split, size) in enumerate(SPLITS.items()):
        classes = [(row + seed) % len(CLASSES) for row in range(size)]
        paths = [f"cars_{split}/{row}.jpg" for row in range(size)]
        content[split] = [
            [path, number + 1, CLASSES[number]] for path, number in zip(paths, classes, strict=True)
        ]
        paths = [f"{images}/{path}" for path in paths]
        expected[split] = write_class_images(folder, paths, classes, seed)
    (folder / f"split_zhou_{name}.json").write_text(json.dumps(content))
    return expected


def write_fgvc_aircraft(folder):
    expected = {}
    (folder / "variants.txt").write_text("\n".join(CLASSES) + "\n")
    for seed, (split, size) in enumerate(SPLITS.items()):
        classes = [row % len(CLASSES) for row in range(size)]
        images = [f"{seed}00{row}" for row in range(size)]
        lines = [f"{i} {CLASSES[c]}\n" for i, c in zip(images, classes, strict=True)]
        (folder / f"images_variant_{split}.txt").write_text("".join(lines))
        paths = [f"images/{image}.jpg" for image in images]
        expected[split] = write_class_images(folder, paths, classes, seed)
    return expected


def write_imagenet(folder, images, split="test", has_numbers=False):
    folders = [f"n0{number}" for number in range(len(CLASSES))]
    lines = [f"{name} {label}\n" for name, label in zip(folders, CLASSES, strict=True)]
    (folder / "classnames.txt").write_text("".join(lines))
    keys = ["0", "1", "2"] if has_numbers else folders
    paths = [f"{images}/{key}/{row}.jpeg" for key in keys for row in range(2)]
    return {split: write_class_images(folder, paths, [0, 0, 1, 1, 2, 2], 1)}


def write_wider_attribute(folder):
    """Write two persons in each image; the first attribute is unspecified in the first image."""
    (folder / "Anno").mkdir()
    expected = {}
    for seed, (name, size) in enumerate([("trainval", 5), ("test", 4)]):
        persons = np.random.default_rng(seed).integers(-1, 2, (size, 2, 14))
        persons[0, :, 0] = 0
        images = [f"{name}/0--Parade/{row}.jpg" for row in range(size)]
        content = {
            "images": [
                {
                    "file_name": image,
                    "scene_id": 0,
                    "targets": [{"attribute": a.tolist(), "bbox": [0, 0, 5, 5]} for a in pair],
                }
                for image, pair in zip(images, persons, strict=True)
            ],
            "attribute_id_map": {str(number): f"attribute {number}" for number in range(14)},
            "scene_id_map": {"0": "Parade"},
        }
        (folder / f"Anno/wider_attribute_{name}.json").write_text(json.dumps(content))
        targets = np.where((persons == 1).any(1), 1.0, np.where((persons == -1).any(1), 0, np.nan))
        paths = [f"Image/{image}" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 100 * seed + row)
        expected[name] = ExpectedSplit(paths, targets)
    return expected


def write_vispr(folder):
    labels = ["a0_safe", "a4_gender", "a12_semi_nudity"]
    targets = random_targets(9, len(labels), seed=4, share=0.5)
    targets[0] = 1
    paths = []
    for row, values in enumerate(targets):
        name = ("train2017", "val2017", "test2017")[row // 3]
        paths.append(f"{name}/2017_{row}.jpg")
        write_image(folder / paths[-1], row)
        present = [label for label, value in zip(labels, values, strict=True) if value]
        (folder / f"{name}/2017_{row}.json").write_text(json.dumps({"labels": present}))
    return {
        "trainval": ExpectedSplit(paths[:6], targets[:6]),
        "test": ExpectedSplit(paths[6:], targets[6:]),
    }


def write_vqa_v2(folder):
    expected = {}
    for seed, name in enumerate(["train2014", "val2014"]):
        images = [10 * seed + 1, 10 * seed + 2]
        questions = [
            {
                "question_id": 100 * seed + row,
                "image_id": images[row % 2],
                "question": f"Is it {row}?",
            }
            for row in range(3)
        ]
        annotations = [
            {
                "question_id": question["question_id"],
                "answer_type": "yes/no",
                "answers": [{"answer": "yes"}] * 10,
            }
            for question in questions
        ]
        (folder / f"v2_OpenEnded_mscoco_{name}_questions.json").write_text(
            json.dumps({"data_subtype": name, "questions": questions})
        )
        (folder / f"v2_mscoco_{name}_annotations.json").write_text(
            json.dumps({"annotations": annotations})
        )
        paths = [f"{name}/COCO_{name}_{image:012}.jpg" for image in images]
        for row, path in enumerate(paths):
            write_image(folder / path, 100 * seed + row)
        texts = tuple(question["question"] for question in questions)
        expected[name] = ExpectedSplit(paths, np.zeros((2, 0)), texts, (0, 1, 0))
    return expected


CLASS_MINIATURES = {
    **{
        key: partial(write_class_json, name=name, images=images)
        for key, (name, images) in JSON_DATASETS.items()
    },
    "fgvc-aircraft": write_fgvc_aircraft,
    "imagenet": partial(write_imagenet, images="images/val", split="val"),
    "imagenet-v2": partial(
        write_imagenet, images="imagenetv2-matched-frequency-format-val", has_numbers=True
    ),
    "imagenet-sketch": partial(write_imagenet, images="images"),
    "imagenet-a": partial(write_imagenet, images="imagenet-a"),
    "imagenet-r": partial(write_imagenet, images="imagenet-r"),
    "vispr": write_vispr,
    "vqa-v2": write_vqa_v2,
    "wider-attribute": write_wider_attribute,
}
