"""Measure the time and memory of the scans of `tag --watch`, with empty files in a folder.

    python benchmarks/folder_scan.py FOLDER [--files N] [--subfolders N] [--scans N]

FOLDER must be new; the files are created in its subfolders and deleted at the end. Each scan reads
the size and the modification time of all files, and compares them with the files of the scan
before. The files are recorded as tagged after the second scan, so the first two scans also collect
new files. The script prints the wall time and the processor time of each scan, and the increase of
the resident memory.
"""

import argparse
import os
import shutil
import time

from surelabel.data.folder_scan import scan_image_folder
from surelabel.recognizer.watched_images import WatchedImages

DAY = 86_400 * 10**9  # nanoseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--subfolders", type=int, default=1000)
    parser.add_argument("--scans", type=int, default=7)
    settings = parser.parse_args()
    folder = os.path.abspath(settings.folder)
    create_files(folder, settings.files, settings.subfolders)
    try:
        images, start = WatchedImages(), resident_megabytes()
        for scan in range(settings.scans):
            began, processor_time = time.perf_counter(), time.process_time()
            difference = images.compare(
                scan_image_folder(folder), now_ns=time.time_ns() + DAY, min_age_ns=0
            )
            seconds = time.perf_counter() - began
            processor_seconds = time.process_time() - processor_time
            for path, status in difference.complete.items():
                images.add(path, status)
            n_new = len(difference.complete)
            del difference
            megabytes = resident_megabytes() - start
            print(
                f"scan {scan + 1}: {seconds:.1f} s ({processor_seconds:.1f} s of processor time), "
                f"{n_new:,} new, +{megabytes:.0f} MB",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


def create_files(folder: str, n_files: int, n_subfolders: int) -> None:
    """Create empty files with the suffix .jpg in the subfolders of a new folder."""
    os.makedirs(folder)
    for number in range(n_subfolders):
        os.mkdir(os.path.join(folder, f"{number:04}"))
    for number in range(n_files):
        path = os.path.join(folder, f"{number % n_subfolders:04}", f"IMG_{number:07}.jpg")
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL))


def resident_megabytes() -> float:
    """Return the resident memory of this process in megabytes, on Linux."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
