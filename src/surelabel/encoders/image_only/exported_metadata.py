"""Read the metadata of exported recognizers from ONNX and OpenVINO files, which can be untrusted.

PyTorch loads ``.pt2`` files with pickle, which can execute code. Such files are therefore refused.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from xml.parsers import expat

from surelabel.encoders.image_inputs.preprocessing import MAX_SIDE, check_preprocess_cfg
from surelabel.encoders.image_only.onnx_file import metadata_of_onnx_model, read_onnx_model
from surelabel.errors import ConfigError, DataError
from surelabel.file_readers import check_regular_file, open_regular_file
from surelabel.records.export_metadata import (
    EXPORT_AGAIN,
    METADATA_KEY,
    ExportMetadata,
    read_export_metadata,
)

OPENVINO_SUFFIX, PT2_SUFFIX = ".xml", ".pt2"
WEIGHTS_SUFFIX = ".bin"  # of the file beside an OpenVINO model
METADATA_LIMIT = 2**26  # characters
XML_LIMIT = 2**28  # bytes; the weights are in another file
MAX_LABELS = 2**17
MAX_VIEWS = 1024  # per image
TEXT_LIMIT = 2000  # characters of a text that messages can contain
GIVE_BOTH_FILES = "Copy both files of the model into one folder, with the same name."


def read_exported_metadata(file: Path) -> ExportMetadata:
    """Return the metadata of an exported recognizer, after a check of all values.

    Args:
        file: ONNX file, or ``.xml`` file of an OpenVINO model.

    Raises:
        DataError: If the file is missing or damaged, or the metadata are missing or invalid.
        ConfigError: If the file is a ``.pt2`` file, or an ONNX file without metadata.
        MissingPart: If onnx is not installed.
    """
    suffix = file.suffix.lower()
    if suffix == PT2_SUFFIX:
        raise ConfigError(
            f"A model must be a .onnx or .xml file; got {file}. PyTorch loads .pt2 files with "
            "pickle, which can execute code. Export the recognizer as .onnx or .xml."
        )
    check_regular_file(file, remedy="Check the path.")
    if suffix == OPENVINO_SUFFIX:
        text = _metadata_of_openvino_file(file)
        remedy = EXPORT_AGAIN
    else:
        text = metadata_of_onnx_model(read_onnx_model(file))
        remedy = f"Give onnx:{file} if the file contains an image encoder."
    if text is None:
        raise ConfigError(
            f"{file} must be a recognizer that `surelabel export` wrote; the file contains no "
            f"metadata of surelabel. {remedy}"
        )
    if len(text) > METADATA_LIMIT:
        raise DataError(
            f"The metadata of {file} must have at most {METADATA_LIMIT:,} characters; got "
            f"{len(text):,}. {EXPORT_AGAIN}"
        )
    metadata = read_export_metadata(text, str(file))
    _check_metadata_texts(metadata, file)
    _check_metadata_input(metadata, file)
    return metadata


def openvino_weights_file(file: Path) -> Path:
    """Return the path of the weights beside the ``.xml`` file of an OpenVINO model.

    Raises:
        DataError: If the file of the weights is missing or no regular file.
    """
    weights = file.with_suffix(WEIGHTS_SUFFIX)
    check_regular_file(weights, remedy=GIVE_BOTH_FILES)
    return weights


def _metadata_of_openvino_file(file: Path) -> str | None:
    """Return the metadata in the ``rt_info`` of an OpenVINO model, or None without metadata.

    Raises:
        DataError: If the file is no XML file of an OpenVINO model.
    """
    with open_regular_file(file) as stream:
        content = stream.read(XML_LIMIT + 1)
    problem = ""
    if len(content) > XML_LIMIT:
        problem = f"more than {XML_LIMIT:,} bytes"
    elif b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        problem = "a document type or an entity, which is unsafe"
    reader = _RuntimeInfoReader()
    if not problem:
        try:
            reader.parse(content)
        except (expat.ExpatError, ValueError) as error:
            problem = f"XML that is not well-formed ({error})"
    if not problem and reader.root != "net":
        problem = f"the root element {reader.root[:60]!r}"
    if problem:
        raise DataError(
            f"{file} must be the .xml file of an OpenVINO model, with the root element net; got "
            f"{problem}. Copy the file again."
        )
    return reader.metadata


class _RuntimeInfoReader:
    """Read the root element and the metadata of surelabel of an OpenVINO model.

    Attributes:
        root: Name of the root element.
        metadata: Value of ``net/rt_info/surelabel``, or None.
    """

    def __init__(self) -> None:
        self.root = ""
        self.metadata: str | None = None
        self._path: list[str] = []

    def parse(self, content: bytes) -> None:
        """Read all elements.

        Raises:
            ExpatError: If the content is not well-formed XML.
        """
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.Parse(content, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.root = self.root or name
        self._path.append(name)
        if self._path == ["net", "rt_info", METADATA_KEY] and self.metadata is None:
            self.metadata = attributes.get("value")

    def _end(self, name: str) -> None:
        self._path.pop()


def _check_metadata_texts(metadata: ExportMetadata, file: Path) -> None:
    """Check the number of labels, and that each text that messages contain is one short line.

    Raises:
        DataError: If a value is invalid.
    """
    if len(metadata.names) > MAX_LABELS:
        raise _exported_metadata_error(
            file, "names", f"at most {MAX_LABELS:,} labels", len(metadata.names)
        )
    texts = {
        "calibrated_on": metadata.calibrated_on or "",
        "input_name": metadata.input_name,
        "output_name": metadata.output_name,
        "encoder": metadata.encoder,
        "license": "".join(map(str, metadata.license.values())),
        "method": metadata.method,
        "fingerprint": metadata.fingerprint,
        "version": metadata.version,
    }
    for key, text in texts.items():
        is_prose = key == "license"  # the text of a license can have several lines
        if not is_prose and not (text.isprintable() and len(text) <= TEXT_LIMIT):
            raise _exported_metadata_error(
                file, key, f"one line of at most {TEXT_LIMIT:,} printable characters", text
            )


def _check_metadata_input(metadata: ExportMetadata, file: Path) -> None:
    """Check that the shape of the input, the preprocessing and the views agree.

    Raises:
        DataError: If a value is invalid, or the values contradict each other.
    """
    try:
        check_preprocess_cfg(metadata.preprocessing, str(file))
    except ConfigError as error:
        raise DataError(f"{error} {EXPORT_AGAIN}") from error
    size = metadata.preprocessing.get("size")
    sides = size if isinstance(size, list | tuple) else [size, size]
    if len(sides) != 2 or not all(type(s) is int and 1 <= s <= MAX_SIDE for s in sides):
        raise _exported_metadata_error(file, "size", "a height and a width in pixels", size)
    if metadata.min_side > MAX_SIDE * MAX_VIEWS:
        expected = f"at most {MAX_SIDE * MAX_VIEWS:,} pixels"
        raise _exported_metadata_error(file, "min_side", expected, metadata.min_side)
    n_views = exported_view_count(metadata)
    if n_views > MAX_VIEWS:
        raise _exported_metadata_error(
            file, "views", f"at most {MAX_VIEWS:,} views of an image", n_views
        )
    shape: Sequence[int] = (3, *sides) if metadata.views is None else (n_views, 3, *sides)
    if metadata.preprocessing_in_graph:
        shape = (-1, -1, 3)
    if metadata.input_shape != tuple(shape):
        expected = f"{tuple(shape)}, as the preprocessing and the views require"
        raise _exported_metadata_error(file, "input_shape", expected, metadata.input_shape)


def exported_view_count(metadata: ExportMetadata) -> int:
    """Return the number of views of an image: the whole image and its tiles; 1 without views."""
    if metadata.views is None:
        return 1
    n_tiles = sum(math.prod(grid) for grid in metadata.views["grids"])
    return int(metadata.views["whole_image"]) + int(n_tiles)


def _exported_metadata_error(file: Path, key: str, expected: str, value: object) -> DataError:
    return DataError(
        f"{key} in the metadata of {file} must be {expected}; got {str(value)[:60]!r}. "
        f"{EXPORT_AGAIN}"
    )
