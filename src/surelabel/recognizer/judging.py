"""A recognizer held against labelled pictures."""

from dataclasses import replace

from surelabel.encoding import Progress
from surelabel.evaluation import Budget, Evaluation, Example, intervals, judge, label_budget
from surelabel.evaluation.budget import FEWEST
from surelabel.recognizer.alone import alone
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.regions import regions_of
from surelabel.recognizer.sources import Labelled
from surelabel.records import LabelledFeatures


def judged(
    recognizer: Recognizer, test: Labelled, *, progress: Progress | None = None
) -> Evaluation:
    """Predict labelled pictures and judge the predictions; ``evaluate`` shows places as well."""
    predictions = recognizer.predict(test, progress=progress)
    return judge(
        predictions, recognizer.aligned(test), before=recognizer.before_calibration(predictions)
    )


def evaluate(
    recognizer: Recognizer, test: Labelled, *, progress: Progress | None = None
) -> Evaluation:
    """Predict labelled pictures and judge the predictions; examples show where labels are seen.

    Beside it stands what the encoder alone says of the same pictures, where it is another answer.
    Where neither the encoder gives patch vectors nor the method a map, no places are shown.
    """
    found = judged(recognizer, test, progress=progress)
    found = replace(
        found,
        intervals=intervals(found),
        budget=_budget(recognizer, found),
        alone=alone(recognizer, test, found.predictions),
    )
    has_places = recognizer.backbone.dense_parts or hasattr(recognizer.method, "maps")
    if isinstance(test, LabelledFeatures) or not has_places:
        return found
    shown = {e.path: [tag.name for tag in e.tags] for e in (*found.worst, *found.best)}
    seen = regions_of(recognizer, {path: shown[path] for path in sorted(shown)})

    def located(example: Example) -> Example:
        return replace(example, regions=seen.get(example.path))

    return replace(
        found,
        worst=tuple(map(located, found.worst)),
        best=tuple(map(located, found.best)),
    )


def _budget(recognizer: Recognizer, found: Evaluation) -> Budget | None:
    """How many labelled pictures the run's calibrator needs; None where too few are there."""
    if found.known.any(axis=1).sum() < FEWEST:
        return None
    raw = recognizer.linked(found.predictions.scores)
    return label_budget(recognizer.run.make("calibrator"), raw, found.targets, found.known)
