"""Print the events of ``tag --watch`` as lines of text or as JSON lines."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.tag_options import TagSelection
from surelabel.cli.tag_output import tag_results
from surelabel.cli.terminal import Terminal
from surelabel.cli.terminal_text import escape_terminal_line, join_lines_for_terminal
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.recognizer import Recognizer
    from surelabel.recognizer.folder_watching import FolderWatch, WatchedBatch, WatchEvent
    from surelabel.recognizer.watched_index import WatchedIndex
    from surelabel.records import SkippedImage


@dataclass
class WatchOutput:
    """Output of ``tag --watch``, which counts the images of all events.

    Attributes:
        terminal: Object that prints results and status lines.
        selection: Selection of the labels that are shown.
        shows_tags: Whether the labels of each image are printed as text.
        n_tagged: Number of images that were tagged; a changed image counts again.
        n_unreadable: Number of images that could not be read.
        n_removed: Number of images that were removed from the index.
    """

    terminal: Terminal
    selection: TagSelection
    shows_tags: bool
    n_tagged: int = 0
    n_unreadable: int = 0
    n_removed: int = 0
    _start: float = field(default_factory=time.monotonic)

    def print_start(
        self, watch: "FolderWatch", recognizer: "Recognizer", index: "WatchedIndex | None"
    ) -> None:
        """Print the folder, and the number of images in the index.

        Args:
            watch: Watched folder.
            recognizer: Recognizer of the images.
            index: Index of the images, or None.
        """
        n_indexed = None if index is None else len(index)
        if self.terminal.as_json:
            self._print_json(
                "started",
                folder=watch.folder,
                index=None if index is None else index.folder,
                images=n_indexed,
                model=recognizer.fingerprint,
                calibration=recognizer.calibrated_on,
            )
        self._print_status(
            f"Watching {watch.folder}, with a scan every {watch.interval:g} s (stop with Ctrl-C)",
            n_indexed,
        )

    def print_event(self, event: "WatchEvent") -> None:
        """Print an event, and add its images to the counts."""
        from surelabel.recognizer.folder_watching import RemovedImages, WatchedBatch

        if isinstance(event, WatchedBatch):
            self._print_batch(event)
        elif isinstance(event, RemovedImages):
            self.n_removed += len(event.paths)
            for path in event.paths:
                self._print_json("removed", path=path)
            self._print_json("batch", **_batch_counts(0, 0, len(event.paths), event.n_indexed))
            text = f"{format_count(len(event.paths), 'image')} removed"
            self._print_status(text, event.n_indexed)
        else:
            self._print_json("notice", kind=event.kind, message=event.message)
            self._print_problem(event.message)

    def print_summary(self) -> None:
        """Print the counts of all events after the last scan."""
        seconds = time.monotonic() - self._start
        counts = {
            "tagged": self.n_tagged,
            "unreadable": self.n_unreadable,
            "removed": self.n_removed,
        }
        self._print_json("stopped", **counts, seconds=round(seconds, 1))
        duration = timedelta(seconds=round(seconds))
        self._print_status(
            f"Stopped after {duration}: {format_count(self.n_tagged, 'image')} tagged, "
            f"{self.n_unreadable:,} unreadable, {self.n_removed:,} removed.",
            None,
        )

    def _print_batch(self, batch: "WatchedBatch") -> None:
        n_tagged, n_unreadable = len(batch.predictions), len(batch.unreadable)
        self.n_tagged += n_tagged
        self.n_unreadable += n_unreadable
        if self.terminal.as_json or self.shows_tags:
            for value, text in tag_results(batch.predictions, self.selection):
                event = {"event": "tagged", "time": _json_time(), **value}
                self.terminal.print_result(event, text)
        self._print_skipped("unreadable", batch.unreadable, "cannot be read")
        self._print_skipped("sidecar_refused", batch.refused, "was not written")
        self._print_json("batch", **_batch_counts(n_tagged, n_unreadable, 0, batch.n_indexed))
        text = f"{format_count(n_tagged, 'image')} tagged"
        text += f", {n_unreadable:,} unreadable" if n_unreadable else ""
        if batch.refused:
            text += f", {format_count(len(batch.refused), 'sidecar')} not written"
        self._print_status(text, batch.n_indexed)

    def _print_skipped(self, event: str, images: "Sequence[SkippedImage]", predicate: str) -> None:
        """Print a line for each file that cannot be used, with the reason."""
        for image in images:
            self._print_json(event, path=image.path, reason=image.reason)
            self._print_problem(f"{escape_terminal_line(image.path)} {predicate}: {image.reason}")

    def _print_json(self, event: str, **values: Any) -> None:
        """Print an event on one line, if JSON is requested."""
        if self.terminal.as_json:
            value = {"event": event, "time": _json_time(), **values}
            self.terminal.print_result(value, "")

    def _print_problem(self, text: str) -> None:
        """Print a line on stderr, also with ``--quiet``, unless JSON is requested."""
        if not self.terminal.as_json:
            click.echo(f"{time.strftime('%H:%M:%S')} {join_lines_for_terminal(text)}", err=True)

    def _print_status(self, text: str, n_indexed: int | None) -> None:
        """Print a status line with the time, unless JSON is requested."""
        if n_indexed is not None:
            text += f"; {format_count(n_indexed, 'image')} in the index"
        if not self.terminal.as_json:
            self.terminal.print_status(f"{time.strftime('%H:%M:%S')} {text}")


def _batch_counts(
    n_tagged: int, n_unreadable: int, n_removed: int, n_indexed: int | None
) -> dict[str, int | None]:
    """Return the numbers of images of an event ``batch``."""
    return {
        "tagged": n_tagged,
        "unreadable": n_unreadable,
        "removed": n_removed,
        "images": n_indexed,
    }


def _json_time() -> str:
    """Return the local time with its offset, in the format ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")
