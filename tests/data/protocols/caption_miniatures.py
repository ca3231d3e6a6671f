"""Generate miniatures of captions with the splits of Karpathy and Li."""

from pathlib import Path

import numpy as np
from coco_miniatures import write_json
from miniature_files import ExpectedSplit, Miniature, write_image

PARTS = ["test", "restval", "restval", "val", "train", "test", "train", "val", "test", "train"]


def karpathy_entries(parts, name_of, id_key, n_captions=5):
    """Return the entries of images; the caption ids are 10 times the image id, and following."""
    entries = []
    for row, part in enumerate(parts):
        image_id = 400 + 7 * row
        sentences = [
            {"raw": f"Scene {row} has  view {number}.", "sentid": 10 * image_id + number}
            for number in range(n_captions + row % 2)
        ]
        entries.append(
            {
                **name_of(row),
                "imgid": row,
                id_key: image_id,
                "split": part,
                "sentences": sentences,
                "sentids": [sentence["sentid"] for sentence in sentences],
            }
        )
    return entries


def expected_captions(entries, folder_of) -> Miniature:
    """Return the annotations of the entries, by the split of the evaluation protocol."""
    expected = {}
    for split, parts in {"train": ("train", "restval"), "val": ("val",), "test": ("test",)}.items():
        images = [entry for entry in entries if entry["split"] in parts]
        texts = [
            [" ".join(sentence["raw"].split()) for sentence in entry["sentences"][:5]]
            for entry in images
        ]
        expected[split] = ExpectedSplit(
            [f"{folder_of(entry)}/{entry['filename']}" for entry in images],
            np.zeros((len(images), 0)),
            tuple(text for of_image in texts for text in of_image),
            tuple(row for row, of_image in enumerate(texts) for _ in of_image),
        )
    return expected


def relevance_files(entries) -> dict[str, dict[str, list[int]]]:
    """Return files of ECCV Caption for the test images, by the name of the file."""
    test = [entry for entry in entries if entry["split"] == "test"]
    captions = {
        str(entry["cocoid"]): [sentence["sentid"] for sentence in entry["sentences"][:5]]
        for entry in test
    }
    images = {
        str(caption): [int(image)] for image, of_image in captions.items() for caption in of_image
    }
    return {
        f"{name}_{direction}.json": relevant
        for name in ("original", "eccv", "cxc")
        for direction, relevant in (("image_to_caption", captions), ("caption_to_image", images))
    }


def write_coco_captions(folder: Path) -> Miniature:
    """Write a miniature of COCO Captions with the relevance of ECCV Caption and CxC."""

    def name_of(row):
        split = "train2014" if PARTS[row] == "train" else "val2014"
        return {"filename": f"COCO_{split}_{row:012}.jpg", "filepath": split}

    entries = karpathy_entries(PARTS, name_of, "cocoid")
    write_json(folder / "dataset_coco.json", {"images": entries, "dataset": "coco"})
    for name, relevant in relevance_files(entries).items():
        write_json(folder / "eccv_caption" / name, relevant)
    for row, entry in enumerate(entries):
        write_image(folder / entry["filepath"] / entry["filename"], 9000 + row)
    return expected_captions(entries, lambda entry: entry["filepath"])


def write_flickr30k(folder: Path) -> Miniature:
    """Write a miniature of Flickr30k."""
    parts = [part for part in PARTS if part != "restval"]
    entries = karpathy_entries(parts, lambda row: {"filename": f"{1000 + row}.jpg"}, "imgid")
    write_json(folder / "dataset_flickr30k.json", {"images": entries, "dataset": "flickr30k"})
    for row, entry in enumerate(entries):
        write_image(folder / "flickr30k-images" / entry["filename"], 9500 + row)
    return expected_captions(entries, lambda _: "flickr30k-images")
