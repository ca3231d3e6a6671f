"""Measure an epoch on dense features: `python benchmarks/dense_features.py FOLDER`.

The script measures the memory and the time. The features have the sizes of ViT-B/16: 196 patch
vectors of width 512 for each image. They are random, because encoding 20,000 images with this
encoder takes hours on two cores. The files, the batches and the choice between reading and encoding
are those of `surelabel fit`. The time of the encoder, ViT-B-16 of open_clip with random weights, is
measured on a few images.

The peak is the largest RssAnon of this process after the imports, which does not include mapped
files.
"""

import argparse
import threading
import time
from pathlib import Path

import open_clip
import torch

from surelabel.features.mapped_features import MappedFeatureWriter
from surelabel.recognizer.fitting_features import disk_bytes_per_second
from surelabel.records import Features
from surelabel.training import FeatureBatches

GRID, WIDTH, LABELS, BATCH = (14, 14), 512, 80, 32
IMAGES_PER_BLOCK = 256


def main() -> None:
    """Write features, read them in one epoch, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", default="2000,20000", help="numbers of images")
    parser.add_argument("--encoded", type=int, default=16, help="number of images that are encoded")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    read_speed = disk_bytes_per_second(options.folder)
    print(f"disk: {read_speed / 1e6:.0f} MB/s; encoder: {encoder_seconds(options.encoded):.2f} s")
    print("| images | files (GB) | written (s) | epoch (s) | ms per image | peak RssAnon (MB) |")
    print("|---|---|---|---|---|---|")
    for n_images in map(int, options.images.split(",")):
        with PeakMemory() as peak:
            start = time.perf_counter()
            features = write_features(n_images, options.folder)
            written = time.perf_counter() - start
            targets = torch.zeros(n_images, LABELS)
            source = FeatureBatches(features, targets, targets == 0, batch_size=BATCH)
            start = time.perf_counter()
            total = sum(
                float(batch.features.patches.mean())
                for batch in source.batches(torch.Generator().manual_seed(0))
            )
            epoch = time.perf_counter() - start
        assert total == total  # not NaN: every value was read
        n_bytes = features.stored.patches.numel() * 2
        print(
            f"| {n_images:,} | {n_bytes / 1e9:.1f} | {written:.0f} | {epoch:.0f} "
            f"| {1000 * epoch / n_images:.1f} | {peak.bytes / 1e6:.0f} |",
            flush=True,
        )
        del features, source


def write_features(n_images: int, folder: Path):
    """Return random features of images in temporary files."""
    generator = torch.Generator().manual_seed(0)
    writer = MappedFeatureWriter(n_images, folder)
    patches = torch.randn(IMAGES_PER_BLOCK, GRID[0] * GRID[1], WIDTH, generator=generator)
    for start in range(0, n_images, IMAGES_PER_BLOCK):
        n = min(IMAGES_PER_BLOCK, n_images - start)
        writer.append(Features(patches[:n, 0], patches[:n].roll(start, dims=0), GRID))
    return writer.features()


@torch.no_grad()
def encoder_seconds(n_images: int) -> float:
    """Return the time in which ViT-B-16 with random weights encodes an image."""
    encoder = open_clip.create_model("ViT-B-16", pretrained=None).visual.eval()
    pixels = torch.randn(n_images, 3, 224, 224)
    encoder(pixels[:1])
    start = time.perf_counter()
    for batch in pixels.split(8):
        encoder(batch)
    return (time.perf_counter() - start) / n_images


class PeakMemory:
    """Largest RssAnon of this process in a ``with`` block, sampled every 10 ms."""

    def __enter__(self) -> "PeakMemory":
        self.bytes, self._is_done = 0, False
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done = True
        self._thread.join()

    def _sample(self) -> None:
        while not self._is_done:
            lines = Path("/proc/self/status").read_text().splitlines()
            kilobytes = next(line.split()[1] for line in lines if line.startswith("RssAnon"))
            self.bytes = max(self.bytes, int(kilobytes) * 1024)
            time.sleep(0.01)


if __name__ == "__main__":
    main()
