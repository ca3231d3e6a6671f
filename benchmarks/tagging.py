"""Compare the time of tagging a folder with a bound from decoding and encoding on all cores.

    python benchmarks/tagging.py FOLDER [--model MODEL] [--images N] [--rounds ROUNDS]

In each round, these steps are measured one after another:

- decoding: one process per core decodes and preprocesses the images, and discards the pixels;
- encoding: batches of decoded images are encoded, one batch per core at once, or with all threads;
- tagging: ``Recognizer.predict`` runs with an empty cache, and also hashes the files, copies the
  pixels between processes, writes the cache and computes the scores; then it runs a second time
  with the cached features.

The bound is the time of decoding plus the time of encoding, both on all cores. On a machine that
other processes use too, compare the processor times.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import torch
from PIL import Image

import surelabel as sl
from surelabel.data import find_images, open_image
from surelabel.encoders import Encoder
from surelabel.errors import DataError
from surelabel.features import FeatureCache
from surelabel.features.concurrent_encoding import (
    concurrent_batch_count,
    encode_batches_concurrently,
)
from surelabel.features.encoding_batch_size import encoding_batch_size

LABELS = ("lion", "coffee", "guitar", "rocket", "apple", "bear")
MAX_PREPARED = 1024  # maximum number of decoded images in memory, for measuring the encoder
MIB = 2**20


def main() -> None:
    """Run the rounds and print a table of medians and ranges."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="images")
    parser.add_argument("--model", default="tiny-vit")
    parser.add_argument("--images", type=int, help="number of images (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    recognizer = sl.Recognizer.zero_shot(options.model, LABELS)
    paths = find_images([options.folder])[: options.images]
    cores = len(os.sched_getaffinity(0))
    rounds = [measure_round(recognizer, paths, cores) for _ in range(options.rounds)]
    print(
        f"{len(paths)} images, {options.model}, {cores} cores, {torch.get_num_threads()} threads, "
        f"{options.rounds} rounds: median (lowest to highest)\n"
    )
    print("| measure | value |\n| --- | ---: |")
    for name in rounds[0]:
        values = [measures[name] for measures in rounds]
        low, high = min(values), max(values)
        print(f"| {name} | {statistics.median(values):.3f} ({low:.3f} to {high:.3f}) |")


def measure_round(recognizer: sl.Recognizer, paths: list[str], cores: int) -> dict[str, float]:
    """Return the times, speeds and memory of one round, by name."""
    encoder, n = recognizer.encoder, len(paths)
    decoding, decoding_cpu = timed(lambda: decode_in_processes(encoder, paths, cores))
    encoding, encoding_cpu, one_by_one = measure_encoder(encoder, paths)
    with tempfile.TemporaryDirectory() as folder:
        empty = sl.Recognizer(recognizer.run, LABELS, encoder=encoder, cache=FeatureCache(folder))
        empty.predict([Image.new("RGB", (64, 64))])  # encodes the labels before the measurement
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
        before = memory_mib("VmRSS")
        tagging, tagging_cpu = timed(lambda: empty.predict(paths))
        memory = memory_mib("VmHWM") - before
        cached, _ = timed(lambda: empty.predict(paths))
    return {
        "decoding, images per second": n / decoding,
        "encoding, images per second": n / encoding,
        "encoding one batch at a time, images per second": n / one_by_one,
        "bound, images per second": n / (decoding + encoding),
        "tagging, images per second": n / tagging,
        "tagging from the cache, images per second": n / cached,
        "processor time of decoding, ms per image": 1e3 * decoding_cpu / n,
        "processor time of encoding, ms per image": 1e3 * encoding_cpu / n,
        "processor time of tagging, ms per image": 1e3 * tagging_cpu / n,
        "time of tagging / bound": tagging / (decoding + encoding),
        "processor time of tagging / bound": tagging_cpu / (decoding_cpu + encoding_cpu),
        "memory that tagging adds, MiB": memory,
    }


def measure_encoder(encoder: Encoder, paths: list[str]) -> tuple[float, float, float]:
    """Return the time and processor time of concurrent batches, and the time of single batches.

    The times in seconds are those of all images, estimated from the first ``MAX_PREPARED``.
    """
    pixels = [image for path in paths[:MAX_PREPARED] for image in decoded(encoder, path)]
    batches = torch.stack(pixels).split(encoding_batch_size(encoder))
    scale = len(paths) / len(pixels)
    concurrent = timed(lambda: encode(encoder, batches, concurrent_batch_count(encoder)))
    one_by_one = timed(lambda: encode(encoder, batches, 1))
    return scale * concurrent[0], scale * concurrent[1], scale * one_by_one[0]


def timed(step: Callable[[], object]) -> tuple[float, float]:
    """Return the time and the processor time, with that of child processes, in seconds."""
    start, start_cpu = time.perf_counter(), processor_seconds()
    step()
    return time.perf_counter() - start, processor_seconds() - start_cpu


def processor_seconds() -> float:
    """Return the processor time of this process and of its finished child processes."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def decode_in_processes(encoder: Encoder, paths: list[str], cores: int) -> None:
    """Decode and preprocess all images in one process per core."""

    def decode_share(first: int) -> None:
        torch.set_num_threads(1)
        for path in paths[first::cores]:
            for _ in decoded(encoder, path):
                pass

    context = get_context("fork")
    processes = [context.Process(target=decode_share, args=(first,)) for first in range(cores)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def decoded(encoder: Encoder, path: str) -> Iterator[torch.Tensor]:
    """Yield the pixels of an image, unless it cannot be read."""
    try:
        yield encoder.preprocess(open_image(path, min_side=encoder.input_side))
    except DataError:
        return


def encode(encoder: Encoder, batches: tuple[torch.Tensor, ...], concurrency: int) -> None:
    """Encode batches, ``concurrency`` of them at once."""
    for _ in encode_batches_concurrently(encoder.encode_images, batches, concurrency=concurrency):
        pass


def memory_mib(name: str) -> float:
    """Return a memory field of this process in MiB, such as the peak ``VmHWM``."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / MIB


if __name__ == "__main__":
    main()
