"""Import packages without garbage collection, or without sending usage data.

The imports of torch and open_clip create about 400,000 objects that the garbage collector tracks,
and that remain. The collector would traverse them repeatedly, which takes a fifth of the time of
the imports.

The imports of openvino and nncf send usage data to a server with the package openvino_telemetry,
and write an identifier to the home folder. Without this package, they send and write nothing.

A core of OpenVINO gives the main thread another stack for signal handlers when it compiles a model,
and frees the stack when it is deleted. If several cores exist, their order can leave a stack that
was freed, and Ctrl-C then ends the process with a segmentation fault. The process shares one core.
"""

import gc
import sys
import threading
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, cast

TELEMETRY_PACKAGE = "openvino_telemetry"
_lock = threading.Lock()


def import_without_garbage_collection(name: str) -> ModuleType:
    """Return a module, which is imported while the garbage collector is disabled.

    Args:
        name: Full name of the module.

    Raises:
        ImportError: If the module cannot be imported.

    Example:
        >>> import_without_garbage_collection("surelabel.errors").__name__
        'surelabel.errors'
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if was_enabled:
            gc.enable()


def import_without_telemetry(name: str) -> ModuleType:
    """Return a module, which is imported while the package openvino_telemetry is hidden.

    A module that was imported before is returned unchanged.

    Args:
        name: Full name of the module.

    Raises:
        ImportError: If the module cannot be imported.

    Example:
        >>> import_without_telemetry("surelabel.errors").__name__
        'surelabel.errors'
    """
    modules = cast(dict[str, ModuleType | None], sys.modules)
    with _lock:
        hidden = {key: modules[key] for key in [TELEMETRY_PACKAGE] if key in modules}
        modules[TELEMETRY_PACKAGE] = None  # an import of the package raises ImportError
        try:
            return import_module(name)
        finally:
            del modules[TELEMETRY_PACKAGE]
            modules.update(hidden)


@cache
def openvino_core() -> Any:
    """Return the core of OpenVINO, an ``openvino.Core``, which is never deleted.

    Raises:
        ImportError: If openvino is not installed.
    """
    return import_without_telemetry("openvino").Core()
