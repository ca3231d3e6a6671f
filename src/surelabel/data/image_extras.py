"""List image formats that need an optional package: HEIC and RAW, with suffixes and packages."""

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class ImageExtra:
    """Image format whose decoder is an optional package.

    Attributes:
        kind: Name of the format in messages.
        name: Name of the extra of this package that installs the decoder.
        package: Package of the decoder.
        suffixes: Suffixes of the files, in lower case with a dot.
    """

    kind: str
    name: str
    package: str
    suffixes: frozenset[str]

    @property
    def is_installed(self) -> bool:
        """Return whether the package of the decoder is installed, without importing the package."""
        return find_spec(self.package) is not None

    @property
    def remedy(self) -> str:
        """Return a clause with the command that installs the decoder, without a full stop."""
        return f"run pip install 'surelabel[{self.name}]'"


HEIC = ImageExtra("HEIC", "heic", "pillow_heif", frozenset({".heic", ".heif", ".hif"}))
RAW = ImageExtra(
    "RAW",
    "raw",
    "rawpy",
    frozenset(
        {".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff", ".gpr", ".iiq"}
        | {".kdc", ".mef", ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".rw2"}
        | {".rwl", ".sr2", ".srf", ".srw", ".x3f"}
    ),
)
IMAGE_EXTRAS = (HEIC, RAW)
