"""Kill processes of a Ray cluster during predictions: `python benchmarks/cluster_kills.py FOLDER`.

The script writes images of 96 pixels into FOLDER once, as tar archives of 10,000 images or, with
`--files`, as files. One additional image kills the process that decodes it. `surelabel tag
--cluster local` predicts all images. The script kills an actor, then the raylet (the node process
of Ray), and after a resume the main process, and resumes again. It checks that each image is in
exactly one part or in failed.parquet, and that at most four batches per worker were encoded again.
With `--compare`, an uninterrupted run follows, and the rows and logits of both runs are compared.

The peaks of RssAnon in `/proc/PID/status` are sampled every second. Finished steps are recorded in
FOLDER/log.jsonl, so that the same command resumes the script.
"""

import argparse
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from surelabel.data import find_part_rows, read_failed_images, read_prediction_part
from surelabel.data.prediction_runs import read_prediction_run

SIDE = 96
IMAGES_PER_ARCHIVE = 10_000
SAMPLE_SECONDS = 1.0
KILL_SECONDS = 600.0  # maximum time until a killed process ends
LABELS = "lion,guitar,bicycle,dog,cat,apple,car,tree,house,boat"
POISON = "poison.jpg"
MAX_BATCHES = 4  # maximum number of batches of each worker that are encoded again
# code that runs at the start of each Python process, and kills the process that opens the image
CRASH_HOOK = f"""
import os, signal, sys
def kill(event, arguments):
    if event == "open" and str(arguments[0]).endswith({POISON!r}):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill)
"""


def main() -> None:
    """Run all steps, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=2000, help="number of images")
    parser.add_argument("--files", action="store_true", help="write files instead of tar archives")
    parser.add_argument("--compare", action="store_true", help="compare with an uninterrupted run")
    parser.add_argument("--workers", type=int, help="number of actors")
    options = parser.parse_args()
    bench = KillBenchmark(options.folder.absolute(), options.images, options.workers)
    bench.write_images(as_files=options.files)
    bench.run_step("actor and raylet", "kills", kills=("actor", "raylet"))
    bench.run_step("main process", "kills", kills=("main process",))
    bench.run_step("none", "kills", kills=())
    bench.check("kills")
    bench.check_repeated_images()
    if options.compare:
        bench.run_step("uninterrupted", "uninterrupted", kills=())
        bench.compare_runs()
    bench.print_table()


class KillBenchmark:
    """Steps of the benchmark in a folder.

    Args:
        folder: Folder of the images, the predictions and the log.
        n_images: Number of images, without the one that kills its decoder.
        workers: Number of actors, or None for the default.
    """

    def __init__(self, folder: Path, n_images: int, workers: int | None):
        self.folder, self.n_images, self.workers = folder, n_images, workers
        self.log_file = folder / "log.jsonl"
        folder.mkdir(parents=True, exist_ok=True)

    def write_images(self, *, as_files: bool) -> None:
        """Write the images and the poisoned one, unless they were written before."""
        images = self.folder / "images"
        if (self.folder / "images.json").exists():
            if json.loads((self.folder / "images.json").read_text()) != self.n_images:
                raise SystemExit(
                    f"{self.folder} must have been written with the same --images; got another "
                    "number of images. Use a new folder."
                )
            return
        shutil.rmtree(images, ignore_errors=True)
        images.mkdir()
        (images / POISON).write_bytes(random_jpeg(self.n_images))
        for start in range(0, self.n_images, IMAGES_PER_ARCHIVE):
            numbers = range(start, min(start + IMAGES_PER_ARCHIVE, self.n_images))
            name = f"shard-{start // IMAGES_PER_ARCHIVE:05}"
            if as_files:
                (images / name).mkdir()
                for number in numbers:
                    (images / name / f"{number:08}.jpg").write_bytes(random_jpeg(number))
            else:
                write_archive(images / f"{name}.tar", numbers)
        (self.folder / "images.json").write_text(json.dumps(self.n_images))
        (self.folder / "hook").mkdir(exist_ok=True)
        (self.folder / "hook" / "sitecustomize.py").write_text(CRASH_HOOK)

    def run_step(self, name: str, out: str, *, kills: Sequence[str]) -> None:
        """Run or resume the predictions, kill processes one after the other, and log the result."""
        if any(step["step"] == name for step in self.steps()):
            return
        start, n_before = time.time(), len(list((self.folder / out).glob("part-*")))
        with (self.folder / f"{out}-{name}.stderr").open("wb") as stderr:
            process = self._start(out, stderr)
            memory = MemorySampler(process.pid)
            killed = [self._kill(kind, process, out) for kind in kills]
            code = process.wait()
        wait_for_end_of_ray(memory.pids)
        text = (self.folder / f"{out}-{name}.stderr").read_text()
        repeated = re.search(r"At most ([\d,]+) images? (?:was|were) encoded again", text)
        workers = re.search(r"with ([\d,]+) worker", text)
        record = {
            "step": name,
            "exit code": code,
            "killed": killed,
            "seconds": round(time.time() - start, 1),
            "parts before": n_before,
            "encoded again": int(repeated[1].replace(",", "")) if repeated else None,
            "workers": int(workers[1].replace(",", "")) if workers else None,
            "speed": (re.findall(r"([\d,]+) per second", text) or [None])[-1],
            "peaks": memory.stop(),
        }
        with self.log_file.open("a") as log:
            log.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)
        if not kills and code:
            raise SystemExit(f"{name}: exit code {code}; {text[-2000:]}")
        if kills[-1:] == ("raylet",):
            errors = [line for line in text.splitlines() if line.startswith("Error: ")]
            if code != 1 or len(errors) > 1 or "Traceback" in text:  # Ray can end the process
                raise SystemExit(
                    "A killed raylet must end the run with exit code 1 and one line; got exit code "
                    f"{code} and: {text}"
                )

    def steps(self) -> list[dict[str, Any]]:
        """Return the finished steps."""
        lines = self.log_file.read_text().splitlines() if self.log_file.exists() else []
        return [json.loads(line) for line in lines]

    def check(self, out: str) -> None:
        """Check that each image is in exactly one part, and that the poisoned image failed."""
        rows = find_part_rows(self.folder / out).rows  # raises if an image is in two parts
        failed = read_failed_images(self.folder / out)
        everything = np.sort(np.concatenate([rows, failed.rows]))
        assert np.array_equal(everything, np.arange(self.n_images + 1)), "an image is missing"
        assert [Path(image.path).name for image in failed.images] == [POISON], failed.images
        print(f"{out}: {len(rows):,} images once each; failed: {failed.images[0]}", flush=True)

    def check_repeated_images(self) -> None:
        """Check that at most four batches per worker were encoded again in all steps."""
        last = next(step for step in self.steps() if step["step"] == "none")
        parts = (self.folder / "kills").glob("part-*")
        batch_size = max(pq.read_metadata(part).num_rows for part in parts)
        limit = MAX_BATCHES * last["workers"] * batch_size
        assert last["encoded again"] <= limit, (last["encoded again"], limit)
        print(
            f"images encoded again: {last['encoded again']:,} of at most {limit:,} = {MAX_BATCHES} "
            f"batches x {last['workers']} workers x {batch_size:,} images",
            flush=True,
        )

    def compare_runs(self) -> None:
        """Check that two runs have the same rows, and logits that differ by at most 1e-5."""
        self.check("uninterrupted")
        first, second = (logits_by_row(self.folder / out) for out in ("kills", "uninterrupted"))
        difference = float(np.abs(first - second).max())
        assert difference <= 1e-5, difference
        print(f"largest difference of two logits: {difference:.2g}", flush=True)

    def print_table(self) -> None:
        """Print a row for each step."""
        print("| killed | exit code | seconds | images/s | encoded again | peak RssAnon (MB) |")
        print("|---|---|---|---|---|---|")
        for step in self.steps():
            peaks = ", ".join(f"{kind} {value:.0f}" for kind, value in step["peaks"].items())
            values = [step["step"], step["exit code"], step["seconds"], step["speed"]]
            print("|", " | ".join(map(str, [*values, step["encoded again"], peaks])), "|")

    def _start(self, out: str, stderr: Any) -> subprocess.Popen[bytes]:
        command = [Path(sys.executable).with_name("surelabel"), "tag", self.folder / "images"]
        command += ["--labels", LABELS, "--method", "zero_shot", "--cluster", "local"]
        command += ["--out", self.folder / out]
        command += ["--cluster-workers", str(self.workers)] if self.workers else []
        path = os.pathsep.join([str(self.folder / "hook"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        return subprocess.Popen(command, stderr=stderr, stdout=stderr, env=environment)

    def _kill(self, kind: str, process: subprocess.Popen[bytes], out: str) -> int:
        """Kill a process after two new parts, and return its identifier."""
        n_parts = len(list((self.folder / out).glob("part-*"))) + 2
        while process.poll() is None and len(list((self.folder / out).glob("part-*"))) < n_parts:
            time.sleep(0.1)
        if process.poll() is not None:
            raise SystemExit(f"The run ended before the {kind} was killed. Give more --images.")
        pid = process.pid if kind == "main process" else find_process(process.pid, kind)
        os.kill(pid, signal.SIGKILL)
        return pid


def random_jpeg(seed: int) -> bytes:
    """Return a JPEG image of smooth random colours."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def write_archive(file: Path, numbers: Sequence[int]) -> None:
    """Write images to a tar archive."""
    with tarfile.open(file, "w") as archive:
        for number in numbers:
            content = random_jpeg(number)
            member = tarfile.TarInfo(f"{number:08}.jpg")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def logits_by_row(folder: Path) -> np.ndarray:
    """Return the logits of all predicted images in the order of the rows."""
    found, run = find_part_rows(folder), read_prediction_run(folder)
    logits = np.full((len(found), len(run.labels)), np.nan, np.float32)
    for file in found.files:
        rows, part = read_prediction_part(file, run)
        assert part.logits is not None
        logits[np.searchsorted(found.rows, rows)] = part.logits
    return logits


def processes_of(parent: int) -> Iterator[tuple[int, str]]:
    """Yield the identifier of each descendant of a process, and its kind as in the table."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(int(entry))
    stack = [(pid, "main process") for pid in [parent]]
    while stack:
        pid, kind_of_parent = stack.pop()
        try:
            command = Path("/proc", str(pid), "cmdline").read_bytes()
        except OSError:
            continue
        text = command.replace(b"\0", b" ").decode(errors="replace")
        kind = kind_of_process(text, kind_of_parent)
        yield pid, kind
        stack += [(child, kind) for child in children.get(pid, [])]


def kind_of_process(command: str, kind_of_parent: str) -> str:
    """Return the kind of a process from its command line."""
    if "MapWorker" in command and "run_tagging_process" not in command:
        return "actor"
    if "run_tagging_process" in command:
        return "decoder" if kind_of_parent in ("encoder", "decoder") else "encoder"
    if "raylet/raylet" in command:
        return "raylet"
    return "main process" if "surelabel" in command and " tag" in command else "Ray"


def find_process(parent: int, kind: str) -> int:
    """Return the identifier of a descendant process of the given kind."""
    pids = [pid for pid, found in processes_of(parent) if found == kind]
    if not pids:
        raise SystemExit(f"The run must have a process of the kind {kind}; got none.")
    return pids[-1]


class MemorySampler:
    """Thread that samples the memory of all processes of a run.

    Args:
        parent: Identifier of the main process.
    """

    def __init__(self, parent: int):
        self._parent, self._peaks, self._stopped = parent, dict[str, float](), Event()
        self.pids: set[int] = set()
        self._thread = Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        """Return the largest RssAnon of a process of each kind, in MB."""
        self._stopped.set()
        self._thread.join()
        return self._peaks

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            for pid, kind in processes_of(self._parent):
                try:
                    status = Path("/proc", str(pid), "status").read_text()
                except OSError:
                    continue
                self.pids.add(pid)
                match = re.search(r"RssAnon:\s+(\d+) kB", status)
                if match:
                    self._peaks[kind] = max(self._peaks.get(kind, 0.0), int(match[1]) / 1000)


def wait_for_end_of_ray(pids: set[int]) -> None:
    """Wait until no process of a run exists, and raise an error after ten minutes."""
    end = time.monotonic() + KILL_SECONDS
    while alive := [pid for pid in pids if is_running(pid)]:
        if time.monotonic() > end:
            raise SystemExit(f"All processes of a run must end; got running processes: {alive}.")
        time.sleep(0.5)


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return "State:\tZ" not in Path("/proc", str(pid), "status").read_text()
    except OSError:
        return False


if __name__ == "__main__":
    main()
