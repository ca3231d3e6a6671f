"""Build the wheel from a clean copy; it must hold every file of the package and import alone."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "src")
IMPORT_ALL = """
import sys, surelabel
assert surelabel.__file__.startswith(sys.argv[1]), surelabel.__file__
for name in surelabel.__all__:
    getattr(surelabel, name)
"""


def build(folder: Path) -> Path:
    """The wheel of a copy of the sources, so that old build folders cannot leak into it."""
    copy = folder / "copy"
    copy.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            rubbish = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / part, copy / part, ignore=rubbish)
        else:
            shutil.copy(ROOT / part, copy / part)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy)]
    subprocess.run(pip + options, check=True)
    return next(folder.glob("surelabel-*.whl"))


def wanted() -> set[str]:
    """Every file of the package in the sources."""
    files = (ROOT / "src" / "surelabel").rglob("*")
    return {
        f.relative_to(ROOT / "src").as_posix()
        for f in files
        if f.is_file() and "__pycache__" not in f.parts
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        wheel = build(folder)
        with zipfile.ZipFile(wheel) as archive:
            packed = set(archive.namelist())
            archive.extractall(folder / "alone")
        if missing := sorted(wanted() - packed):
            sys.exit(
                f"The wheel lacks {len(missing)} files of the package: {', '.join(missing[:5])}. "
                "Add their endings to package-data in pyproject.toml."
            )
        if not {"LICENSE", "NOTICE"} <= {Path(p).name for p in packed}:
            sys.exit("The wheel lacks LICENSE or NOTICE.")
        alone = str(folder / "alone")
        subprocess.run(
            [sys.executable, "-c", IMPORT_ALL, alone],
            check=True,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": alone},
        )
        size = wheel.stat().st_size / 1e6
        print(f"The wheel holds {len(packed)} files in {size:.1f} MB and imports on its own.")


if __name__ == "__main__":
    main()
