import numpy as np
import pytest

from surelabel.data.correction_log import CorrectionLog
from surelabel.records import Predictions
from surelabel.retrieval import Index


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("label_next", "contains no image vectors"), ("audit", "at least 20 corrected images")],
)
def test_a_sentence_states_what_is_missing(client, kind, sentence):
    result = client.get("/api/proposals", params={"kind": kind}).json()
    assert (result["kind"], result["images"]) == (kind, [])
    assert sentence in result["sentence"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kind": "random"},
        {"kind": "../audit"},
        {"kind": "audit", "count": 0},
        {"kind": "audit", "count": 201},
        {"kind": "audit", "count": "nan"},
    ],
)
def test_an_invalid_argument_is_refused(client, arguments):
    response = client.get("/api/proposals", params=arguments)
    assert response.status_code == 400
    assert response.json()["error"].startswith("The argument ")


def test_images_and_wrong_targets_are_proposed(tmp_path, running_server):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=4, size=(60, 2)).astype(np.float32)
    vectors = rng.normal(size=(60, 3)).astype(np.float16)
    paths = [str(tmp_path / f"{row:02}.jpg") for row in range(60)]
    Index.create(
        tmp_path / "index",
        Predictions(paths, ["dog", "cat"], logits, logits, "tested", "m", features=vectors),
        root=tmp_path,
    )
    log = CorrectionLog(tmp_path / "corrections.csv")
    wrong_row = int(np.abs(logits[:40, 0]).argmax())
    for row in range(40):
        targets = (logits[row] > 0) != [row == wrong_row, False]
        log.record(
            paths[row],
            dict(zip(["dog", "cat"], map(float, targets), strict=True)),
            chosen_by="browse",
        )
    with running_server(tmp_path / "index", corrections=str(log.path)) as served:
        audit = served.client.get("/api/proposals", params={"kind": "audit"}).json()["images"]
        assert [(image["path"], image["label"]) for image in audit] == [(paths[wrong_row], "dog")]
        arguments = {"kind": "label_next", "count": 5}
        images = served.client.get("/api/proposals", params=arguments).json()["images"]
        assert len({image["path"] for image in images} & set(paths[40:])) == 5
