import numpy as np
import pytest

from surelabel.errors import InputError
from surelabel.records import SCORE_KINDS, LabelledScores

COLUMNS = ["dog", "cat"]


def test_each_kind_becomes_log_odds_except_cosines():
    scores = [[0.5, 0.9], [0.0, 1.0]]
    values = {kind: LabelledScores(scores, kind, columns=COLUMNS).features for kind in SCORE_KINDS}
    assert values["probabilities"][0] == pytest.approx([0, np.log(9)], rel=1e-6)
    assert values["probabilities"][1] == pytest.approx([-np.log(1e5 - 1), np.log(1e5 - 1)])
    assert values["logits"].tolist() == values["cosines"].tolist() == np.float32(scores).tolist()
    assert LabelledScores([[-50.0, 99.0]], "logits", columns=COLUMNS).features.tolist() == [
        [-40, 40]
    ]


def test_views_follow_each_other_in_the_features():
    scores = LabelledScores(np.arange(12.0).reshape(2, 3, 2), "logits", columns=COLUMNS)
    assert (scores.views, scores.features.tolist()[1]) == (3, [6, 7, 8, 9, 10, 11])
    taken = scores.take([1])
    assert (taken.kind, taken.views, taken.columns) == ("logits", 3, COLUMNS)
    assert (taken.features.tolist(), taken.paths) == ([[6, 7, 8, 9, 10, 11]], ["row 1"])


def test_a_data_frame_gives_columns_and_image_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[0.1, 0.2]], index=["a.jpg"], columns=COLUMNS)
    scores = LabelledScores(table, "probabilities", targets=[[1, np.nan]])
    assert (scores.columns, scores.paths, scores.names) == (COLUMNS, ["a.jpg"], COLUMNS)
    assert scores.known.tolist() == [[True, False]]
    assert LabelledScores(table.reset_index(drop=True), "logits").paths == ["row 0"]
    with pytest.raises(InputError, match="logits must be numbers: could not convert"):
        LabelledScores(table.assign(split="val"), "logits")


def test_labels_can_differ_from_columns_and_can_be_removed():
    scores = LabelledScores([[1, 2]], "logits", columns=COLUMNS, targets=[[1]], names=["animal"])
    assert (scores.names, scores.targets.tolist()) == (["animal"], [[1]])
    assert scores.without_labels().targets.shape == (1, 0)
    assert scores.with_paths(["b"]).paths == ["b"]


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        (
            [[0.5, np.nan]],
            "logits",
            r"logits must be finite numbers; got nan for label 'cat' of 'row 0'",
        ),
        (
            [[0.5, 2], [-3, 0.5]],
            "probabilities",
            r"must be in \[0, 1\]; got 2 for label 'cat' of 'row 0' and 1 more invalid value\. Div",
        ),
        (
            [[0.5, -1.2]],
            "cosines",
            r"must be in \[-1, 1\]; got -1\.2 for label 'cat'.*the kind logits",
        ),
        ([0.5, 1], "logits", r"\(n, k\) of n images and k labels.*got shape \(2,\)"),
        ([[0.5]], "logits", "one entry per column of the scores, 1; got 2"),
        ([[0.5, 1]], "scores", "kind of scores must be one of logits, probabilities, cosines"),
    ],
)
def test_scores_that_contradict_their_kind_are_refused(scores, kind, message):
    with pytest.raises(InputError, match=message):
        LabelledScores(scores, kind, columns=COLUMNS)


@pytest.mark.parametrize(
    ("columns", "paths", "message"),
    [
        (
            ["dog", "dog"],
            ["a", "b"],
            "Each label must have one column of scores; got 'dog' 2 times",
        ),
        (COLUMNS, ["a", "a"], "Each image must have one row of scores; got 'a' 2 times"),
        (COLUMNS, ["a"], "paths must have one entry per row of the scores, 2; got 1"),
        (["dog", " "], ["a", "b"], "columns must be non-empty strings; got ' '"),
    ],
)
def test_columns_and_images_have_distinct_names(columns, paths, message):
    with pytest.raises(InputError, match=message):
        LabelledScores(np.zeros((2, 2)), "logits", columns=columns, paths=paths)
