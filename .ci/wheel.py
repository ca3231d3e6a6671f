"""Build the wheel from a clean copy, and check that it is complete and can be imported."""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "src")
IMPORT_ALL = """
import sys, surelabel
assert surelabel.__file__.startswith(sys.argv[1]), surelabel.__file__
for name in surelabel.__all__:
    getattr(surelabel, name)
"""


def build(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that old build folders are not included."""
    copy = folder / "copy"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy)]
    subprocess.run(pip + options, check=True)
    return next(folder.glob("surelabel-*.whl"))


def package_files() -> set[str]:
    """Return the path of every file of the package in the sources."""
    files = (ROOT / "src" / "surelabel").rglob("*")
    return {
        file.relative_to(ROOT / "src").as_posix()
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


def main() -> None:
    """Build the wheel, compare its files with the sources, and import it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        wheel = build(folder)
        with zipfile.ZipFile(wheel) as archive:
            packed = set(archive.namelist())
            archive.extractall(folder / "extracted")
        if missing := sorted(package_files() - packed):
            sys.exit(
                f"The wheel must contain all files of the package; {len(missing)} are missing: "
                f"{', '.join(missing[:5])}. Add their suffixes to package-data in pyproject.toml."
            )
        if not {"LICENSE", "NOTICE"} <= {Path(path).name for path in packed}:
            sys.exit(
                "The wheel must contain LICENSE and NOTICE; at least one is missing. Add both to "
                "license-files in pyproject.toml."
            )
        extracted = str(folder / "extracted")
        subprocess.run(
            [sys.executable, "-c", IMPORT_ALL, extracted],
            check=True,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": extracted},
        )
        size = wheel.stat().st_size / 1e6
        print(f"The wheel contains {len(packed)} files, {size:.1f} MB, and can be imported.")


if __name__ == "__main__":
    main()
