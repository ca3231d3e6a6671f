"""Write a graph to a ``.pt2`` file of PyTorch, and run the file in a process without surelabel."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch

from surelabel.errors import DataError
from surelabel.export.interface import GraphProgram, GraphRuntime, InputArray, OutputArray

PACKAGES: tuple[str, ...] = ()
SIZE_LIMIT: int | None = None
# The process reads arrays from standard input: a line of JSON with dtypes and shapes, then values.
PROGRAM = """
import json, sys
sys.modules["surelabel"] = None  # an import of surelabel raises an error
import numpy, torch
torch.set_num_threads(int(sys.argv[2]))
module = torch.export.load(sys.argv[1]).module()
inputs, outputs = sys.stdin.buffer, sys.stdout.buffer
outputs.write(b"ready\\n")
outputs.flush()
while line := inputs.readline():
    arrays = []
    for dtype, shape in json.loads(line):
        n_bytes = numpy.dtype(dtype).itemsize * numpy.prod(shape, dtype=int)
        values = numpy.frombuffer(bytearray(inputs.read(n_bytes)), dtype)
        arrays.append(torch.from_numpy(values.reshape(shape)))
    with torch.no_grad():
        output = module(*arrays).float().contiguous().numpy()
    outputs.write(json.dumps(output.shape).encode() + b"\\n" + output.tobytes())
    outputs.flush()
"""


def paths(file: Path) -> tuple[Path, ...]:
    """Return the path of the only file."""
    return (file,)


def write(graph: GraphProgram, file: Path, metadata: Mapping[str, str]) -> None:
    """Write a program of PyTorch, with the metadata in ``extra_files``.

    PyTorch cannot write tensors that are a part of a larger storage. They are copied before.
    """
    program = graph.program
    for tensors in (program.state_dict, program.constants):
        for key, tensor in tensors.items():
            if isinstance(tensor, torch.Tensor) and _is_part_of_storage(tensor):
                tensors[key] = tensor.detach().clone()
    torch.export.save(program, str(file), extra_files=dict(metadata))


def read_metadata(file: Path, key: str) -> str | None:
    """Return the text under a key of ``extra_files``, or None; weights are not read."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.endswith(f"/extra/{key}"):
                return archive.read(name).decode("utf-8")
    return None


@contextmanager
def open_runtimes(file: Path) -> Iterator[Mapping[str, GraphRuntime]]:
    """Open the file in a new process, in which surelabel cannot be imported.

    Raises:
        DataError: If PyTorch cannot load the file in this process.
    """
    command = [sys.executable, "-c", PROGRAM, str(file), str(torch.get_num_threads())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        sent, received, errors = process.stdin, process.stdout, process.stderr
        assert sent is not None  # a pipe, and so are the others
        assert received is not None
        assert errors is not None
        try:
            if received.readline() != b"ready\n":
                raise _process_error(errors)

            def run(arrays: Sequence[InputArray]) -> OutputArray:
                return _run_in_process(arrays, sent, received, errors)

            yield {"torch": run}
        finally:
            process.kill()


def _is_part_of_storage(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() != tensor.untyped_storage().nbytes()


def _run_in_process(
    arrays: Sequence[InputArray], sent: IO[bytes], received: IO[bytes], errors: IO[bytes]
) -> OutputArray:
    header = json.dumps([[array.dtype.str, array.shape] for array in arrays])
    try:
        sent.write(header.encode() + b"\n")
        for array in arrays:
            sent.write(np.ascontiguousarray(array).tobytes())
        sent.flush()
    except BrokenPipeError as error:
        raise _process_error(errors) from error
    line = received.readline()
    if not line:
        raise _process_error(errors)
    shape = json.loads(line)
    n_bytes = 4 * int(np.prod(shape, dtype=int))
    return np.frombuffer(received.read(n_bytes), np.float32).reshape(shape)


def _process_error(errors: IO[bytes]) -> DataError:
    lines = errors.read().decode("utf-8", errors="replace").strip().splitlines() or ["no message"]
    return DataError(
        f"The exported file must run in PyTorch without surelabel; running it failed "
        f"({lines[-1][:300]}). Export to .onnx or .xml."
    )
