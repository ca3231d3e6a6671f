"""Run commands whose output does not fit on the disk, and check what they leave.

    python tests/robustness/full_disk.py [--long]

Every output of the command line is written once, and then again while the disk has too little free
space: on a small file system in memory (100 kB and 20 MB), where mounting is allowed, and with a
limit of the file size, which works everywhere. The command must end with one line on stderr and
without a traceback, the earlier output must be unchanged, and the space must be free again. The
default is the limit of the file size for a few outputs, in a few seconds; --long includes all
outputs and both file systems.
"""

import argparse
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from surelabel import evaluation, recognizer, report, retrieval
from surelabel.cli import main as surelabel
from surelabel.data import collection
from surelabel.data.labels import csv

LINEAR = "--set method.name=linear --set epochs=2"
COMMANDS = {  # OUT is the output, in a folder on the small disk
    "OUT.parquet": "tag images --labels names.txt --out OUT",
    "OUT.csv": "tag images --labels names.txt --out OUT",
    "OUT.jsonl": "tag images --labels names.txt --out OUT",
    "recognizer": "calibrate tiny-vit labels.csv --out OUT",
    "fit": f"fit labels.csv {LINEAR} --out OUT",
    "folds": f"fit labels.csv {LINEAR} --folds 2 --out OUT",
    "index": "index OUT images --model recognizer",
    "report": "evaluate recognizer labels.csv --report OUT",
    "heat-maps": "tag images --labels names.txt --heat-maps OUT",
    "scenes": "scenes OUT --count 8",
    "shard": "tag images --labels names.txt --shard 1/2 --out OUT",
}
IMPORTED = (evaluation, recognizer, report, retrieval)  # once, before the forks
SHORT_COMMANDS = ("OUT.parquet", "fit")
COMPLETED_COMMANDS = ("scenes", "shard")  # without effect on an output that is complete
N_IMAGES, BLOCK = 24, 4096
DISKS = (100_000, 20_000_000)  # bytes
SHARES = (0.0, 0.1, 0.4, 0.7, 0.95)  # of the space that an output needs
SHORT_SHARES = (0.5,)


def make_inputs(folder):
    """Write images, labels and a recognizer to a folder, and make it the current folder."""
    test = collection("scenes-80", split="test").take(range(N_IMAGES))
    (folder / "images").mkdir()
    for path in test.paths:
        shutil.copy(path, folder / "images")
    os.chdir(folder)
    images = [f"images/{Path(path).name}" for path in test.paths]
    Path("names.txt").write_text("\n".join(test.names[:8]) + "\n")
    csv.write(type(test)(images, test.names, test.targets, test.known), "labels.csv")


def run_command(arguments, *, file_limit=None, cache=None):
    """Run a command in a forked process; return its exit status and its text on stderr.

    Args:
        arguments: Arguments of the command.
        file_limit: Maximum size of a file in bytes; None is no limit.
        cache: Folder of the feature cache; None is the folder of this process.
    """
    read_end, write_end = os.pipe()  # a file would have the limit too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        process = os.fork()
    if process == 0:
        try:
            os.dup2(write_end, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.close(read_end)
            os.close(write_end)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")  # not those of pytest
            if cache:
                os.environ["SURELABEL_CACHE"] = str(cache)
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
            surelabel([*arguments, "--quiet"])
        except SystemExit as end:
            sys.stderr.flush()
            os._exit(end.code or 0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(99)
    os.close(write_end)
    with os.fdopen(read_end) as errors:
        text = errors.read()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text


def contents(folder):
    """Return a hash of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def free_bytes(folder):
    """Return the free bytes of a file system."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def used_bytes(folder):
    """Return the size of all files and folders below a folder, in whole blocks."""
    return sum(-(-path.lstat().st_size // BLOCK) * BLOCK for path in folder.rglob("*"))


def check_failed_run(name, code, text, before, after):
    """Check the exit status, the text and the files of a command that had too little space."""
    lines = [line for line in text.splitlines() if not line.startswith("Note: ")]
    assert code == 1, f"{name}: exit status {code}: {text}"
    assert "Traceback" not in text, f"{name}: {text}"
    assert len(lines) == 1, f"{name}: {text}"
    assert "cannot be written" in lines[0] or "cannot be written to" in lines[0], lines[0]
    assert "File too large" in lines[0] or "No space left on device" in lines[0], lines[0]
    resumable = (".unfinished", ".partial", ".scenes", "scenes/", "shard/")
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    changed = {path for path in changed if not any(part in path for part in resumable)}
    assert not changed, f"{name}: {sorted(changed)} changed"


def run_on_disk(name, disk, shares, *, limits=False):
    """Write an output, and again with too little space; return the number of failed runs.

    Args:
        name: Key of COMMANDS.
        disk: Empty folder on the disk.
        shares: Free space of each run, relative to the space that the output needs.
        limits: Whether the size of files is limited, instead of the free space of the disk.
    """
    out = disk / name
    arguments = [str(out) if word == "OUT" else word for word in COMMANDS[name].split()]
    code, text = run_command(arguments)
    if code:
        check_failed_run(name, code, text, {}, contents(disk))
        return 1
    size = used_bytes(disk)
    largest = max(path.lstat().st_size for path in disk.rglob("*") if path.is_file())
    if name in COMPLETED_COMMANDS:
        shutil.rmtree(out)
    before, failures = contents(disk), 0
    for share in shares:
        filler = disk.parent / f"{disk.name}.filler" if limits else disk / ".filler"
        if not limits:
            fill_disk(filler, free_bytes(disk) - int(share * size))
        free = free_bytes(disk)
        code, text = run_command(arguments, file_limit=int(share * largest) if limits else None)
        left = {path: digest for path, digest in contents(disk).items() if path != ".filler"}
        if code:
            failures += 1
            check_failed_run(name, code, text, before, left)
            is_resumable = name in ("fit", "folds", *COMPLETED_COMMANDS) or name.startswith("OUT.")
            assert name != "shard" or text.startswith("Error: Shard 1/2: "), text
            assert limits or is_resumable or free_bytes(disk) == free, f"{name}: space is lost"
        filler.unlink(missing_ok=True)
        code, text = run_command(arguments)
        assert code == 0, f"{name} after a failure: {text}"
        if name in COMPLETED_COMMANDS:
            shutil.rmtree(out)
        before = contents(disk)
        leftovers = [path.name for path in disk.rglob(".*") if path.name.endswith((".new", ".old"))]
        assert not leftovers, leftovers
    return failures


def fill_disk(file, size):
    """Write a file of at most ``size`` bytes, until the disk is full."""
    try:
        with file.open("wb", buffering=0) as stream:
            for _ in range(max(size, 0) // BLOCK):
                stream.write(bytes(BLOCK))
    except OSError:
        pass


def run_with_cache_on(disk, *, file_limit=None):
    """Check that a full disk of the cache is a warning, and that the result is the same."""
    cache = disk / "cache"
    out = Path(tempfile.mkdtemp(dir=Path.cwd())) / "tags.csv"
    arguments = ["tag", "images", "--labels", "names.txt", "--out", str(out)]
    assert run_command(arguments)[0] == 0
    expected = out.read_text()
    if file_limit is None:
        fill_disk(disk / ".filler", free_bytes(disk) - 2 * BLOCK)
    free = free_bytes(disk)
    limit = max(file_limit or 0, 3 * len(expected)) if file_limit is not None else None
    code, text = run_command(arguments, cache=cache, file_limit=limit)
    assert code == 0, text
    if limit is None:
        assert "Features were not added to the cache" in text, text
        assert free - free_bytes(disk) <= 2 * BLOCK, "space is lost"
    assert out.read_text() == expected
    assert not list(cache.glob(".*"))


def run_in_mounted_disks(commands):
    """Run all commands on small file systems in memory; print a line for each file system."""
    for size in DISKS:
        with tempfile.TemporaryDirectory() as disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
            try:
                failures = 0
                for name in commands:
                    failures += run_on_disk(name, Path(disk), SHARES)
                    for path in Path(disk).iterdir():
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                run_with_cache_on(Path(disk))
            finally:
                os.chdir("/")
                subprocess.run(["umount", disk], check=True)
                os.chdir(os.environ["SURELABEL_INPUTS"])
        print(
            f"disk of {size} bytes: {len(commands) + 1} outputs, {failures} full disks", flush=True
        )


def can_mount():
    """Return whether a process in its own namespaces may mount a file system."""
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def main():
    """Run the commands and print one line for each kind of disk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="all outputs on mounted disks")
    parser.add_argument("--mounted", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.long and not arguments.mounted:
        if can_mount():
            command = ["unshare", "--map-root-user", "--mount", sys.executable, *sys.argv]
            subprocess.run([*command, "--mounted"], check=True)
        else:
            print("disks of 100 kB and 20 MB: skipped, because mounting is not allowed")
    commands = COMMANDS if arguments.long else SHORT_COMMANDS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SURELABEL_CACHE"] = os.environ.get("SURELABEL_CACHE") or f"{folder}/cache"
        os.environ["SURELABEL_INPUTS"] = folder
        (Path(folder) / "disk").mkdir()
        make_inputs(Path(folder))
        if arguments.long:
            code, text = run_command(["calibrate", "tiny-vit", "labels.csv", "--out", "recognizer"])
            assert code == 0, text
        if arguments.mounted:
            run_in_mounted_disks(commands)
            return
        failures = 0
        for name in commands:
            disk = Path(folder, "disk", name)
            disk.mkdir()
            shares = SHARES if arguments.long else SHORT_SHARES
            failures += run_on_disk(name, disk, shares, limits=True)
        run_with_cache_on(Path(folder, "disk"), file_limit=1000)
    print(f"limited files: {len(commands) + 1} outputs, {failures} refused writes")


if __name__ == "__main__":
    main()
