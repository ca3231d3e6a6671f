import pytest

from surelabel.web.byte_ranges import ByteRange, parse_byte_range

CONTENT = bytes(range(10))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-3", CONTENT[0:4]),
        ("bytes=4-4", CONTENT[4:5]),
        ("bytes=4-", CONTENT[4:]),
        ("bytes=0-9", CONTENT),
        ("bytes=8-99", CONTENT[8:]),
        ("bytes=-3", CONTENT[-3:]),
        ("bytes=-99", CONTENT),
        ("Bytes= 2-5 ", CONTENT[2:6]),
    ],
)
def test_a_range_is_the_part_of_the_file(header, expected):
    part = parse_byte_range(header, len(CONTENT))
    assert CONTENT[part.start : part.start + part.n_bytes] == expected
    last = part.start + len(expected) - 1
    assert part.content_range(len(CONTENT)) == f"bytes {part.start}-{last}/10"


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0", f"bytes={10**17}-"])
def test_a_range_after_the_end_contains_no_byte(header):
    assert parse_byte_range(header, 10).n_bytes == 0


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "items=0-3"),
        *("bytes=0-3,5-6", "bytes=--3", "bytes=0x1-3", "bytes=\u0661-3", f"bytes={10**18}-"),
        *("bytes=0-3\n", "bytes=+1-3"),
    ],
)
def test_a_header_that_is_no_single_range_is_ignored(header):
    assert parse_byte_range(header, 10) is None


def test_each_range_of_a_short_file_equals_its_slice():
    for start in range(6):
        for last in range(start, 8):
            part = parse_byte_range(f"bytes={start}-{last}", 5)
            positions = [position for position in range(start, last + 1) if position < 5]
            assert part == ByteRange(start, len(positions))
