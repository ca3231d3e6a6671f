import errno
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from surelabel.data import correction_log
from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_rows import (
    LOG_COLUMNS,
    CorrectionRow,
    read_correction_rows,
)
from surelabel.errors import DataError, InputError, UnknownName

HEADER = ",".join(LOG_COLUMNS) + "\n"
N_EVENTS = 25
WRITER = """
import sys
from surelabel.data.correction_log import CorrectionLog

log = CorrectionLog(sys.argv[1])
for number in range(int(sys.argv[3])):
    targets = {f"label {number}": 1.0, "all": 0.0}
    log.record(f"/photos/{sys.argv[2]}.jpg", targets, chosen_by="query")
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "corrections.csv"


@pytest.fixture
def log(file):
    return CorrectionLog(file)


def targets_of(file):
    """Return the last target of each image and label, by a plain loop over the rows."""
    return {
        (row.path, row.label): row.target for row in read_correction_rows(file).rows if row.label
    }


def test_a_correction_creates_the_file_and_reading_does_not(log, file, tmp_path):
    assert log.history().targets == {}
    assert not file.exists()
    log.record(
        str(tmp_path / "a.jpg"),
        {"dog": 1.0, "cat": math.nan},
        chosen_by="query",
        probabilities={"dog": 0.25},
        query="dog\n& !cat",
        rank=2,
    )
    lines = file.read_text().splitlines()
    assert lines[0] + "\n" == HEADER
    assert lines[1].startswith("a.jpg,dog,1,0.25,query,,dog & !cat,2,20")
    assert lines[2].startswith("a.jpg,cat,unknown,,query,,dog & !cat,2,20")
    assert lines[1].split(",")[-1] == lines[2].split(",")[-1]


def test_paths_in_the_folder_of_the_file_are_relative_and_others_absolute(log, file, tmp_path):
    for path in (str(tmp_path / "=b" / "a.jpg"), "/elsewhere/a.jpg", "s3://bucket/a.jpg"):
        log.record(path, {"dog": 1.0}, chosen_by="query")
    paths = [line.split(",")[0] for line in file.read_text().splitlines()[1:]]
    assert paths == ["./=b/a.jpg", "/elsewhere/a.jpg", "s3://bucket/a.jpg"]
    assert list(CorrectionLog(file).history().targets) == list(log.history().targets)


def test_another_log_of_the_file_has_an_equal_history(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    event = log.record("/a.jpg", {"dog": 0.0}, chosen_by="audit")
    log.append_sample(["/a.jpg", "/b.jpg"], 0.5)
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="random")
    log.undo(event)
    again, history = CorrectionLog(file).history(), log.history()
    for name in ("targets", "sample_targets", "sampled", "chosen_by", "undone"):
        assert getattr(again, name) == getattr(history, name)


def test_undone_rows_are_followed_by_the_targets_that_hold_without_them(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    event = log.record("/a.jpg", {"dog": 0.0, "cat": 0.0}, chosen_by="query")
    undo, n_rows = log.undo(event)
    assert (undo, n_rows) == (f"undo {event}", 2)
    values = targets_of(file)
    assert values["/a.jpg", "dog"] == 1.0
    assert math.isnan(values["/a.jpg", "cat"])
    assert log.history().targets == {"/a.jpg": {"dog": 1.0}}


def test_an_event_is_undone_once_and_must_exist(log):
    event = log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    sample = log.append_sample(["/a.jpg"], 0.5)
    undo, _ = log.undo(event)
    with pytest.raises(InputError, match="was undone before"):
        log.undo(event)
    for unknown in ("", "e1-0000000000000000", undo, sample):
        with pytest.raises(UnknownName, match="not in the corrections"):
            log.undo(unknown)


def test_a_check_requires_an_image_of_the_sample(log, file):
    with pytest.raises(InputError, match="requires an image of the random sample"):
        log.record("/a.jpg", {"dog": 1.0}, chosen_by="random")
    assert not file.exists()
    log.append_sample(["/a.jpg"], 0.125)
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="random")
    assert ",random,0.125," in file.read_text().splitlines()[-1]


@pytest.mark.parametrize(("path", "label"), [("/a\nb.jpg", "dog"), ("/a.jpg", "do\rg")])
def test_a_row_has_one_line(log, file, path, label):
    with pytest.raises(InputError, match="must not contain a line break"):
        log.record(path, {label: 1.0}, chosen_by="query")
    assert not file.exists()


def test_no_correction_of_threads_is_lost(log, file):
    def write(thread):
        own = log if thread % 2 else CorrectionLog(file)  # also logs that do not share a lock
        for number in range(N_EVENTS):
            own.record(f"/{thread}.jpg", {f"label {number}": 1.0}, chosen_by="query")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    expected = {(f"/{t}.jpg", f"label {n}"): 1.0 for t in range(4) for n in range(N_EVENTS)}
    assert targets_of(file) == expected
    assert len(file.read_text().splitlines()) == 1 + len(expected)
    assert log.history().targets == CorrectionLog(file).history().targets


def test_no_correction_of_two_processes_is_lost(file):
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file), name, str(N_EVENTS)])
        for name in "ab"
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    values = targets_of(file)
    assert len(values) == 2 * (N_EVENTS + 1)
    assert len(file.read_text().splitlines()) == 1 + 2 * 2 * N_EVENTS


def test_rows_of_another_program_are_read_at_the_next_use(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    with file.open("a") as stream:
        stream.write("/b.jpg,cat,1,,,,,,,\n")
    assert log.history().targets["/b.jpg"] == {"cat": 1.0}
    lines = file.read_text().splitlines(keepends=True)
    file.with_suffix(".new").write_text(lines[0] + lines[2])
    os.replace(file.with_suffix(".new"), file)
    assert list(log.history().targets) == ["/b.jpg"]
    file.unlink()
    assert log.history().targets == {}


@pytest.mark.parametrize("end", ["/a.jpg,dog,1", "/a.jpg,dog,1,,query,,,,,e1-aaaaaaaaaaaaaaa"])
def test_an_incomplete_event_at_the_end_is_removed_by_the_next_correction(log, file, end):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    content = file.read_text()
    file.write_text(content + end)
    assert log.history().targets == {"/a.jpg": {"dog": 1.0}}
    assert file.read_text() == content + end
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert file.read_text().startswith(content)
    assert len(file.read_text().splitlines()) == 3
    assert f"{len(end)} bytes of a correction" in log.note


def test_an_incomplete_event_that_is_longer_than_the_next_correction_is_removed(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    with file.open("a") as stream:
        stream.write(f"/{'b' * 500}.jpg,dog,1")
    for path in ("/c.jpg", "/d.jpg"):
        log.record(path, {"dog": 0.0}, chosen_by="query")
    assert list(targets_of(file)) == [("/a.jpg", "dog"), ("/c.jpg", "dog"), ("/d.jpg", "dog")]
    assert "bbb" not in file.read_text()


def test_rows_that_another_program_changes_in_place_are_read_again(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    file.write_text(file.read_text().replace("dog,1,", "dog,0,"))
    os.utime(file, ns=(10**18, 10**18))  # the size and the inode are those of the first version
    assert log.history().targets == {"/a.jpg": {"dog": 0.0}}


def test_rows_that_another_program_adds_during_a_correction_are_never_removed(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")

    def rows(_):
        with file.open("a") as stream:
            stream.write("/b.jpg,cat,1,,,,,,,\n")
        return [CorrectionRow("/c.jpg", "dog", 1.0)]

    with pytest.raises(DataError, match=r"not saved.* another program changed .* Try again\."):
        log.append(rows)
    assert targets_of(file) == {("/a.jpg", "dog"): 1.0, ("/b.jpg", "cat"): 1.0}
    log.record("/c.jpg", {"dog": 1.0}, chosen_by="query")
    assert list(log.history().targets) == ["/a.jpg", "/b.jpg", "/c.jpg"]


def test_texts_that_begin_with_an_apostrophe_and_a_formula_are_read_unchanged(log, file, tmp_path):
    texts = ["'=a", "''=a", "'a", "=a", "'"]
    for text in texts:
        log.record(str(tmp_path / f"{text}.jpg"), {text: 1.0}, chosen_by="query", query=text)
    history = CorrectionLog(file).history()
    assert history.targets == log.history().targets
    assert [row.query for row in history.rows] == texts


def test_a_last_line_without_a_line_break_is_kept(log, file):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    file.write_text(file.read_text().rstrip("\n"))
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert targets_of(file) == {("/a.jpg", "dog"): 1.0, ("/b.jpg", "dog"): 0.0}
    assert log.note == ""


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("", ""),
        ("p", "1 byte of a header line that was not written completely was replaced."),
        ("path,la", "7 bytes of a header line that was not written completely were replaced."),
        (
            HEADER.rstrip(),
            f"{len(HEADER) - 1} bytes of a header line that was not written completely were "
            "replaced.",
        ),
    ],
)
def test_a_file_with_a_part_of_the_header_is_empty(log, file, content, note):
    file.write_text(content)
    assert log.history().targets == {}
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert file.read_text().startswith(HEADER)
    assert targets_of(file) == {("/b.jpg", "dog"): 0.0}
    assert log.note == note


def test_a_file_with_bom_and_crlf_receives_corrections(log, file):
    file.write_bytes(b"\xef\xbb\xbf" + HEADER.encode().replace(b"\n", b"\r\n"))
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert targets_of(file) == {("/b.jpg", "dog"): 0.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{HEADER}a.jpg,dog,maybe,,,,,,,\n", "line 2: .* must be 1, 0, unknown"),
        ("path,label,corrected\na.jpg,dog,1\n", "must begin with the line path,label"),
        (HEADER.replace(",", ";"), "must begin with the line path,label"),
        ("\xff\xfe", "must be a CSV file in UTF-8"),
    ],
)
def test_a_damaged_file_is_never_changed(log, file, content, message):
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert file.read_bytes() == content.encode("latin-1")


@pytest.mark.parametrize("n_written", [0, 5, 70])
def test_a_failed_write_leaves_the_file_as_it_was(log, file, monkeypatch, n_written):
    log.record("/a.jpg", {"dog": 1.0}, chosen_by="query")
    content, write = file.read_bytes(), os.write

    def fail_when_full(descriptor, data):
        if len(data) > n_written:
            return write(descriptor, bytes(data[:n_written])) if n_written else full()
        return full()

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(correction_log.os, "write", fail_when_full)
        with pytest.raises(DataError, match=r"not saved.*No space left on device. Free disk space"):
            log.record("/b.jpg", {"dog": 0.0, "cat": 0.0}, chosen_by="query")
    assert file.read_bytes() == content
    assert list(log.history().targets) == ["/a.jpg"]
    log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
    assert list(log.history().targets) == ["/a.jpg", "/b.jpg"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the user can write all files")
def test_a_read_only_file_is_named(log, file):
    file.write_text(HEADER)
    file.chmod(0o400)
    with pytest.raises(DataError, match=r"not saved.*Permission denied"):
        log.record("/b.jpg", {"dog": 0.0}, chosen_by="query")
