"""Check the machines of a Ray cluster: versions of packages, and access to a shared folder."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surelabel.cluster.ray_connection import first_line_of_ray_error
from surelabel.errors import ConfigError, DataError

NODE_SECONDS = 120.0  # for the responses of all nodes; each node starts a process


def check_nodes(folder: Path) -> None:
    """Check that each node has the package versions of this machine and access to a folder.

    Args:
        folder: Folder, in which a temporary file is written. A missing folder and its missing
            parents are created; after an error, they are deleted again.

    Raises:
        ConfigError: If a node has other versions of surelabel, Ray or Python, or does not respond.
        DataError: If a node has no access to the folder, or the folder cannot be written.
    """
    with _temporary_file_in(folder) as probe:
        check_node_reports(_reports_of_nodes(probe), versions_of_packages(), folder)


def versions_of_packages() -> dict[str, str]:
    """Return the versions of the packages that must be equal on all nodes."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"surelabel": version("surelabel"), "ray": version("ray"), "Python": python}


def check_node_reports(
    reports: Sequence[Mapping[str, Any]], versions: Mapping[str, str], folder: Path
) -> None:
    """Check the reports of nodes.

    Args:
        reports: For each node, ``host``, the boolean ``sees_folder``, and the version of each
            package, which is None if the package is not installed.
        versions: Versions of the packages on this machine.
        folder: Folder to which each node must have access.

    Raises:
        ConfigError: If a version differs, or a package is not installed.
        DataError: If a node has no access to the folder.
    """
    for report in reports:
        for package, expected in versions.items():
            if report[package] != expected:
                found = f"{package} {report[package]}" if report[package] else f"no {package}"
                raise ConfigError(
                    f"Each node of the cluster must have {package} {expected}; {report['host']} "
                    f"has {found}. Install the same version on all nodes."
                )
        if not report["sees_folder"]:
            raise DataError(
                f"All nodes of the cluster must have access to the folder {folder}; "
                f"{report['host']} has no access. Give a folder of a network file system."
            )


@contextmanager
def _temporary_file_in(folder: Path) -> Iterator[Path]:
    """Yield a new file, and delete it; after an error, delete the folders that were missing.

    Raises:
        DataError: If the folder cannot be created or written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    probe = folder / f".probe-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        yield probe
    except BaseException as error:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
        for path in missing:
            with suppress(OSError):  # not empty
                path.rmdir()
        if isinstance(error, OSError):
            raise DataError(
                f"{folder} cannot be written: {error.strerror}. Give another folder."
            ) from error
        raise
    probe.unlink()


def _reports_of_nodes(probe: Path) -> list[dict[str, Any]]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    path = str(probe)

    def report() -> dict[str, Any]:  # without imports of surelabel, which a node can lack
        import os
        import sys
        from importlib.metadata import PackageNotFoundError, version

        def version_of(package: str) -> str | None:
            try:
                return version(package)
            except PackageNotFoundError:
                return None

        return {
            "host": os.uname().nodename,
            "sees_folder": os.path.exists(path),
            "surelabel": version_of("surelabel"),
            "ray": version_of("ray"),
            "Python": ".".join(map(str, sys.version_info[:2])),
        }

    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    task = ray.remote(num_cpus=0)(report)
    references = [
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in nodes
    ]
    try:
        reports: list[dict[str, Any]] = ray.get(references, timeout=NODE_SECONDS)
    except ray.exceptions.RayError as error:
        raise ConfigError(
            f"All {len(nodes)} nodes of the cluster must respond within {NODE_SECONDS:g} seconds; "
            f"got: {first_line_of_ray_error(error)}. Check the nodes with `ray status`."
        ) from error
    return reports
