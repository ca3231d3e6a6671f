"""Limit the threads of BLAS while many small linear problems are solved one after another.

BLAS divides even small problems among its threads, which then wait for each other.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def single_blas_thread() -> Generator[None]:
    """Use one thread of BLAS in a ``with`` block or a decorated function.

    The limit holds for all threads of the process. Afterwards, the number of threads is the same as
    before.
    """
    with _threadpool_controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _threadpool_controller() -> ThreadpoolController:
    """Return a controller of the loaded BLAS libraries; finding them takes milliseconds."""
    return ThreadpoolController()
