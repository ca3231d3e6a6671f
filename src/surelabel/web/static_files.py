"""Read the scripts, style sheets and icons of the page, which are part of the package."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

STATIC_FOLDER = Path(__file__).with_name("static")
CONTENT_TYPES_OF_SUFFIXES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    """File of the page.

    Attributes:
        content: Bytes of the file.
        content_type: Content type, which the suffix determines.
        tag: Value of the header ``etag``, which changes with the content.
    """

    content: bytes
    content_type: str
    tag: str


def read_static_files() -> dict[str, StaticFile]:
    """Return all files of the page by name. A client can read no other file.

    Example:
        >>> read_static_files()["page.js"].content_type
        'text/javascript; charset=utf-8'
    """
    return {
        path.name: _read_static_file(path)
        for path in sorted(STATIC_FOLDER.iterdir())
        if path.suffix in CONTENT_TYPES_OF_SUFFIXES
    }


def _read_static_file(path: Path) -> StaticFile:
    content = path.read_bytes()
    tag = f'"{blake2b(content, digest_size=16).hexdigest()}"'
    return StaticFile(content, CONTENT_TYPES_OF_SUFFIXES[path.suffix], tag)
