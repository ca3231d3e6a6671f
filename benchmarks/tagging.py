"""Speed of tagging a folder against the encoder alone: `python benchmarks/tagging.py FOLDER`.

The encoder alone gets the same images, decoded and preprocessed before, in equal batches.
The difference is decoding, hashing, caching and the head.
"""

import argparse
import os
import resource
import tempfile
import time

import torch

from surelabel.data import find_images, open_image
from surelabel.encoders import load_encoder
from surelabel.errors import DataError
from surelabel.features import FeatureCache, encode_image_files

BATCH_SIZE = 64


def main() -> None:
    """Time the encoder alone, then two runs with the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--model", default="tiny-vit")
    parser.add_argument("--quick", action="store_true", help="256 images only")
    options = parser.parse_args()
    encoder = load_encoder(options.model)
    paths = find_images([options.folder])[: 256 if options.quick else None]

    prepared = []
    for path in paths[:1024]:
        try:
            image = open_image(path, min_side=encoder.input_side)
        except DataError:
            continue
        prepared.append(encoder.preprocess(image))
    started = time.perf_counter()
    for start in range(0, len(prepared), BATCH_SIZE):
        encoder.encode_images(torch.stack(prepared[start : start + BATCH_SIZE]))
    images_per_second = len(prepared) / (time.perf_counter() - started)

    with tempfile.TemporaryDirectory() as folder:
        for title in ("first run", "second run, from the cache"):
            started = time.perf_counter()
            encoded = encode_image_files(
                encoder, paths, cache=FeatureCache(folder), batch_size=BATCH_SIZE
            )
            seconds = time.perf_counter() - started
            print(
                f"{title}: {len(encoded.rows)} images, {len(encoded.skipped)} skipped, "
                f"{len(paths) / seconds:.0f} per second; decoding {encoded.decode_seconds:.1f} "
                f"s in all workers, encoder {encoded.model_seconds:.1f} s"
            )
    print(
        f"encoder alone: {images_per_second:.0f} images per second on {torch.get_num_threads()} "
        f"threads"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB; {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
