"""Limit the memory that a process that decodes images can allocate."""

import sys

from surelabel.data.image_memory import MEGABYTE, max_image_memory

FACTOR = 3  # an image is decoded within its limit; views and preprocessing copy parts of it
OTHER_BYTES = 2**30  # modules that are loaded later, stacks of threads, pixels in queues


def limit_decoding_memory() -> None:
    """Limit the private memory of this process to its current size plus the memory for decoding.

    The memory for decoding is three times ``max_image_memory()`` plus 1 GiB. If a decoder needs
    more memory than the header of the file indicates, the allocation fails, and the image is
    unreadable. Without the limit, the system could kill another process. The limit is set only on
    Linux, and only if the hard limit of the process is not lower.
    """
    if sys.platform != "linux":
        return
    import resource

    n_bytes = _data_bytes() + FACTOR * max_image_memory() * MEGABYTE + OTHER_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or n_bytes < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, hard))


def _data_bytes() -> int:
    """Return the private memory of this process, in bytes."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        sizes = [line.split()[1] for line in file if line.startswith("VmData:")]
    return 1024 * int(sizes[0]) if sizes else 0
