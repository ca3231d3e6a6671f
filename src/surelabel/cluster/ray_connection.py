"""Connect to a Ray cluster, or start one on this machine, without output on the terminal."""

import logging
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surelabel.cluster.ray_folders import temporary_ray_folder
from surelabel.errors import ConfigError, MissingPart

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONNECT_SECONDS = 10.0  # for a connection to the address of a cluster
HEALTH_SECONDS = 60.0  # for the response of the cluster; a busy cluster needs several seconds
OBJECT_BYTES = 128 * 2**20  # shared memory for objects of Ray, in addition to the recognizer
MAX_SOCKET_PATH = 107  # bytes of the path of a Unix socket
SOCKET_SUFFIX = len("/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store.1")


def check_ray_is_installed() -> None:
    """Check that the package ray can be imported, and switch its usage statistics off.

    If the environment variable ``RAY_USAGE_STATS_ENABLED`` is set, it is not changed.

    Raises:
        MissingPart: If the package is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray.data  # noqa: F401
    except ImportError as error:
        raise MissingPart(
            "--cluster needs the package ray, which is not installed. Run pip install "
            "'surelabel[cluster]'."
        ) from error


@contextmanager
def connect_to_ray(address: str, *, recognizer_bytes: int) -> Iterator[None]:
    """Connect to a Ray cluster until the end of the ``with`` block.

    If this process is already connected to a cluster, this connection is used and remains open, and
    ``address`` is ignored. Files of a local cluster are in a temporary folder, which is deleted at
    the end.

    Args:
        address: ``local`` for a new cluster on this machine, ``auto`` for the cluster of the
            environment, or HOST:PORT of the head node of a cluster.
        recognizer_bytes: Size of the recognizer, for the shared memory of a local cluster.

    Raises:
        MissingPart: If Ray is not installed.
        ConfigError: If ``address`` is invalid, if the cluster does not respond, or has another
            version of Ray or Python, or if the path of the temporary folder is too long for Ray.
    """
    check_ray_is_installed()
    import ray

    if ray.is_initialized():
        yield
        return
    if address not in ("local", "auto"):
        _check_address(address)
    with _ray_log_folder(address) as folder, _native_stderr_to_file(folder / "stderr.log"):
        _silence_ray_loggers()
        try:
            if address == "local":
                _start_local_cluster(folder, OBJECT_BYTES + 2 * recognizer_bytes)
            else:
                ray.init(address=address, logging_level=logging.CRITICAL, log_to_driver=False)
        except Exception as error:  # the type is Exception if a process of Ray does not start
            raise ConfigError(
                f"No connection to the Ray cluster of --cluster {address}: "
                f"{first_line_of_ray_error(error)}. Use the same versions of Ray and Python on all "
                "nodes."
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


def first_line_of_ray_error(error: BaseException) -> str:
    """Return the first three lines of an error of Ray as one line of at most 300 characters.

    Colours and the final period are removed. If the message is empty, the result is the name of the
    type of the error.

    Args:
        error: Error that Ray raised.
    """
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    return " ".join(lines[:3]).rstrip(".")[:300] or type(error).__name__


def _start_local_cluster(folder: Path, object_bytes: int) -> None:
    import ray

    if not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # or Ray writes one to the home folder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            address="local",
            num_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            include_dashboard=False,
            object_store_memory=object_bytes,
            _temp_dir=str(folder),
            logging_level=logging.CRITICAL,
            log_to_driver=False,
        )


@contextmanager
def _ray_log_folder(address: str) -> Iterator[Path]:
    """Yield a temporary folder for the files of Ray.

    Raises:
        ConfigError: If the path is too long for the sockets of a local cluster.
    """
    parent = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    with temporary_ray_folder(parent) as folder:
        n_bytes = len(os.fsencode(folder)) + SOCKET_SUFFIX
        if n_bytes > MAX_SOCKET_PATH and address == "local":
            raise ConfigError(
                "The path of the temporary folder of Ray must have at most "
                f"{MAX_SOCKET_PATH - SOCKET_SUFFIX} bytes; got {folder}. Set RAY_TMPDIR to a "
                "folder with a shorter path, such as /tmp."
            )
        yield folder


@contextmanager
def _native_stderr_to_file(path: Path) -> Iterator[None]:
    """Write what C++ code prints on standard error to a file; ``sys.stderr`` is not changed."""
    try:
        is_terminal_stream = sys.stderr.fileno() == 2
        saved = os.dup(2)
    except (OSError, ValueError, AttributeError):
        yield
        return
    previous = sys.stderr
    try:
        with path.open("wb") as file:
            previous.flush()
            os.dup2(file.fileno(), 2)
        if is_terminal_stream:
            sys.stderr = os.fdopen(os.dup(saved), "w", buffering=1, errors="backslashreplace")
        yield
    finally:
        if sys.stderr is not previous:
            sys.stderr.close()
            sys.stderr = previous
        os.dup2(saved, 2)
        os.close(saved)


def _silence_ray_loggers() -> None:
    """Discard messages of Ray, also those of nodes, which Ray prints on standard output."""
    import ray._private.worker

    # `log_to_driver=False` does not apply to errors of nodes: a thread of Ray prints all of them
    # on standard output, and no public setting prevents this.
    ray._private.worker._worker_logs_enabled = False
    for name in ("ray", "ray.data", "ray._private", "ray._private.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _check_address(address: str) -> None:
    """Check that a Ray cluster answers at an address within 70 seconds.

    Raises:
        ConfigError: If the address is not HOST:PORT, or if no cluster answers.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in address:
        raise ConfigError(
            f"--cluster must be local, auto or HOST:PORT of a Ray cluster; got {address}. The "
            "default port of a head node is 6379."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        check = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
        subprocess.run(
            check, check=True, timeout=HEALTH_SECONDS, capture_output=True, stdin=subprocess.DEVNULL
        )
    except (OSError, OverflowError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None)
        answer = reason or "no response from a Ray cluster of the installed version"
        raise ConfigError(
            f"--cluster {address} must be the address of a running Ray cluster; got: {answer}. "
            "Start a cluster with `ray start --head`, or give --cluster local."
        ) from error
