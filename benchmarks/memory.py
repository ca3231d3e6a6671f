"""Measure the memory of `fit`, `calibrate` and `evaluate`: `python benchmarks/memory.py FOLDER`.

The script writes Scenes images with 80 labels into FOLDER. It renders 20,000 images. Additional
images are copies with a different JPEG comment, so that each file has different content and is
encoded and cached separately. Each command runs in a new process on the first n images, with the
feature cache in FOLDER, which is empty at the first run. With `--vectors D`, the commands read an
.npz archive of n random vectors of width D instead of images.

The peak is the largest RssAnon of the main process in `/proc/PID/status`, sampled every 10 ms.
RssAnon does not include mapped files. The column `per element` has the increase of the peak from
the previous number of images, divided by the increase of n x 80 scores and targets.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

POLL_SECONDS = 0.01
RENDERED = 20_000
N_LABELS = 80
FILES_PER_FOLDER = 1000
SOI = b"\xff\xd8"  # first bytes of a JPEG file
COMMANDS = ("fit", "calibrate", "evaluate")


def main() -> None:
    """Measure all commands with each number of images, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", default="1500,20000,100000", help="numbers of images")
    parser.add_argument("--vectors", type=int, help="width of vectors, which replace images")
    parser.add_argument("--method", default="linear")
    parser.add_argument("--encoder", default="tiny-vit", help="encoder of the images")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--set", action="append", default=[], help="setting of the fit")
    options = parser.parse_args()
    counts = [int(count) for count in options.images.split(",")]
    print(
        "| command | images | peak RssAnon (MB) | n x c elements | per element (bytes) | time (s) |"
    )
    print("|---|---|---|---|---|---|")
    commands = options.commands.split(",")
    previous: dict[str, tuple[float, int]] = {}
    for n_images in counts:
        dataset = (
            write_vectors(options.folder, n_images, options.vectors)
            if options.vectors
            else write_labelled_images(options.folder, n_images)
        )
        for command in commands:
            arguments = command_arguments(command, dataset, options)
            peak, seconds = measure_command(arguments, options.folder)
            elements = n_images * N_LABELS
            start, start_elements = previous.get(command, (peak, elements))
            previous[command] = (peak, elements)
            added = elements - start_elements
            growth = f"{(peak - start) / added:.1f}" if added else ""
            print(
                f"| {command} | {n_images:,} | {peak / 1e6:.0f} | {elements:,} | {growth} "
                f"| {seconds:.0f} |",
                flush=True,
            )


def write_labelled_images(folder: Path, n_images: int) -> Path:
    """Write images with distinct content and a table of their labels; return the table.

    Files that exist are not written again.
    """
    scenes = folder / "scenes"
    run = [sys.executable, "-m", "surelabel", "scenes", str(scenes), "--count", str(RENDERED)]
    subprocess.run([*run, "--quiet"], check=True)
    header, *lines = (scenes / "labels.csv").read_text().splitlines()
    table = folder / f"labels-{n_images}.csv"
    rows = [header]
    for number in range(n_images):
        path, targets = lines[number % RENDERED].split(",", 1)
        rows.append(f"{distinct_copy(scenes / path, folder, number)},{targets}")
    table.write_text("\n".join(rows) + "\n")
    return table


def distinct_copy(source: Path, folder: Path, number: int) -> Path:
    """Return the path of a copy with a JPEG comment that contains the number of the image."""
    path = folder / "copies" / f"{number // FILES_PER_FOLDER:04}" / f"{number:07}.jpg"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"image {number}".encode()
        comment = b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text
        path.write_bytes(SOI + comment + source.read_bytes()[len(SOI) :])
    return path


def write_vectors(folder: Path, n_images: int, width: int) -> Path:
    """Write an archive of random unit vectors whose labels depend on them; return its path."""
    path = folder / f"vectors-{n_images}-{width}.npz"
    if not path.exists():
        rng = np.random.default_rng(0)
        directions = rng.standard_normal((width, N_LABELS), dtype=np.float32)
        vectors = np.lib.format.open_memmap(folder / "features.npy", "w+", "f4", (n_images, width))
        targets = np.empty((n_images, N_LABELS), np.uint8)
        for start in range(0, n_images, 4096):
            block = rng.standard_normal((len(vectors[start : start + 4096]), width), "f4")
            vectors[start : start + len(block)] = block / np.linalg.norm(block, axis=1)[:, None]
            targets[start : start + len(block)] = block @ directions > 2 * width**0.5
        names = np.array([f"label {i}" for i in range(N_LABELS)])
        np.savez(path, features=vectors, targets=targets, names=names)
    return path


def command_arguments(command: str, dataset: Path, options: argparse.Namespace) -> list[str]:
    """Return the arguments of a command of surelabel."""
    model, calibrated = options.folder / "model", options.folder / "model-calibrated"
    if command == "fit":
        encoder = [] if options.vectors else ["--model", options.encoder]
        settings = [text for setting in options.set for text in ("--set", setting)]
        method = ["--method", options.method, *encoder, *settings]
        return ["fit", str(dataset), *method, "--out", str(model)]
    if command == "calibrate":
        return ["calibrate", str(model), str(dataset), "--out", str(calibrated)]
    return ["evaluate", str(calibrated), str(dataset)]


def measure_command(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Run a command in a new process; return its peak anonymous memory and the time.

    Returns:
        Peak in bytes and time in seconds.
    """
    start, peak = time.perf_counter(), 0.0
    with (folder / "memory.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "surelabel", *arguments, "--quiet"],
            env=os.environ | {"SURELABEL_CACHE": str(folder / "cache")},
            stdout=log,
        )
        while process.poll() is None:
            peak = max(peak, anonymous_memory(process.pid))
            time.sleep(POLL_SECONDS)
    if process.returncode:
        raise SystemExit(f"surelabel {' '.join(arguments)} failed: {process.returncode}")
    return peak, time.perf_counter() - start


def anonymous_memory(pid: int) -> float:
    """Return the anonymous resident memory of a process in bytes, or 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("RssAnon")]
    return int(lines[0].split()[1]) * 1024 if lines else 0.0


if __name__ == "__main__":
    main()
