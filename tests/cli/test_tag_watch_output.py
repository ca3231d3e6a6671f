import json
import re

import numpy as np
import pytest

from surelabel.cli.tag_options import TagSelection
from surelabel.cli.tag_watch_output import WatchOutput
from surelabel.cli.terminal import Terminal
from surelabel.recognizer.folder_watching import RemovedImages, WatchedBatch, WatchNotice
from surelabel.records import Predictions, SkippedImage

LOGITS = np.array([[2.0, -2.0]], np.float32)
PREDICTIONS = Predictions(["/a/x.jpg"], ["lion", "bear"], LOGITS, LOGITS, "tested", "m")
EVENTS = [
    WatchedBatch(
        PREDICTIONS,
        unreadable=[SkippedImage("/a/b\x1b.jpg", "empty file")],
        refused=[SkippedImage("/a/x.xmp", "the file is read-only")],
        n_indexed=1203,
    ),
    RemovedImages(["/a/y.jpg", "/a/z.jpg"], 1201),
    WatchNotice("folder_missing", "/a cannot be read."),
]


@pytest.fixture
def printed(capsys):
    """Return a function that prints all events, and returns stdout and stderr without times."""

    def print_events(*, shows_tags=False, **options):
        output = WatchOutput(Terminal(**options), TagSelection(0.5, None), shows_tags=shows_tags)
        for event in EVENTS:
            output.print_event(event)
        output.print_summary()
        captured = capsys.readouterr()
        return captured.out, re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", captured.err)

    return print_events


PROBLEMS = [
    "/a/b\\u001b.jpg cannot be read: empty file",
    "/a/x.xmp was not written: the file is read-only",
]


def test_text_has_one_line_for_each_batch_and_each_problem(printed):
    out, err = printed()
    assert out == ""
    assert err.splitlines() == [
        *PROBLEMS,
        "1 image tagged, 1 unreadable, 1 sidecar not written; 1,203 images in the index",
        "2 images removed; 1,201 images in the index",
        "/a cannot be read.",
        "Stopped after 0:00:00: 1 image tagged, 1 unreadable, 2 removed.",
    ]


def test_quiet_leaves_out_the_counts_and_keeps_the_problems(printed):
    assert printed(quiet=True) == ("", "\n".join([*PROBLEMS, "/a cannot be read.", ""]))


def test_labels_are_printed_if_there_is_no_other_output(printed):
    assert printed(shows_tags=True, quiet=True)[0] == "/a/x.jpg: lion 0.88\n"


def test_json_has_one_object_on_each_line(printed):
    out, err = printed(as_json=True)
    assert err == ""
    events = [json.loads(line) for line in out.splitlines()]
    for event in events:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", event.pop("time"))
    [tag] = events[0].pop("tags")
    assert (tag["label"], tag["probability"]) == ("lion", 0.880797)
    assert events.pop()["event"] == "stopped"
    assert events == [
        {"event": "tagged", "path": "/a/x.jpg"},
        {"event": "unreadable", "path": "/a/b\x1b.jpg", "reason": "empty file"},
        {"event": "sidecar_refused", "path": "/a/x.xmp", "reason": "the file is read-only"},
        {"event": "batch", "tagged": 1, "unreadable": 1, "removed": 0, "images": 1203},
        {"event": "removed", "path": "/a/y.jpg"},
        {"event": "removed", "path": "/a/z.jpg"},
        {"event": "batch", "tagged": 0, "unreadable": 0, "removed": 2, "images": 1201},
        {"event": "notice", "kind": "folder_missing", "message": "/a cannot be read."},
    ]
