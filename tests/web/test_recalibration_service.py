import shutil
import time

import numpy as np
import pytest
from scipy.special import expit

from surelabel.data.correction_log import CorrectionLog
from surelabel.errors import InputError, MissingPart
from surelabel.evaluation import evaluate_recalibration
from surelabel.records import RANDOM_ROW, Predictions
from surelabel.retrieval import Index
from surelabel.web import recalibration_service
from surelabel.web.index_session import IndexSession
from surelabel.web.indexed_images import find_images_by_path, stored_logits
from surelabel.web.recalibration_service import RecalibrationService
from surelabel.web.recognizer_service import RecognizerService

NAMES = [f"label {number}" for number in range(20)]
SECONDS = 120


@pytest.fixture
def index(tmp_path, write_index):
    """Write an index of 60 images without a recognizer."""
    paths = [tmp_path / f"{number}.jpg" for number in range(60)]
    return write_index(tmp_path / "index", paths, tmp_path, names=NAMES)


@pytest.fixture
def log(tmp_path):
    return CorrectionLog(tmp_path / "corrections.csv")


@pytest.fixture
def make_service(log):
    """Return a function that returns the service of an index folder; all services are closed."""
    opened = []

    def make(folder, model=None):
        recognizer = RecognizerService(model, device="cpu", root=None, seconds=60)
        session = IndexSession(str(folder), root=None, load_encoder=lambda index: None)
        service = RecalibrationService(session, log, recognizer)
        opened.extend([service, recognizer])
        return service

    yield make
    for service in opened:
        service.close()


def logits_of(index, paths):
    return stored_logits(index, list(find_images_by_path(index, paths).values()))


def sampled_targets(index, paths, *, scale=1.0, shift=0.0, seed=0):
    """Return targets that fit the scaled and shifted log-odds of an index."""
    probabilities = expit(scale * logits_of(index, paths) + shift)
    return (np.random.default_rng(seed).random(probabilities.shape) < probabilities).astype(float)


def check(log, index, paths, targets):
    """Record complete checks of a random sample."""
    log.append_sample(paths, len(paths) / len(index))
    for path, row in zip(paths, targets.tolist(), strict=True):
        log.record(path, dict(zip(index.names, row, strict=True)), chosen_by=RANDOM_ROW)


def evaluate(service):
    images = service.read_checked_images()
    return service.evaluate(images, [False] * len(images.paths))


@pytest.fixture
def checked(index, log):
    """Check 30 images whose log-odds are miscalibrated; return their paths and targets."""
    paths = list(index.paths)[:30]
    targets = sampled_targets(index, paths, scale=-1.0, shift=-1.0)
    check(log, index, paths, targets)
    return paths, targets


def test_the_evaluation_uses_stored_log_odds_and_checked_targets(index, checked, make_service):
    paths, targets = checked
    service = make_service(index.folder)
    evaluated = evaluate(service)
    expected = evaluate_recalibration(logits_of(index, paths), targets)
    assert evaluated.as_dict() == expected.as_dict() | {"notes": []}
    assert expected.is_improvement
    status = service.status()
    assert (status["n_checked"], status["n_required"], status["n_missing"]) == (30, 20, 0)
    assert (status["state"], status["reason"]) == ("idle", None)
    assert not status["has_recognizer"]
    assert status["reason_no_recognizer"].startswith("Uploads, heat maps and recalibrations need")


def test_corrections_of_errors_have_no_effect(index, checked, log, make_service):
    service = make_service(index.folder)
    expected = evaluate(service).as_dict()
    for path in index.paths:  # also images of the sample
        log.record(path, {NAMES[0]: 0.0, NAMES[1]: 1.0}, chosen_by="query", query="label 0")
    assert service.status()["n_checked"] == 30
    assert evaluate(service).as_dict() == expected


def test_clicks_alone_are_no_checked_images(index, log, make_service):
    for path in index.paths:
        log.record(path, dict.fromkeys(NAMES, 0.0), chosen_by="query")
    service = make_service(index.folder)
    assert service.status()["n_checked"] == 0
    with pytest.raises(InputError, match=r"got 0\. Annotate 20 more images\."):
        service.read_checked_images()


def test_incomplete_and_deleted_images_do_not_count(index, log, make_service):
    paths = list(index.paths)[:25]
    check(log, index, paths, sampled_targets(index, paths))
    gone = str(index.folder.parent / "gone.jpg")
    log.append_sample([gone, index.paths[30]], 0.5)
    log.record(gone, dict.fromkeys(NAMES, 0.0), chosen_by=RANDOM_ROW)
    log.record(index.paths[30], {NAMES[0]: 0.0}, chosen_by=RANDOM_ROW)
    service = make_service(index.folder)
    assert service.status()["n_checked"] == 25
    Index.open(index.folder).remove(paths[:10])
    assert service.status()["n_missing"] == 5
    with pytest.raises(InputError, match=r"got 15\. Annotate 5 more images\."):
        service.read_checked_images()


def test_a_check_whose_targets_are_all_unknown_does_not_count(index, checked, log, make_service):
    paths, _ = checked
    for path in paths[:11]:
        log.record(path, dict.fromkeys(NAMES, np.nan), chosen_by=RANDOM_ROW)
    service = make_service(index.folder)
    status = service.status()
    assert (status["n_checked"], status["n_missing"]) == (19, 1)
    with pytest.raises(InputError, match=r"got 19\. Annotate 1 more image\."):
        service.read_checked_images()


def test_an_undone_check_does_not_count(index, checked, log, make_service):
    service = make_service(index.folder)
    log.undo(log.history().rows[-1].event)
    assert service.status()["n_checked"] == 29


def test_images_of_the_fit_are_left_out(index, checked, make_service):
    service = make_service(index.folder)
    images = service.read_checked_images()
    found = service.evaluate(images, [True] * 5 + [False] * 25).as_dict()
    assert found["n_images"] == 25
    note = "5 checked images are left out, because the recognizer was fitted on them."
    assert found["notes"] == [note]
    with pytest.raises(InputError, match=r"got 19\..* 11 checked images are left out"):
        service.evaluate(images, [True] * 11 + [False] * 19)


def test_an_index_in_sparse_form_is_evaluated_with_a_note(index, checked, make_service):
    index.compact(drop_below=0.05)
    (note,) = evaluate(make_service(index.folder)).as_dict()["notes"]
    assert note.startswith("The index stores only probabilities of at least 0.05;")
    assert note.endswith("The metrics are approximate.")


def test_a_recalibration_without_improvement_or_evaluation_is_refused(index, log, make_service):
    service = make_service(index.folder)
    with pytest.raises(InputError, match="must be evaluated before it is applied"):
        service.start_applying()
    paths = list(index.paths)[:40]
    check(log, index, paths, sampled_targets(index, paths))
    assert not evaluate(service).result.is_improvement
    with pytest.raises(InputError, match="There is no evidence of miscalibration"):
        service.start_applying()
    assert service.status()["state"] == "idle"


def test_an_index_without_a_recognizer_is_evaluated_but_not_changed(index, checked, make_service):
    service = make_service(index.folder)
    evaluate(service)
    with pytest.raises(MissingPart, match="which the index does not record"):
        service.start_applying()


def test_an_evaluation_of_another_recognizer_is_not_applied(index, checked, make_service, tmp_path):
    service = make_service(index.folder)
    evaluate(service)
    paths, logits = list(index.paths), logits_of(index, index.paths).astype(np.float32)
    other = Predictions(paths, index.names, logits, logits, "tested", "another model")
    Index.create(tmp_path / "other", other, root=tmp_path)
    shutil.rmtree(index.folder)
    shutil.move(tmp_path / "other", index.folder)
    with pytest.raises(InputError, match="The recognizer of the index was changed after the eval"):
        service.start_applying()


@pytest.fixture
def evaluated(miscalibrated_index, scenes, log, make_service, tmp_path):
    """Return the service of an index with a recognizer, after an evaluation."""
    shutil.copytree(miscalibrated_index, tmp_path, dirs_exist_ok=True)
    index = Index.open(tmp_path / "index")
    check(log, index, [str(path) for path in scenes.paths[:40]], scenes.targets[:40])
    service = make_service(tmp_path / "index")
    assert evaluate(service).result.is_improvement
    return service


def test_a_process_that_fails_is_described_in_the_state(evaluated, monkeypatch):
    # these tasks do not contain the task, so that the process ends with an error
    monkeypatch.setattr(recalibration_service, "TASKS_MODULE", "surelabel.web.image_tasks")
    evaluated.start_applying()
    for refused in (evaluated.start_applying, lambda: evaluate(evaluated)):
        with pytest.raises(InputError, match=r"A recalibration is running\. Wait until it"):
            refused()
    status = wait(evaluated)
    assert status["state"] == "failed"
    assert status["reason"].startswith("The recalibration failed: its worker process crashed")
    with pytest.raises(InputError, match="must be evaluated before it is applied"):
        evaluated.start_applying()
    evaluate(evaluated)
    assert (evaluated.status()["state"], evaluated.status()["reason"]) == ("idle", None)


def test_closing_the_service_ends_its_process_and_keeps_the_index(evaluated, tmp_path):
    revision = Index.open(tmp_path / "index").revision
    evaluated.start_applying()
    evaluated.close()
    status = wait(evaluated)
    assert status["state"] == "failed"
    assert status["reason"].startswith("The recalibration failed")
    assert Index.open(tmp_path / "index").revision == revision


def wait(service):
    deadline = time.monotonic() + SECONDS
    while service.status()["state"] == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    return service.status()
