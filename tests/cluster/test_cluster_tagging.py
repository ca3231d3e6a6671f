import os
import signal
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow.parquet as pq
import pytest

from surelabel.cluster import cluster_tagging
from surelabel.cluster.cluster_tagging import images_per_part, tag_on_cluster
from surelabel.cluster.part_writer import WORK_FOLDER, BatchReport, start_attempt
from surelabel.data import find_part_rows, read_failed_images, read_predictions
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.recognizer import Recognizer


@pytest.fixture(scope="module")
def folder(cluster, recognizer, images, tmp_path_factory):
    """Return a folder of predictions of all images, one of which kills its decoder."""
    folder = tmp_path_factory.mktemp("run") / "out"
    calls = []
    result = tag_on_cluster(
        recognizer,
        images,
        folder,
        batch_size=40,
        workers=2,
        progress=lambda *numbers: calls.append(numbers),
    )
    assert result.workers == 2
    assert len(result.failed) == 2
    assert calls[-1] == (len(images), len(images))
    return folder


def test_each_image_is_in_exactly_one_part_or_failed(folder, images):
    rows = np.concatenate([find_part_rows(folder).rows, read_failed_images(folder).rows])
    assert sorted(rows.tolist()) == list(range(len(images)))
    reasons = {Path(i.path).name: i.reason for i in read_failed_images(folder).images}
    assert list(reasons) == ["no-image.jpg", "poison.jpg"]
    assert "SIGKILL" in reasons["poison.jpg"]


def test_the_predictions_are_those_of_one_process(folder, recognizer, images):
    expected = recognizer.predict([path for path in images if "poison" not in path])
    predictions = read_predictions(folder)
    assert predictions.paths == expected.paths
    np.testing.assert_allclose(predictions.logits, expected.logits, atol=1e-5)


def test_a_resumed_run_predicts_missing_images_and_counts_started_batches(
    folder, recognizer, images
):
    part = sorted(folder.glob("part-*"))[1]
    before, n_removed = read_predictions(folder), pq.read_metadata(part).num_rows
    part.unlink()
    (folder / WORK_FOLDER / "started" / "000000000040-00000000-40").touch()
    result = tag_on_cluster(recognizer, images, folder, batch_size=40, workers=1)
    after = read_predictions(folder)
    assert result.n_resumed == len(before) - n_removed
    assert result.n_repeated >= 40  # and batches of actors that Ray started again
    assert after.paths == before.paths
    np.testing.assert_allclose(after.logits, before.logits, atol=1e-5)


def test_a_killed_actor_is_replaced_and_no_image_is_lost(cluster, recognizer, images, tmp_path):
    pids, earlier_actors = [], {*actor_pids()}  # an actor of an earlier run can still be ending

    def kill_first_actor():
        started = tmp_path / WORK_FOLDER / "started"
        while not pids:  # an actor starts seconds before its first batch
            pids.extend(pid for pid in actor_pids() if pid not in earlier_actors)
            time.sleep(0.01)
        while not (started.is_dir() and any(started.iterdir())):
            time.sleep(0.001)
        os.kill(pids[0], signal.SIGKILL)

    thread = Thread(target=kill_first_actor, daemon=True)
    thread.start()
    readable = [path for path in images if path[-7:-4].isdigit()]
    result = tag_on_cluster(recognizer, readable, tmp_path, batch_size=40, workers=1)
    thread.join()
    assert pids
    assert 0 < result.n_repeated <= 80  # Ray Data chooses batches of at most 40; perhaps two
    assert len(find_part_rows(tmp_path)) == len(readable) == len(images) - 2


def test_an_error_of_an_actor_reaches_the_user_in_one_line(
    cluster, recognizer, images, tmp_path, monkeypatch
):
    def start_of_another_process(folder):
        start_attempt(folder)
        return "another token"

    monkeypatch.setattr(cluster_tagging, "start_attempt", start_of_another_process)
    readable = [path for path in images if "poison" not in path][:70]
    with pytest.raises(DataError, match=r"^Only one process may write to .*same command again\.$"):
        tag_on_cluster(recognizer, readable, tmp_path, workers=1)
    assert not list(tmp_path.glob("part-*"))


def actor_pids():
    """Return the identifiers of the actors of Ray Data."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            if b"MapWorker" in command:
                yield int(entry)


def test_a_folder_of_another_recognizer_is_refused(folder, images):
    other = Recognizer.zero_shot("tiny-vit", ["cat"])
    with pytest.raises(DataError, match="a run with another recognizer and other labels"):
        tag_on_cluster(other, images, folder)


def test_a_refused_address_leaves_no_folder(recognizer, images, tmp_path, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match="must be the address of a running Ray cluster"):
        tag_on_cluster(recognizer, images, tmp_path / "out", address="127.0.0.1:1")
    assert not list(tmp_path.iterdir())


def test_a_folder_with_other_files_is_refused(recognizer, images, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"must be a new or empty.*with notes\.txt"):
        tag_on_cluster(recognizer, images, tmp_path, workers=1)


@pytest.mark.parametrize("name", ["workers", "batch_size"])
def test_counts_below_one_are_refused(name, recognizer, tmp_path):
    with pytest.raises(InputError, match=f"{name} must be 1 or more; got 0"):
        tag_on_cluster(recognizer, [], tmp_path, **{name: 0})


def test_parts_are_smaller_for_few_images(recognizer):
    assert images_per_part(recognizer, 10**6, 2) == 1024
    assert images_per_part(recognizer, 2000, 2) == 250
    assert images_per_part(recognizer, 3, 2) == 64


def test_a_report_is_read_from_its_text():
    report = BatchReport(3, 0.5, 1.5, [7], [["a.jpg", "damaged"]], 1)
    assert BatchReport.from_text(report.as_column()["report"][0]) == report
