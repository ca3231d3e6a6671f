"""Count the threads of PyTorch in a process, and the threads that call an engine at once."""

from concurrent.futures import ThreadPoolExecutor

import torch

MAX_CONCURRENT_CALLS = 4  # limits the memory


def process_thread_count() -> int:
    """Return the number of threads that PyTorch uses in a new thread of this process.

    A thread that encodes one of several batches has a smaller number, which does not apply to other
    threads.
    """
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(torch.get_num_threads).result()


def concurrent_call_count() -> int:
    """Return the number of threads that call an engine on a CPU at once, from 1 to 4."""
    return min(process_thread_count(), MAX_CONCURRENT_CALLS)
