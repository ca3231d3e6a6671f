from pathlib import Path

import pytest

from surelabel.data.captions.resolution.caption_entries import (
    CaptionEntry,
    clean_caption_text,
    resolve_captions,
)
from surelabel.errors import DataError

SOURCE = Path("/data/captions.csv")


def test_paths_are_relative_to_the_file_or_to_images_root():
    entries = [CaptionEntry("line 2", "a.jpg", "a dog"), CaptionEntry("line 3", "/b.jpg", "a cat")]
    assert resolve_captions(SOURCE, entries, images_root=None).paths == ["/data/a.jpg", "/b.jpg"]
    assert resolve_captions(SOURCE, entries, images_root="r").paths == ["r/a.jpg", "/b.jpg"]


def test_spaces_and_line_breaks_become_single_spaces():
    assert clean_caption_text(SOURCE, "line 1", " a\n dog\u00a0\t runs ") == "a dog runs"


@pytest.mark.parametrize("text", ["", " \n", None, 3, ["a dog"]])
def test_an_entry_without_text_is_refused(text):
    with pytest.raises(DataError, match=r"captions\.csv, line 4: expected a caption; got "):
        clean_caption_text(SOURCE, "line 4", text)


def test_a_caption_has_at_most_10000_characters():
    assert len(clean_caption_text(SOURCE, "line 1", "x" * 10_000)) == 10_000
    with pytest.raises(DataError, match=r"at most 10000 characters; got 10001"):
        clean_caption_text(SOURCE, "line 1", "x" * 10_001)
