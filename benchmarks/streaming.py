"""Measure the peak memory of `tag --out` and `index`: `python benchmarks/streaming.py FOLDER`.

The script writes 100,000 small JPEG files with distinct content into FOLDER: test images of
scenes-80, each with a different JPEG comment. Each command runs with an empty cache on the first
10,000 files and then on all files. The script prints the peak memory of the main process, and the
largest peak memory of a worker process (VmHWM, which includes shared pages). It also prints the
number of bytes per path.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from surelabel.data import collection

POLL_SECONDS = 0.05
FILES_PER_FOLDER = 1000
LABELS = "lion, coffee, guitar, rocket, apple, bear"
SOI = b"\xff\xd8"  # first bytes of a JPEG file


def main() -> None:
    """Create the files, and measure both commands with two numbers of files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--model", default="tiny-vit")
    options = parser.parse_args()
    paths = write_images_with_distinct_comments(options.folder, options.images)
    bytes_per_path = sum(sys.getsizeof(path) + 8 for path in paths) / len(paths)
    print(f"{len(paths)} files, {bytes_per_path:.0f} bytes per path in memory")
    for command in ("tag", "index"):
        peaks = {}
        for n_images in (len(paths) // 10, len(paths)):
            main_mb, worker_mb, seconds = measure_command(command, paths[:n_images], options.model)
            peaks[n_images] = (main_mb, worker_mb)
            print(
                f"{command} of {n_images} images: peak memory {main_mb:.0f} MB, largest worker "
                f"{worker_mb:.0f} MB, {seconds:.0f} s, {n_images / seconds:.0f} images per second"
            )
        (few_main, few_worker), (all_main, all_worker) = peaks.values()
        added_paths = (len(paths) - len(paths) // 10) * bytes_per_path / 1e6
        print(
            f"{command}: ratio {all_main / few_main:.3f} (workers {all_worker / few_worker:.3f}); "
            f"without the added paths {(all_main - added_paths) / few_main:.3f}"
        )


def write_images_with_distinct_comments(folder: Path, n_images: int) -> list[str]:
    """Write JPEG files with distinct content, unless they exist, and return the paths."""
    sources = [Path(path).read_bytes() for path in collection("scenes-80", split="test").paths]
    jpeg = [content for content in sources if content.startswith(SOI)]
    paths = []
    for number in range(n_images):
        path = folder / f"{number // FILES_PER_FOLDER:03}" / f"{number:06}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = f"image {number}".encode()
            comment = b"\xff\xfe" + (len(text) + 2).to_bytes(2, "big") + text
            path.write_bytes(SOI + comment + jpeg[number % len(jpeg)][len(SOI) :])
        paths.append(str(path))
    return paths


def measure_command(command: str, paths: list[str], model: str) -> tuple[float, float, float]:
    """Run a command in a new process.

    Returns:
        Peak memory of the main process and of the largest worker, in MB, and the time in seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        images = Path(folder, "images.txt")
        images.write_text("\n".join(paths))
        out = ["--out", f"{folder}/tags.parquet"] if command == "tag" else []
        target = [] if command == "tag" else [f"{folder}/index"]
        arguments = [*target, str(images), "--labels", LABELS, "--model", model, *out, "--quiet"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "surelabel", command, *arguments],
            env=os.environ | {"SURELABEL_CACHE": f"{folder}/cache"},
            stdout=subprocess.DEVNULL,
        )
        main_mb, worker_mb = 0.0, 0.0
        while process.poll() is None:
            main_mb = max(main_mb, peak_memory_mb(process.pid))
            worker_mb = max([worker_mb, *map(peak_memory_mb, child_processes(process.pid))])
            time.sleep(POLL_SECONDS)
        if process.returncode:
            raise SystemExit(
                f"surelabel {command} must end with exit status 0; got {process.returncode}. Read "
                "its messages above."
            )
        return main_mb, worker_mb, time.perf_counter() - start


def peak_memory_mb(pid: int) -> float:
    """Return the peak resident memory of a process in MB, or 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) * 1024 / 1e6 if lines else 0.0


def child_processes(pid: int) -> list[int]:
    """Return the process numbers of the children of a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in children.split()]


if __name__ == "__main__":
    main()
