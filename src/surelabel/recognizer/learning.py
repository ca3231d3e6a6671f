"""From pictures without labels to a method that has learnt from them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel.backbones import Backbone
from surelabel.config import Run, is_student
from surelabel.data import FeatureCache
from surelabel.encoding import Progress
from surelabel.recognizer.fitting import new_method
from surelabel.recognizer.notes import note_skipped
from surelabel.recognizer.sources import Labelled, encoded
from surelabel.recognizer.unlabelled import taught
from surelabel.records import Images


def learnt_from(
    source: Images | Labelled,
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    *,
    cache: FeatureCache,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Any:
    """A method that has learnt from pictures, whose labels, if any, are not looked at.

    A student is taught, and goes on where its checkpoint was kept. The others look at each picture
    once, and have nothing to go on from.
    """
    method = new_method(run, backbone, spellings)
    if is_student(method):
        paths = [str(p) for p in source.paths]
        common = (run, backbone, spellings, paths)
        return taught(*common, cache=cache, checkpoint=checkpoint, progress=progress).method
    found = encoded(source, method, backbone, cache, progress=progress)
    note_skipped(found, "pictures")
    method.learn(found.features)
    return method
