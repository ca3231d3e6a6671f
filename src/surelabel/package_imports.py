"""Import packages that take seconds, such as torch and open_clip, without garbage collection.

The imports of torch and open_clip create about 400,000 objects that the garbage collector tracks,
and that remain. The collector would traverse them repeatedly, which takes a fifth of the time of
the imports.
"""

import gc
from importlib import import_module
from types import ModuleType


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
