"""Return the available memory of the machine."""

from pathlib import Path

MEMORY_FILE = Path("/proc/meminfo")
CONTROL_GROUP = Path("/sys/fs/cgroup")
DEFAULT_BYTES = 2**30  # result if the system does not state its available memory


def available_memory_bytes() -> int:
    """Return the memory in bytes that can be allocated without swapping.

    On Linux, the value is the smaller of the available memory of the machine and the unused memory
    of the control group (container). On other systems, the value is 1 GiB.
    """
    available = DEFAULT_BYTES
    if MEMORY_FILE.is_file():
        lines = MEMORY_FILE.read_text().splitlines()
        kilobytes = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        available = 1024 * kilobytes[0] if kilobytes else available
    limit, usage = CONTROL_GROUP / "memory.max", CONTROL_GROUP / "memory.current"
    if limit.is_file() and usage.is_file() and limit.read_text().strip() != "max":
        available = min(available, int(limit.read_text()) - int(usage.read_text()))
    return max(available, 0)
