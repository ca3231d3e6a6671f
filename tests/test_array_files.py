import io
import os
import struct
import zipfile
import zlib

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from surelabel.array_files import (
    array_keys,
    map_array,
    open_safetensors,
    read_arrays,
    read_safetensors,
)
from surelabel.errors import DataError

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def npy(header, values=b""):
    """The bytes of a .npy file with any text as its header."""
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + values


def header(shape=(2, 3), descr="<f4", order=False):
    return repr({"descr": descr, "fortran_order": order, "shape": shape})


HOSTILE_HEADERS = [
    (header((10**12,)), "an array whose header declares 4000000000000 bytes, followed by 24 bytes"),
    (header((2**40, 2**40)), "an array whose header declares"),
    (header((-1, 3)), r"the shape \(-1, 3\)"),
    (header((2,), "<U100000000"), "an array whose header declares 800000000 bytes"),
    (header((3,), "|O"), "an array of objects, which needs pickle"),
    (header((2, 3), "not a type"), "descr is not a valid dtype"),
    ("{'descr': '<f4', 'shape': (2, 3", "Cannot parse header"),
    ("{'descr': '<f4' 'fortran_order' False \x01 'shape': (2, 3), }", "Cannot parse header"),
    ("(" * 3000, "Cannot parse header"),
    ("{" + header()[1:-1] + ", 1: 2}", "Cannot parse header"),
]


@pytest.mark.parametrize(("text", "reason"), HOSTILE_HEADERS)
def test_a_hostile_header_is_refused_before_memory_is_used(tmp_path, text, reason):
    (tmp_path / "a.npy").write_bytes(npy(text, VALUES.tobytes()))
    with pytest.raises(DataError, match=rf"a\.npy is damaged: {reason}.* Copy it\.$"):
        map_array(tmp_path / "a.npy", remedy="Copy it.")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", npy(text, VALUES.tobytes()))
    with pytest.raises(
        DataError, match=rf"a\.npz must be a table; got: in x: {reason}.* Copy it\.$"
    ):
        read_arrays(tmp_path / "a.npz", ["x"], kind="a table", remedy="Copy it.")


def test_every_flipped_byte_of_a_header_is_read_or_refused(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    content = (tmp_path / "a.npy").read_bytes()
    n_refused = 0
    for position in range(0, 70, 2):  # the rest of the header is spaces
        for bit in (1, 128):
            changed = bytearray(content)
            changed[position] ^= bit
            (tmp_path / "a.npy").write_bytes(changed)
            try:
                map_array(tmp_path / "a.npy")
            except DataError as error:
                n_refused += "\n" not in str(error)
    assert n_refused > 35


@pytest.mark.parametrize("values", [VALUES, np.asfortranarray(VALUES), VALUES[:0], VALUES[0, 0]])
def test_arrays_are_read_as_numpy_reads_them(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    mapped = map_array(tmp_path / "a.npy")
    np.testing.assert_array_equal(mapped, values)
    assert (mapped.dtype, mapped.shape) == (values.dtype, values.shape)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", x=values, y=np.array(["ü"]))
        arrays = read_arrays(tmp_path / "a.npz", ["x"], optional_keys=["y", "z"])
        assert arrays.keys() == {"x", "y"}
        np.testing.assert_array_equal(arrays["x"], values)
        assert arrays["y"].tolist() == ["ü"]


def test_a_missing_key_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", x=VALUES)
    with pytest.raises(
        DataError, match=r"a\.npz is damaged: missing keys: y; keys of the file: 'x'\."
    ):
        read_arrays(tmp_path / "a.npz", ["x", "y"])


def test_arrays_larger_than_a_limit_are_refused_before_they_are_decompressed(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10_000), y=VALUES)
    assert array_keys(tmp_path / "a.npz") == ["x", "y"]
    n_bytes = 80_000 + 128
    assert len(read_arrays(tmp_path / "a.npz", ["x"], max_bytes=n_bytes)["x"]) == 10_000
    for limits in ({"max_bytes": n_bytes - 1}, {"max_bytes": n_bytes, "optional_keys": ["y"]}):
        with pytest.raises(DataError, match=r"a\.npz is damaged: arrays of \d+ bytes, more than"):
            read_arrays(tmp_path / "a.npz", ["x"], **limits)
    (tmp_path / "b.npz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"b\.npz is damaged: a file that is not in the \.npz form"):
        array_keys(tmp_path / "b.npz")


def forged(tmp_path, field, value, compression=zipfile.ZIP_DEFLATED):
    """An archive of one array whose central directory has another value at a position."""
    stream = io.BytesIO()
    np.save(stream, np.zeros(1000, np.float32))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as archive:
        archive.writestr("x.npy", stream.getvalue())
    content = bytearray((tmp_path / "a.npz").read_bytes())
    start = content.rfind(b"PK\x01\x02") + field
    content[start : start + len(value)] = value
    (tmp_path / "a.npz").write_bytes(content)
    return tmp_path / "a.npz"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (24, struct.pack("<I", 2**32 - 2), "x declares 4294967294 bytes, which a file of"),
        (24, struct.pack("<I", 5000), "declares 4000 bytes, followed by 4872 bytes"),
        (10, struct.pack("<H", 99), "x uses the unsupported compression method 99"),
        (8, struct.pack("<H", 1), "encrypted"),
        (16, struct.pack("<I", 12345), "Bad CRC-32"),
        (6, struct.pack("<H", 99), "zip file version 9.9"),
    ],
)
def test_a_zip_file_with_forged_fields_is_refused(tmp_path, field, value, reason):
    with pytest.raises(DataError, match=rf"a\.npz is damaged: .*{reason}"):
        read_arrays(forged(tmp_path, field, value), ["x"])


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_numpy_does_not_write_is_refused(tmp_path, compression):
    with pytest.raises(DataError, match="x uses the unsupported compression method"):
        read_arrays(forged(tmp_path, 0, b"", compression), ["x"])


def test_a_damaged_compressed_array_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.random.default_rng(0).standard_normal(500))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[1000:1010] = b"\x55" * 10
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz is damaged: (Error -3|Bad CRC)"):
        read_arrays(tmp_path / "a.npz", ["x"])
    assert zlib  # the first reason is an error of zlib


@pytest.mark.parametrize(
    "read",
    [
        map_array,
        lambda path: read_arrays(path, ["x"]),
        lambda path: read_safetensors(path, "numpy"),
        lambda path: read_safetensors(path, "pt"),
    ],
)
def test_no_reader_of_arrays_waits_for_a_named_pipe(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe cannot be read: .*got a named pipe"):
        read(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"none cannot be read: No such file"):
        read(tmp_path / "none")


def safetensors(head):
    return struct.pack("<Q", len(head)) + head + VALUES.tobytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 2**63),
        safetensors(b"[" * 10_000),
        safetensors(b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,24]}}'),
        safetensors(b'{"x":{"dtype":"F99","shape":[6],"data_offsets":[0,24]}}'),
        safetensors(b'{"x":{"dtype":"F32","shape":[6],"data_offsets":[0,1000000000000]}}'),
        safetensors(b'{"x":{"dtype":"F32","shape":[6' + b",1" * 100 + b'],"data_offsets":[0,24]}}'),
    ],
)
def test_damaged_safetensors_are_refused_on_one_line(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    for framework in ("numpy", "pt")[: 1 if b",1,1" in content else 2]:
        with pytest.raises(DataError, match=r"a\.safetensors is damaged: .*\. Copy it\.$"):
            read_safetensors(tmp_path / "a.safetensors", framework, remedy="Copy it.")


def test_safetensors_are_read_as_arrays_or_tensors(tmp_path):
    save_file({"x": VALUES}, tmp_path / "a.safetensors", {"key": "value"})
    assert torch.equal(
        read_safetensors(tmp_path / "a.safetensors", "pt")["x"], torch.tensor(VALUES)
    )
    with open_safetensors(tmp_path / "a.safetensors", "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("x"), VALUES)
        assert file.metadata() == {"key": "value"}


def test_a_missing_array_or_key_of_safetensors_is_damage(tmp_path):
    save_file({"x": VALUES}, tmp_path / "a.safetensors", {"key": "value"})
    with (
        pytest.raises(DataError, match=r"a\.safetensors is damaged: .*y"),
        open_safetensors(tmp_path / "a.safetensors", "numpy") as file,
    ):
        file.get_tensor("y")
    with (
        pytest.raises(DataError, match=r"a\.safetensors is damaged: 'run'"),
        open_safetensors(tmp_path / "a.safetensors", "numpy") as file,
    ):
        file.metadata()["run"]
