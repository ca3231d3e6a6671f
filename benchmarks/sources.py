"""Measure the images read per second from each source: `python benchmarks/sources.py FOLDER`.

The script writes a folder of images, a tar archive and a Parquet table (row groups of 1000) with
the same images into FOLDER. Each image is a Scenes image with a different JPEG comment, so that the
contents differ. Each image is opened and read, without decoding, in the order of the list, in one
process and with a warm page cache. The column `list` has the time of `find_images`. The object
store is a moto server in the same process, so its times do not predict those of a real store. With
`--listing N`, an archive with N members of one byte is listed in a new process, and the increase of
its RssAnon is divided by N.
"""

import argparse
import io
import logging
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from surelabel.data import collection, find_images
from surelabel.storage.stored_images import open_stored_image

N_OBJECTS = 1000
LISTING = """
import sys
from surelabel.data import find_images
def rss():
    with open("/proc/self/status") as lines:
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("RssAnon"))
before = rss()
images = find_images([sys.argv[1]])
print((rss() - before) / len(images), sum(map(sys.getsizeof, images)) / len(images) + 8)
"""


def main() -> None:
    """Read the images of all sources in rounds, and print a Markdown table with ranges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--listing", type=int, help="number of members that are listed")
    parser.add_argument("--objects", action="store_true", help="read from a moto server too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.listing:
        print_listing(options.folder, options.listing)
        return
    sources = write_sources(options.folder, options.images)
    if options.objects:
        sources |= put_objects(sources)
    print("| source | images | list (s) | images/s |")
    print("|---|---|---|---|")
    for name, source in sources.items():
        start = time.perf_counter()
        paths = find_images([source])
        listed = time.perf_counter() - start
        rates = [images_per_second(paths) for _ in range(options.rounds)]
        rate = f"{min(rates):,.0f} to {max(rates):,.0f}"
        print(f"| {name} | {len(paths):,} | {listed:.2f} | {rate} |", flush=True)


def images_per_second(paths: Sequence[str]) -> float:
    """Return the number of images that are opened and read per second."""
    start = time.perf_counter()
    for path in paths:
        with open_stored_image(path) as stream:
            stream.read()
    return len(paths) / (time.perf_counter() - start)


def write_sources(folder: Path, n_images: int) -> dict[str, str]:
    """Write the same images as files, as an archive and as a table, and return the paths."""
    images, archive, table = folder / "images", folder / "images.tar", folder / "images.parquet"
    contents = [Path(path).read_bytes() for path in collection("scenes-80", split="test").paths]
    comments = (f"{row:08}".encode() for row in range(n_images))
    jpegs = [
        contents[row % len(contents)][:2]
        + b"\xff\xfe\x00\x0a"
        + text
        + contents[row % len(contents)][2:]
        for row, text in enumerate(comments)
    ]
    images.mkdir(exist_ok=True)
    with tarfile.open(archive, "w") as tar:
        for row, jpeg in enumerate(jpegs):
            (images / f"{row:08}.jpg").write_bytes(jpeg)
            entry = tarfile.TarInfo(f"{row:08}.jpg")
            entry.size = len(jpeg)
            tar.addfile(entry, io.BytesIO(jpeg))
    pq.write_table(pa.table({"image": jpegs}), table, row_group_size=1000)
    return {"folder": str(images), "tar archive": str(archive), "Parquet table": str(table)}


def put_objects(sources: dict[str, str]) -> dict[str, str]:
    """Upload images, the archive and the table to a moto server, and return the URLs."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # prints no line per request
    os.environ["AWS_ENDPOINT_URL"] = "http://{}:{}".format(*server.get_host_and_port())
    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_REGION="us-east-1")
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="images")
    for path in sorted(Path(sources["folder"]).iterdir())[:N_OBJECTS]:
        client.upload_file(str(path), "images", f"folder/{path.name}")
    client.upload_file(sources["tar archive"], "images", "images.tar")
    client.upload_file(sources["Parquet table"], "images", "images.parquet")
    names = {"folder/": "objects", "images.tar": "tar archive", "images.parquet": "Parquet table"}
    return {f"moto: {name}": f"s3://images/{key}" for key, name in names.items()}


def print_listing(folder: Path, n_members: int) -> None:
    """Print the time and the increase of memory when an archive is listed."""
    path = folder / f"listing-{n_members}.tar"
    with tarfile.open(path, "w") as tar:
        for row in range(n_members):
            entry = tarfile.TarInfo(f"{row:09}.jpg")
            entry.size = 1
            tar.addfile(entry, io.BytesIO(b"x"))
            tar.members = []
    start = time.perf_counter()
    command = [sys.executable, "-c", LISTING, str(path)]
    growth, text = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    seconds = time.perf_counter() - start
    path.unlink()
    print("| members | seconds | bytes of growth per image | bytes of its path in the list |")
    print("|---|---|---|---|")
    print(f"| {n_members:,} | {seconds:.1f} | {float(growth):.0f} | {float(text):.0f} |")


if __name__ == "__main__":
    main()
