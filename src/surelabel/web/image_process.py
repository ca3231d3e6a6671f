"""Define the main function of a worker process that decodes images for a server.

The process answers with JSON and bytes instead of pickled objects, so that a defect of a decoder
cannot run code in the server.
"""

import json
import os
import signal
import time
import warnings
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from threading import Thread

from surelabel.errors import SurelabelError

PARENT_CHECK_INTERVAL = 0.5  # seconds
READY = b"ready"


def run_image_process(connection: Connection, parent: int, module: str) -> None:
    """Run the tasks that the server sends, until the connection is closed.

    The process also ends if the server is killed.

    Args:
        connection: Connection from which tasks are received: their name in the table ``TASKS`` of
            the module, and their arguments. Each answer is a JSON object, followed by bytes.
        parent: Identifier of the process of the server.
        module: Name of the module of the tasks.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its processes
    Thread(target=_exit_after_server, args=(parent,), daemon=True).start()
    warnings.simplefilter("ignore")
    tasks = import_module(module).TASKS
    with suppress(EOFError, OSError):
        connection.send_bytes(READY)
        while True:
            name, arguments = connection.recv()
            content = b""
            try:
                value, content = tasks[name](**arguments)
                answer = {"value": value}
            except SurelabelError as error:
                answer = {"error": str(error), "kind": type(error).__name__}
            connection.send_bytes(json.dumps(answer).encode())
            connection.send_bytes(content)


def _exit_after_server(parent: int) -> None:
    """Wait for the end of the server, and end this process."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_INTERVAL)
    os._exit(1)
