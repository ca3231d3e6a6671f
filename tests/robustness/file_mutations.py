"""Mutations of files: random damage, and changes that a hostile author makes on purpose."""

import io
import json
import struct
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

DEEP = 100_000  # levels of nesting, more than any parser supports
HUGE_INTEGERS = (0, -1, 2**31 - 1, 2**32 - 1, 2**62, -(2**63))
VALUES = (  # of JSON, in place of any value
    None,
    True,
    -1,
    0,
    2**70,
    10**400,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "\x1b[31m",
    "a\nb",
    "../../etc/passwd",
    [],
    {},
    [[]],
    {"x": 1},
    ["x", None],
)


def mutate_bytes(content, random):
    """Return a changed copy of the content of a file."""
    return bytes(random.choice(BYTE_MUTATIONS)(bytearray(content), random))


def mutate_file(path, random):
    """Change one file in place: its bytes, or the values inside its format."""
    content = path.read_bytes()
    mutation = STRUCTURED.get(path.suffix)
    if mutation and random.random() < 0.5:
        path.write_bytes(mutation(content, random))
    else:
        path.write_bytes(mutate_bytes(content, random))


def flip_bits(content, random):
    for _ in range(random.randint(1, 8)):
        if content:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return content


def truncate(content, random):
    return content[: random.randrange(len(content) + 1)]


def splice(content, random):
    """Copy, repeat or delete a part."""
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    target = random.randrange(len(content) + 1)
    part = content[start:end] if random.random() < 0.7 else b""
    return content[:target] + part + content[target + random.randint(0, 64) :]


def insert_random_bytes(content, random):
    target = random.randrange(len(content) + 1)
    return content[:target] + random.randbytes(random.randint(1, 64)) + content[target:]


def forge_number(content, random):
    """Overwrite a binary number, or a number in a text, with an extreme number."""
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if digits and random.random() < 0.5:
        start = random.choice(digits)
        number = random.choice([b"9" * 5000, b"9" * 19, b"1e999", b"-1", b"NaN", b"0", b"1.5"])
        return content[:start] + number + content[start + 1 :]
    size, code = random.choice([(2, "<H"), (4, "<I"), (8, "<Q")])
    start = random.randrange(max(len(content) - size, 0) + 1)
    number = random.choice(HUGE_INTEGERS) % 2 ** (8 * size)
    return content[:start] + struct.pack(code, number) + content[start + size :]


def nest_deeply(content, random):
    target = random.choice([0, random.randrange(len(content) + 1)])
    opening = random.choice([b"[", b'{"a":', b"a." * 8, b"<a>", b"("])
    return content[:target] + opening * (DEEP // len(opening)) + content[target:]


def replace_all(content, random):
    text = content.decode("utf-8", "replace")
    return random.choice(
        [b"", b"\0" * 1000, text.encode("utf-16"), b"\xff" * 1000, b"x" * 1_000_000, b"\n" * 1000]
    )


def repeat_line(content, random):
    lines = content.split(b"\n")
    lines.insert(random.randrange(len(lines)), random.choice(lines) * random.choice([1, 1, 1000]))
    return b"\n".join(lines)[:5_000_000]


BYTE_MUTATIONS = (
    flip_bits,
    flip_bits,
    truncate,
    splice,
    splice,
    insert_random_bytes,
    forge_number,
    forge_number,
    nest_deeply,
    replace_all,
    repeat_line,
)


def mutate_json(content, random):
    try:
        value = json.loads(content)
    except ValueError:
        return mutate_bytes(content, random)
    return json.dumps(mutate_value(value, random), default=str).encode()


def mutate_json_lines(content, random):
    lines = content.split(b"\n")
    row = random.randrange(len(lines))
    lines[row] = mutate_json(lines[row], random)
    return b"\n".join(lines)


def mutate_value(value, random):
    """Return a JSON value in which one inner value is replaced, deleted or repeated."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        changed = dict(value)
        if random.random() < 0.1:
            del changed[key]
        else:
            changed[key] = mutate_value(value[key], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.9:
        changed, row = list(value), random.randrange(len(value))
        action = random.random()
        if action < 0.1:
            del changed[row]
        elif action < 0.2:
            changed.append(value[row])
        else:
            changed[row] = mutate_value(value[row], random)
        return changed
    return random.choice(VALUES)


def mutate_safetensors(content, random):
    """Change a value of the header, whose length is written in the first 8 bytes."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    metadata = header.get("__metadata__")
    if metadata and random.random() < 0.5:
        key = random.choice(list(metadata))
        metadata[key] = mutate_json(metadata[key].encode(), random).decode("utf-8", "replace")
    else:
        header = mutate_value(header, random)
    text = json.dumps(header, default=str).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def mutate_npy(content, random):
    """Write another header before the values."""
    header = random.choice(
        [
            {"descr": "<f4", "fortran_order": False, "shape": (10**12,)},
            {"descr": "|O", "fortran_order": False, "shape": (3,)},
            {"descr": "<f4", "fortran_order": True, "shape": (-1, 3)},
            {"descr": "<U1000000000", "fortran_order": False, "shape": (2,)},
            {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**40)},
            {"descr": "<f4", "fortran_order": False, "shape": (0, 2**62)},
            {"descr": [("a", "<f4")], "fortran_order": False, "shape": (1,) * 40},
            {"descr": "<f4", "fortran_order": "x", "shape": (True,)},
            {"descr": "not a type", "fortran_order": False, "shape": ()},
        ]
    )
    text = random.choice([repr(header), "(" * 5000, "{'descr':", "\0", repr({**header, 1: 2})])
    encoded = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(encoded)) + encoded + content[128:]


def mutate_npz(content, random):
    """Write an archive in which one array is changed, or in which its sizes are forged."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    members[name] = random.choice([mutate_npy, mutate_bytes])(members[name], random)
    method = random.choice([0, 8, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    forged = bytearray(stream.getvalue())
    if random.random() < 0.5:
        central = forged.rfind(b"PK\x01\x02")
        field = random.choice([6, 8, 10, 20, 24, 28, 42])  # flags, method, sizes, offset …
        forged[central + field : central + field + 4] = struct.pack(
            "<I", random.choice(HUGE_INTEGERS) % 2**32
        )
    return bytes(forged)


def mutate_parquet(content, random):
    """Change the JSON metadata of the package, or a column."""
    table = pq.read_table(io.BytesIO(content))
    metadata = table.schema.metadata or {}
    if metadata and random.random() < 0.7:
        text = mutate_json(metadata[b"surelabel"], random) if b"surelabel" in metadata else b"x"
        table = table.replace_schema_metadata({b"surelabel": text})
    else:
        column = random.randrange(table.num_columns)
        value = random.choice([None, "x", 0.5, float("nan"), 2**62, [1.0]])
        name = table.column_names[column]
        table = table.set_column(column, name, pa.array([value] * table.num_rows))
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


STRUCTURED = {
    ".json": mutate_json,
    ".jsonl": mutate_json_lines,
    ".safetensors": mutate_safetensors,
    ".npy": mutate_npy,
    ".npz": mutate_npz,
    ".parquet": mutate_parquet,
}
