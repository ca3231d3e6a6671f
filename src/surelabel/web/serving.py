"""Listen on a port, and serve an index until the user stops the server."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from surelabel.data.correction_log import CorrectionLog
from surelabel.errors import DataError, InputError
from surelabel.retrieval import Index
from surelabel.retrieval.query_encoding import QueryEncoder
from surelabel.web.access_control import AccessRules
from surelabel.web.application import create_application
from surelabel.web.connection_limits import limited_connection_class
from surelabel.web.index_session import IndexSession
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.report_file import ReportFile
from surelabel.web.request_limits import RequestLimits

CORRECTIONS_SUFFIX = ".corrections.csv"  # of the default file, after the name of the index
BACKLOG = 1024  # connections that wait until the server accepts them
MAX_PORT = 65_535
SHUTDOWN_SECONDS = 5  # for requests in work when the user stops the server


class IndexServer:
    """HTTP server of an index.

    Args:
        folder: Folder of the index.
        load_encoder: Function that loads the recognizer of an index, which encodes sentences.
        model: Saved recognizer or name of an encoder, or None for the recorded recognizer.
        device: PyTorch device of the encoder.
        root: Root folder of the images, or None for the stored root.
        host: Name or address at which the server listens.
        port: Port, or 0 for any free port.
        token: Token of the requests, or None if requests need no token.
        corrections: CSV file of corrections. If None, ``INDEX.corrections.csv`` beside the index.
        report: HTML file or folder of a report that the page links, or None.
        limits: Limits of the requests.

    Raises:
        InputError: If the host is not a loopback address and there is no token, or if the host,
            the port or the token is not allowed. Also if ``corrections`` is not a CSV file outside
            of the index, or ``report`` is not an HTML file.
        DataError: If the index is missing, damaged or empty, or if the port is in use. Also if the
            corrections or the report cannot be read.
        MissingPart: If the recognizer ``model`` cannot be loaded, or is not that of the index.
    """

    def __init__(
        self,
        folder: str,
        *,
        load_encoder: Callable[[Index], QueryEncoder],
        model: str | None = None,
        device: str = "cpu",
        root: str | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        token: str | None = None,
        corrections: str | None = None,
        report: str | None = None,
        limits: RequestLimits | None = None,
    ) -> None:
        limits = limits or RequestLimits()
        rules = AccessRules(host, token)
        report_file = None if report is None else ReportFile(report)
        self.session = IndexSession(folder, root=root, load_encoder=load_encoder)
        self.log = open_correction_log(corrections, folder)
        self._host = host
        self._recognizer = recognizer = RecognizerService(
            model, device=device, root=root, seconds=limits.image_seconds
        )
        self._socket = open_listening_socket(host, port)
        try:
            if model is not None:
                recognizer.check(self.session.current().index)
            self.application = create_application(
                self.session, self.log, recognizer, rules, limits, report_file
            )
            self._server = _create_http_server(self.application, limits)
        except BaseException:
            recognizer.close()
            self._socket.close()
            raise

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._socket.getsockname()[1]}"

    def model_of(self, index: Index) -> str | None:
        """Return the given recognizer if it is that of an index, or None for the recorded one."""
        return self._recognizer.model_of(index)

    def run(self) -> None:
        """Answer requests until the process receives SIGINT or SIGTERM, or `stop` is called."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """End `run`, which another thread executes."""
        self._server.should_exit = True


def _create_http_server(application: ASGIApp, limits: RequestLimits) -> uvicorn.Server:
    """Return a server that answers HTTP requests with an application, and logs only errors."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http=limited_connection_class(limits),
            ws="none",
            log_config=None,
            log_level="error",  # a warning for each refused connection would fill a log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )


def open_correction_log(path: str | None, index_folder: str) -> CorrectionLog:
    """Return the file of the corrections of an index, which need not exist.

    Args:
        path: CSV file, or None for ``INDEX.corrections.csv`` beside the index.
        index_folder: Folder of the index.

    Raises:
        InputError: If the file is not a CSV file, or is inside the folder of the index.
        DataError: If the folder of the file is missing, or the file is damaged.
    """
    index_path = Path(os.path.abspath(index_folder))
    file = index_path.with_name(f"{index_path.name}{CORRECTIONS_SUFFIX}")
    if path is not None:
        file = Path(os.path.abspath(path))
    if file.suffix.lower() != ".csv" or file.is_relative_to(index_path):
        raise InputError(
            f"--corrections must be a .csv file outside of the folder of the index; got {path}. "
            "Give another path."
        )
    if not file.parent.is_dir():
        raise DataError(
            f"The folder of --corrections must exist; got {file.parent}. Create the folder, or "
            "give another path."
        )
    log = CorrectionLog(file)
    log.history()
    return log


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port.

    Args:
        host: Name or address.
        port: Port in 0 to 65535; 0 is any free port.

    Raises:
        DataError: If the port is in use.
        InputError: If the host is not an address of this machine, or the port is not allowed.
    """
    if not 0 <= port <= MAX_PORT:  # the system would use another port
        raise InputError(f"--port must be in 0 to {MAX_PORT}; got {port}. Choose another port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"--host must be a name or address of this machine; got {host}. Choose another host."
        ) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise DataError(
                f"Port {port} of {host} must be free; another program uses it. Give another port "
                "with --port."
            ) from error
        raise InputError(
            f"The server cannot listen on port {port} of {host}: {error.strerror}. Choose another "
            "--host or --port."
        ) from error
    return listening
