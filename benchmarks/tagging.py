"""Tagging a folder end to end beside the bare encoder: `python benchmarks/tagging.py FOLDER`.

The bare encoder sees the same pictures, decoded and prepared beforehand, in batches of the same
size; what is left is decoding, hashing, caching and the head.
"""

import argparse
import os
import resource
import tempfile
import time

import torch

from surelabel.backbones import load_backbone
from surelabel.data import FeatureCache, find_pictures, open_picture
from surelabel.encoding import encode
from surelabel.errors import DataError

BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--model", default="tiny-vit")
    parser.add_argument("--quick", action="store_true", help="256 pictures only")
    options = parser.parse_args()
    backbone = load_backbone(options.model)
    paths = find_pictures([options.folder])[: 256 if options.quick else None]

    prepared = []
    for path in paths[:1024]:
        try:
            picture = open_picture(path, least_side=backbone.least_side)
        except DataError:
            continue
        prepared.append(backbone.prepare(picture))
    start = time.perf_counter()
    for at in range(0, len(prepared), BATCH):
        backbone.images(torch.stack(prepared[at : at + BATCH]))
    bare = len(prepared) / (time.perf_counter() - start)

    with tempfile.TemporaryDirectory() as folder:
        for run in ("first", "again, from the cache"):
            start = time.perf_counter()
            found = encode(backbone, paths, cache=FeatureCache(folder), batch=BATCH)
            seconds = time.perf_counter() - start
            print(
                f"{run}: {len(found.rows)} pictures, {len(found.skipped)} skipped, "
                f"{len(paths) / seconds:.0f} a second; decoding {found.decode_seconds:.1f} s in "
                f"all workers, encoder {found.model_seconds:.1f} s"
            )
    print(f"bare encoder: {bare:.0f} a second on {torch.get_num_threads()} threads")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB; {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
