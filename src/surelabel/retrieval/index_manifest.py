"""Read and write ``index.json``, the manifest of an index, which is replaced atomically."""

import hashlib
import json
import ntpath
import posixpath
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from surelabel.counts import format_count
from surelabel.errors import DataError
from surelabel.file_readers import CHECK_PATH, read_json
from surelabel.files import atomic_file
from surelabel.leftover_files import delete_path
from surelabel.retrieval.index_lock import LOCK_FILE
from surelabel.retrieval.shard_layout import COLUMN_LISTS, INDEX_VERSION
from surelabel.retrieval.shards import Shard

_BUILD_AGAIN = "Restore the file, or build the index again (`surelabel index`)."
_INDEX_FILE_NAME = re.compile(
    r"\.?(?:(?:rows|high|low|first|last|steps|sparse|logits|scores|order|checksums|features|ann)"
    r"-(\d{3,})\.(?:parquet|npy|usearch)|index\.json)"
    r"(?:\.(?:\d+|[0-9a-f]{8})\.new|\.lock)?|" + re.escape(LOCK_FILE)
)


@dataclass(frozen=True)
class IndexRecognizer:
    """Record of the recognizer of an index, from which the recognizer is loaded again.

    Attributes:
        model: Absolute path of a saved recognizer, or name of an encoder such as ``tiny-vit``.
        labels: Labels of the recognizer, length c; ``sofa|couch`` is one label with two aliases.
        calibration: Calibration as a JSON object, if the recognizer was calibrated without labels
            on images of the index. If the model has the calibration, the value is None.
        encoder: Fingerprint of the encoder of the image vectors. If it was not recorded, the value
            is None.
        scores: Fingerprint of the recognizer without its calibration, which computed the raw
            scores. If it was not recorded, the value is None.
    """

    model: str
    labels: tuple[str, ...]
    calibration: dict[str, Any] | None = None
    encoder: str | None = None
    scores: str | None = None


@dataclass(frozen=True)
class IndexManifest:
    """Content of ``index.json``: labels, recognizer, shards and skipped images of an index.

    Attributes:
        names: Label names, length c.
        model: Fingerprint of the recognizer.
        calibration: Description of the calibration of the log-odds.
        root: Absolute path of the folder that contains the images with a relative stored path. In
            version 1, all stored paths are absolute, and the value is None.
        shards: Shards of the index, in row order.
        skipped: Reason for each image that could not be read, by stored path.
        revision: Random identifier, which changes with every change of the index.
        version: Version of the index, from 1 to 2; new indexes have version 2.
        recognizer: Name and labels of the recognizer. If they were not recorded, the value is None.
        engines: Engines and number formats other than ``torch fp32`` that computed the features of
            images, such as ``openvino bf16``, in alphabetical order.
    """

    names: tuple[str, ...]
    model: str
    calibration: str
    root: str | None
    shards: tuple[Shard, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    revision: str = field(default_factory=lambda: new_revision())
    version: int = INDEX_VERSION
    recognizer: IndexRecognizer | None = None
    engines: tuple[str, ...] = ()


def new_revision() -> str:
    """Return a random identifier of a revision of an index."""
    return secrets.token_hex(8)


def save_index_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Write ``index.json``, then delete the index files that ``index.json`` does not list.

    Args:
        folder: Folder of the index.
        manifest: New manifest, of the current version.

    Raises:
        DataError: If the folder cannot be written.
    """
    fields = {
        "format": "surelabel index",
        "version": manifest.version,
        "revision": manifest.revision,
        "images": sum(map(len, manifest.shards)),
        "names": manifest.names,
        "model": manifest.model,
        "calibration": manifest.calibration,
        "root": manifest.root,
        "shards": [shard.entry for shard in manifest.shards],
        "skipped": manifest.skipped,
    }
    if manifest.recognizer is not None:
        recognizer = asdict(manifest.recognizer).items()
        fields["recognizer"] = {key: value for key, value in recognizer if value is not None}
    if manifest.engines:
        fields["engines"] = manifest.engines
    fields["checksum"] = _index_manifest_checksum(fields)
    with atomic_file(folder / "index.json") as file:
        file.write_text(json.dumps(fields, indent=1), encoding="ascii")
    delete_unlisted_index_files(folder, manifest)


def delete_unlisted_index_files(folder: Path, manifest: IndexManifest) -> None:
    """Delete the index files that a manifest does not list, such as those of a killed process."""
    listed = {"index.json", LOCK_FILE}.union(*(shard.files for shard in manifest.shards))
    for unlisted in (file for file in _index_manifest_files(folder) if file.name not in listed):
        delete_path(unlisted)  # on Windows, a file that is open stays until the next write


def _index_manifest_checksum(fields: dict[str, Any]) -> str:
    """Return the BLAKE2b hash of the fields of ``index.json`` without the field ``checksum``."""
    text = json.dumps(fields, sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def load_index_manifest(folder: Path) -> IndexManifest:
    """Read ``index.json`` without opening a shard.

    Args:
        folder: Folder of the index.

    Raises:
        DataError: If the file is missing, is damaged or cannot be read. Also if a newer or an
            unreleased version of surelabel wrote the file.
    """
    file = folder / "index.json"
    try:
        if not file.is_file():
            raise DataError(
                f"{folder} must be the folder of an index; it does not contain index.json. Check "
                "the path, or build the index with `surelabel index`."
            )
        fields = read_json(file, remedy=_BUILD_AGAIN)
        if fields["version"] > INDEX_VERSION:
            raise DataError(
                f"{file} must have a format version up to {INDEX_VERSION}; got version "
                f"{fields['version']}. Install a newer version of surelabel."
            )
        manifest = _parse_index_manifest(folder, fields)
        if manifest.version > 1 and fields.pop("checksum") != _index_manifest_checksum(fields):
            raise ValueError("the checksum does not match")
        return manifest
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. {CHECK_PATH}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise DataError(f"{file} is damaged: {reason}. {_BUILD_AGAIN}") from error


def load_complete_index_manifest(folder: Path) -> IndexManifest:
    """Read ``index.json``, and open and check the files of all shards.

    If another process replaces the index at the same time, the new index is read.

    Args:
        folder: Folder of the index.

    Raises:
        DataError: If a file is missing or damaged, or if a newer version of surelabel wrote the
            index.
    """
    manifest = load_index_manifest(folder)
    while True:
        try:
            for shard in manifest.shards:
                shard.mapped_files.check(len(manifest.names))
            return manifest
        except DataError:
            latest = load_index_manifest(folder)
            if latest.revision == manifest.revision:
                raise
            manifest = latest  # a writer replaced the index and deleted the older files


def _parse_index_manifest(folder: Path, fields: dict[str, Any]) -> IndexManifest:
    """Return the manifest of the fields of ``index.json``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: If a field is missing or invalid.
        DataError: If an unreleased version of surelabel wrote the index.
    """
    strings = [fields[name] for name in ("model", "calibration", "revision")]
    names, skipped, entries = fields["names"], fields["skipped"], fields["shards"]
    version, root = fields["version"], None
    if type(version) is not int or version < 1:
        raise ValueError("version must be a whole number of 1 or more")
    if version > 1 and not _is_absolute_path_in_index_manifest(root := fields["root"]):
        raise ValueError("root must be an absolute path")
    if not _is_string_list_in_index_manifest(strings):
        raise ValueError("model, calibration and revision must be strings")
    if (
        not _is_string_list_in_index_manifest(names)
        or not all(names)
        or len(set(names)) < len(names)
    ):
        raise ValueError("names must be a list of distinct, non-empty strings")
    if not isinstance(skipped, dict) or not _is_string_list_in_index_manifest([*skipped.values()]):
        raise ValueError("skipped must map each path to a reason")
    if not isinstance(entries, list):
        raise ValueError("shards must be a list")
    if version > 1 and any(map(_is_entry_of_unreleased_version, entries)):
        raise DataError(
            f"{folder} must be an index of a released version of surelabel; an unreleased version "
            "wrote this index. Delete the folder, and build the index again (`surelabel index`)."
        )
    shards = tuple(Shard.from_entry(folder, entry, version) for entry in entries)
    columns = [
        column for shard in shards for line in shard.layout.columns.values() for column in line
    ]
    if max(columns, default=-1) >= len(names):
        raise ValueError(f"columns of shards must be below {len(names)}")
    if any(
        len(counts) != len(names)
        for shard in shards
        if (counts := shard.layout.sparse_counts) is not None
    ):
        raise ValueError(f"sparse_counts must have one number for each of {len(names)} labels")
    if len({shard.number for shard in shards}) < len(shards):
        raise ValueError("a shard is listed twice")
    engines = fields.get("engines", [])
    if not _is_string_list_in_index_manifest(engines):
        raise ValueError("engines must be a list of strings")
    model, calibration, revision = strings
    return IndexManifest(
        tuple(names),
        model,
        calibration,
        root,
        shards,
        skipped,
        revision,
        version,
        _parse_recognizer_in_index_manifest(fields.get("recognizer"), n_labels=len(names)),
        tuple(engines),
    )


def _is_entry_of_unreleased_version(entry: Any) -> bool:
    """Return whether the entry of a shard has no list of columns, which released versions write."""
    return isinstance(entry, dict) and entry.keys().isdisjoint(COLUMN_LISTS)


def _parse_recognizer_in_index_manifest(value: Any, *, n_labels: int) -> IndexRecognizer | None:
    """Return the recognizer of an index, or None if no recognizer was recorded."""
    if value is None:
        return None
    model, labels, calibration = value["model"], value["labels"], value.get("calibration")
    if not isinstance(model, str) or not _is_string_list_in_index_manifest(labels):
        raise ValueError("recognizer must have the name of a model and a list of labels")
    if len(labels) != n_labels:
        raise ValueError(f"recognizer must have {format_count(n_labels, 'label')}")
    if not isinstance(calibration, dict | None):
        raise ValueError("calibration of the recognizer must be an object or null")
    encoder, scores = value.get("encoder"), value.get("scores")
    if not isinstance(encoder, str | None) or not isinstance(scores, str | None):
        raise ValueError("encoder and scores of the recognizer must be strings or null")
    return IndexRecognizer(model, tuple(labels), calibration, encoder, scores)


def _is_string_list_in_index_manifest(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_absolute_path_in_index_manifest(value: Any) -> bool:
    """Return whether a value is an absolute path of any operating system."""
    return isinstance(value, str) and (posixpath.isabs(value) or ntpath.isabs(value))


def check_index_manifest_folder(folder: Path) -> None:
    """Check that an index can be written to a folder, which must be new, empty or an index.

    Args:
        folder: Folder of the index to write.

    Raises:
        DataError: If the folder contains other files, or is a file.
    """
    other_files: Sequence[Path] = []
    if folder.is_dir():
        other_files = sorted(set(folder.iterdir()) - set(_index_manifest_files(folder)))
    elif folder.exists():
        other_files = [folder]
    if other_files:
        raise DataError(
            "The folder of a new index must be new or empty, or contain only an older index; got "
            f"{other_files[0]}. Choose another folder."
        )


def next_shard_number_in_index_manifest(folder: Path) -> int:
    """Return a new shard number, which is above the numbers of all shard files in a folder."""
    matches = [_INDEX_FILE_NAME.fullmatch(file.name) for file in _index_manifest_files(folder)]
    return 1 + max((int(match[1]) for match in matches if match and match[1]), default=-1)


def _index_manifest_files(folder: Path) -> list[Path]:
    """Return the files in a folder whose names are names of index files."""
    if not folder.is_dir():
        return []
    return [file for file in folder.iterdir() if _INDEX_FILE_NAME.fullmatch(file.name)]
