"""Write a graph to a file atomically, after a check of the file by the runtimes of its format."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from surelabel.errors import ConfigError, DataError, InputError, MissingPart
from surelabel.export.interface import ExportFormat, GraphProgram, GraphRuntime
from surelabel.export.verification import ExportCheck
from surelabel.files import atomic_file
from surelabel.package_imports import import_without_telemetry

CheckFile = Callable[[Mapping[str, GraphRuntime]], ExportCheck]


def export_format_of_file(
    file: Path, formats: Mapping[str, ExportFormat]
) -> tuple[str, ExportFormat]:
    """Return the suffix of a file, and the format of the suffix.

    Raises:
        InputError: If the suffix is unknown.
    """
    suffix = file.suffix.lower()
    if suffix not in formats:
        raise InputError(
            f"The suffix of an exported file must be one of {', '.join(formats)}; got {file}. "
            "The suffix sets the format: ONNX, OpenVINO or PyTorch."
        )
    return suffix, formats[suffix]


def check_export_packages(suffix: str, export_format: ExportFormat) -> None:
    """Check that all packages of an export format are installed.

    Raises:
        MissingPart: If a package is not installed.
    """
    for package in export_format.PACKAGES:
        try:
            import_without_telemetry(package)
        except ImportError as error:
            raise MissingPart(
                f"An export to {suffix} needs the package {package}, which is not installed. "
                "Run pip install 'surelabel[export]'."
            ) from error


def check_export_paths(file: Path, export_format: ExportFormat, *, overwrite: bool) -> None:
    """Check that the files of an export do not exist, or that they can be replaced.

    Raises:
        DataError: If a path is a folder, or if a file exists and ``overwrite`` is False.
    """
    for path in export_format.paths(file):
        if path.is_dir():
            raise DataError(f"{path} must be a file; got a folder. Give another path.")
        if os.path.lexists(path) and not overwrite:
            raise DataError(
                f"{path} exists. Give another path, or add --overwrite (in Python "
                "overwrite=True) to replace the file."
            )


def check_export_size(n_bytes: int, suffix: str, export_format: ExportFormat) -> None:
    """Check that the weights of a graph fit into one file.

    Raises:
        ConfigError: If the weights exceed the limit of the format.
    """
    limit = export_format.SIZE_LIMIT
    if limit is not None and n_bytes > limit:
        raise ConfigError(
            f"The weights of an export to {suffix} must be below {limit / 1e9:.1f} GB; got "
            f"{n_bytes / 1e9:.1f} GB. Export to .pt2."
        )


def write_checked_export(
    graph: GraphProgram,
    file: Path,
    export_format: ExportFormat,
    metadata: Mapping[str, str],
    check: CheckFile,
) -> ExportCheck:
    """Write a graph to a temporary file, check the file, and then move it to its path.

    Args:
        graph: Program of the graph.
        file: Path of the file.
        export_format: Format of the file.
        metadata: Texts of the metadata by their key.
        check: Function that checks the file with its runtimes.

    Returns:
        The result of ``check``.

    Raises:
        DataError: If the file cannot be written, or the check fails. Existing files remain
            unchanged.
    """
    first, *others = export_format.paths(file)
    with ExitStack() as stack:
        temporary = stack.enter_context(atomic_file(first))
        # the last context is closed first, so that the first file appears last
        other_temporaries = [stack.enter_context(atomic_file(path)) for path in others]
        export_format.write(graph, temporary, metadata)
        with export_format.open_runtimes(temporary) as runtimes:
            result = check(runtimes)
        for path in other_temporaries:
            (temporary.parent / path.name).replace(path)
    return result
