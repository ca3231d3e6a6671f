"""A recognizer held against labelled pictures."""

from dataclasses import replace

from surelabel.encoding import Progress
from surelabel.evaluation import Evaluation, Example, judge
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import LabelledImages


def judged(
    recognizer: Recognizer, test: LabelledImages, *, progress: Progress | None = None
) -> Evaluation:
    """Predict labelled pictures and judge the predictions; ``evaluate`` shows places as well."""
    predictions = recognizer.predict(test, progress=progress)
    return judge(predictions, recognizer.aligned(test))


def evaluate(
    recognizer: Recognizer, test: LabelledImages, *, progress: Progress | None = None
) -> Evaluation:
    """Predict labelled pictures and judge the predictions; examples show where labels are seen.

    Where the encoder gives no patch vectors, nothing is shown of places.
    """
    found = judged(recognizer, test, progress=progress)
    if not recognizer.backbone.dense_parts:
        return found
    shown = {e.path for e in (*found.worst, *found.best)}
    paths, maps = recognizer.where(sorted(shown))
    places = dict(zip(paths, maps, strict=True))
    column = {name: i for i, name in enumerate(recognizer.names)}

    def located(example: Example) -> Example:
        names = [tag.name for tag in example.tags[:3]]
        where = {n: places[example.path][column[n]] for n in names}
        return replace(example, where=where, cover=recognizer.backbone.cover)

    return replace(
        found,
        worst=tuple(map(located, found.worst)),
        best=tuple(map(located, found.best)),
    )
