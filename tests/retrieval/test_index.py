"""The index: a folder that survives what folders go through."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy.special import expit

from surelabel.errors import DataError, InputError, NotFitted, UnknownName
from surelabel.features.cache import content_hash_for_cache
from surelabel.records import Predictions, SkippedImage
from surelabel.retrieval import Index, IndexRecognizer, Query

SAVED_INDEX = Path(__file__).parents[1] / "saved" / "0.1.0" / "index"
NAMES = ["apple", "fork", "knife", "süße 🍎"]


def predictions(n=30, seed=0, *, start=0, names=NAMES, folder="/nowhere", features=True):
    """Random calibrated predictions for images numbered from ``start``."""
    random = np.random.default_rng(seed)
    logits = (3 * random.standard_normal((n, len(names)))).astype(np.float32)
    return Predictions(
        paths=[f"{folder}/{start + row:03}.jpg" for row in range(n)],
        names=names,
        scores=(logits / 10).astype(np.float32),
        logits=logits,
        calibration="platt on 500 images",
        model="abc123",
        features=random.standard_normal((n, 6)).astype(np.float16) if features else None,
    )


def photographs(folder, n):
    """Predictions of files that exist, each with its number as its content."""
    made = predictions(n, folder=folder)
    for row, path in enumerate(made.paths):
        with open(path, "w") as file:
            file.write(str(row))
    return made


def by_hand(made, query, k):
    """Paths and probabilities by multiplying probabilities, for all images."""
    product = np.ones(len(made))
    for term, sign in query.signed_terms:
        probabilities = made.probabilities[:, made.names.index(term.name)]
        product *= probabilities if sign > 0 else 1 - probabilities
    best = np.argsort(-product, kind="stable")[:k]
    return [(made.paths[row], product[row]) for row in best]


def assert_finds(index, made, k=7):
    for query in (
        Query.of_labels(("apple",)),
        Query.of_labels((), ("fork",)),
        Query.of_labels(("apple", "fork"), ("knife",)),
    ):
        hits = index.search(query, k)
        expected = by_hand(made, query, k)
        assert [hit.path for hit in hits] == [path for path, _ in expected]
        np.testing.assert_allclose(
            [hit.probability for hit in hits], [p for _, p in expected], rtol=1e-6
        )


def joined(*parts):
    return replace(
        parts[0],
        paths=[path for part in parts for path in part.paths],
        scores=np.concatenate([part.scores for part in parts]),
        logits=np.concatenate([part.logits for part in parts]),
        features=np.concatenate([part.features for part in parts]),
    )


def files_of(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_search_finds_what_multiplying_all_probabilities_finds(tmp_path):
    made = predictions()
    assert_finds(Index.create(tmp_path / "index", made), made)
    index = Index.open(tmp_path / "index")
    assert_finds(index, made)
    assert_finds(index, made, k=1000)
    assert (len(index), index.names, index.model) == (30, NAMES, "abc123")
    assert index.calibration == "platt on 500 images"


def test_probabilities_and_hashes_are_those_of_all_rows_that_were_not_removed(tmp_path):
    made = photographs(tmp_path, 40)
    index = Index.create(tmp_path / "index", made)
    index.add(predictions(5, 1, start=100))
    index.remove(made.paths[3:7])
    ours = dict(zip(index.paths, index.probabilities("apple & !fork"), strict=True))
    expected = dict(by_hand(made, Query.of_labels(("apple",), ("fork",)), 40))
    for path in [*made.paths[:3], *made.paths[7:]]:
        assert ours[path] == pytest.approx(expected[path], rel=1e-6)
    assert len(ours) == 41
    hashes = dict(zip(index.paths, index.content_hashes, strict=True))
    assert hashes[made.paths[0]] == content_hash_for_cache(made.paths[0])
    assert [hashes[path] for path in index.paths[-5:]] == [None] * 5


def test_each_hit_carries_the_probability_of_every_label_asked_for(tmp_path):
    made = predictions()
    index = Index.create(tmp_path / "index", made)
    for hit in index.search('apple & !"süße 🍎"', 5):
        row = made.paths.index(hit.path)
        z = made.logits[row].astype(float)
        assert hit.terms == pytest.approx({"apple": expit(z[0]), "süße 🍎": expit(z[3])})
        assert hit.probability == pytest.approx(expit(z[0]) * expit(-z[3]))


def test_the_repr_of_an_index_and_of_its_hits_needs_no_file(tmp_path):
    index = Index.create(tmp_path / "<index>", predictions())
    hits = index.search("apple & !fork", 2)
    for file in index.folder.iterdir():
        file.unlink()
    expected = "images=30, labels=4, calibration='platt on 500 images', model='abc123'"
    assert expected in " ".join(repr(index).split())
    assert "&lt;index&gt;" in index._repr_html_()
    assert "<index>" not in index._repr_html_()
    assert repr(hits).startswith("HitList(query='apple & !fork', images=2)")
    assert hits[0].path in repr(hits)


def test_images_are_added_replaced_and_removed(tmp_path):
    index = Index.create(tmp_path / "index", predictions(30))
    more = predictions(10, seed=1, start=30)
    index.add(more)
    assert_finds(index, joined(predictions(30), more))
    again = predictions(5, seed=2, start=28)
    index.add(again)
    kept = joined(predictions(30), more)
    rows = [r for r, path in enumerate(kept.paths) if path not in set(again.paths)]
    now = joined(
        replace(
            kept,
            paths=[kept.paths[r] for r in rows],
            logits=kept.logits[rows],
            scores=kept.scores[rows],
            features=kept.features[rows],
        ),
        again,
    )
    assert len(index) == 40
    assert_finds(index, now)
    assert_finds(Index.open(tmp_path / "index"), now, k=100)
    index.remove(now.paths[:25])
    left = predictions(30)
    assert sorted(index.paths) == sorted(now.paths[25:])
    assert not set(index.paths) & set(left.paths[:25])
    index.remove(index.paths)
    assert (len(index), index.search("apple")) == (0, [])
    index.add(left)
    assert_finds(index, left)


def test_many_small_additions_leave_few_shards_and_the_same_rows(tmp_path):
    index = Index.create(tmp_path / "index", predictions(0))
    parts = [predictions(1, seed=row, start=row) for row in range(13)]
    for part in parts:
        index.add(part)
    assert_finds(Index.open(tmp_path / "index"), joined(*parts), k=13)
    assert index.paths == joined(*parts).paths
    assert len(list((tmp_path / "index").glob("high-*.npy"))) in range(1, 5)


def test_features_are_kept_row_by_row(tmp_path):
    index = Index.create(tmp_path / "index", predictions(3))
    index.add(predictions(5, seed=1, start=3))
    stored = np.load(next((tmp_path / "index").glob("features-*.npy")))
    expected = joined(predictions(3), predictions(5, seed=1, start=3)).features
    assert np.array_equal(stored, expected)


def test_the_files_are_plain_and_label_major(tmp_path):
    made = predictions(5)
    Index.create(tmp_path, made)
    assert files_of(tmp_path) == [
        "checksums-000.npy",
        "features-000.npy",
        "first-000.npy",
        "high-000.npy",
        "index.json",
        "index.lock",
        "last-000.npy",
        "low-000.npy",
        "rows-000.parquet",
        "scores-000.npy",
    ]
    high, low, first, last = (
        np.load(tmp_path / f"{name}-000.npy") for name in ("high", "low", "first", "last")
    )
    keys = high.astype(np.int64) << 16 | low
    bits = np.where(keys >> 31, keys - 2**31, 2**32 - 1 - keys).astype(np.uint32)
    assert np.array_equal(bits.view(np.float32), made.logits.T)
    assert np.array_equal(np.load(tmp_path / "scores-000.npy"), made.scores.T)
    assert (np.diff(np.take_along_axis(made.logits.T, first, axis=1)) <= 0).all()
    assert np.array_equal(first, last[:, ::-1])


def test_changed_deleted_and_unindexed_images_have_a_reason(tmp_path):
    made = photographs(tmp_path, 6)
    broken = tmp_path / "broken.jpg"
    broken.write_text("no image")
    skipped = [
        SkippedImage(str(broken), "truncated"),
        SkippedImage(str(tmp_path / "was.jpg"), "empty"),
    ]
    index = Index.create(tmp_path / "index", replace(made, skipped=skipped))
    assert index.changed_paths() == []
    with open(made.paths[1], "w") as file:
        file.write("another")
    os.utime(made.paths[2], ns=(1, 1))  # touched, not changed
    os.unlink(made.paths[3])
    new = tmp_path / "new.jpg"
    new.write_text("new")
    status = Index.open(tmp_path / "index").status([*made.paths, str(new), str(broken)])
    assert status.n_images == 6
    assert status.changed == {made.paths[1]: "the file content changed after the prediction"}
    assert status.deleted == {made.paths[3]: "the file no longer exists"}
    assert status.not_indexed == {
        str(broken): "truncated",
        str(new): "the image was never added to the index",
    }


@pytest.mark.parametrize("seconds", [5, 2**32])  # of a clock that is set back, or was
def test_a_change_of_the_same_size_is_found_by_its_time(tmp_path, seconds):
    made = photographs(tmp_path, 2)
    index = Index.create(tmp_path / "index", made)
    with open(made.paths[0], "w") as file:
        file.write("9")
    os.utime(made.paths[0], (seconds, seconds))
    assert index.changed_paths() == [made.paths[0]]
    index.add(
        replace(
            made,
            paths=made.paths[:1],
            logits=made.logits[:1],
            scores=made.scores[:1],
            features=made.features[:1],
        )
    )
    assert index.changed_paths() == []


def test_a_image_that_can_no_longer_be_read_leaves_the_index(tmp_path):
    made = photographs(tmp_path, 3)
    index = Index.create(tmp_path / "index", made)
    index.add(replace(predictions(0), skipped=[SkippedImage(made.paths[1], "truncated")]))
    assert index.paths == [made.paths[0], made.paths[2]]
    assert index.status().not_indexed == {made.paths[1]: "truncated"}
    index.add(
        replace(
            made,
            paths=made.paths[1:2],
            logits=made.logits[:1],
            scores=made.scores[:1],
            features=made.features[:1],
        )
    )
    assert index.status().not_indexed == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "model fingerprint of the index, 'abc123'; got 'other'"),
        ({"calibration": "temperature"}, "calibration of the index, 'platt on 500 images'"),
        ({"names": NAMES[::-1]}, "label list of the index, 'apple', 'fork'"),
        ({"features": None}, "feature width of the index, '6'; got '0'"),
    ],
)
def test_predictions_of_another_recognizer_are_refused(tmp_path, change, message):
    index = Index.create(tmp_path / "index", predictions())
    before = files_of(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        index.add(replace(predictions(start=50), **change))
    assert files_of(tmp_path / "index") == before
    assert_finds(index, predictions())


@pytest.mark.parametrize("change", [{"logits": None}, {"calibration": None}])
def test_without_calibration_there_is_no_index(tmp_path, change):
    with pytest.raises(NotFitted, match=r"needs calibrated log-odds.*surelabel calibrate"):
        Index.create(tmp_path / "index", replace(predictions(), **change))
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["a", "b", "a", "c"]}, "got 'a', 'a'"),
        ({"names": ["a", "b", "", "c"]}, "not empty"),
        ({"paths": ["x.jpg"] * 30}, r"got '.*x\.jpg' more than once"),
        ({"paths": [f"{row}\udcff.jpg" for row in range(30)]}, "must be valid Unicode"),
        ({"logits": np.full((30, 4), np.nan, np.float32)}, "has log-odds nan"),
        ({"logits": np.full((30, 4), 41, np.float32)}, r"must be in \[-40, 40\]"),
        ({"scores": np.full((30, 4), np.inf, np.float32)}, "score inf for label 'apple'"),
    ],
)
def test_predictions_that_cannot_be_searched_are_refused(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        Index.create(tmp_path / "index", replace(predictions(), **change))
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("k", [0, -3, 2.5])
def test_k_must_be_a_positive_number(tmp_path, k):
    with pytest.raises(InputError, match=f"at least 1; got {k}"):
        Index.create(tmp_path / "index", predictions()).search("apple", k)


def test_unknown_labels_and_images_are_refused(tmp_path):
    index = Index.create(tmp_path / "index", predictions())
    with pytest.raises(UnknownName, match="Did you mean 'apple'"):
        index.search("appel & fork")
    with pytest.raises(UnknownName, match=r"1 of 2 are not, such as '.*/x\.jpg'"):
        index.remove([predictions().paths[0], "x.jpg"])
    assert len(index) == 30


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "holiday.jpg").write_text("content")
    with pytest.raises(DataError, match=r"got .*holiday\.jpg\. Choose another folder"):
        Index.create(tmp_path, predictions())
    assert files_of(tmp_path) == ["holiday.jpg"]
    with pytest.raises(DataError, match="Choose another folder"):
        Index.create(tmp_path / "holiday.jpg", predictions())


def test_an_index_is_replaced_by_a_whole_new_one(tmp_path):
    old = Index.create(tmp_path, predictions(30))
    new = predictions(8, seed=5, names=[*NAMES, "spoon"])
    assert_finds(Index.create(tmp_path, new), new)
    assert len(files_of(tmp_path)) == 10
    with pytest.raises(DataError, match="Another process changed"):
        old.add(predictions(1, start=99))
    assert_finds(old, predictions(30))  # what was opened stays readable
    assert_finds(Index.open(tmp_path), new)


def test_leftovers_of_a_killed_writer_do_no_harm_and_are_swept(tmp_path):
    index = Index.create(tmp_path, predictions())
    leftovers = ["logits-001.npy", "rows-001.parquet", ".order-001.npy.77.new", ".index.json.7.new"]
    for name in leftovers:
        (tmp_path / name).write_text("half")
    (tmp_path / ".scores-001.npy.0123abcd.new").mkdir()
    leftovers += [".scores-001.npy.0123abcd.new"]
    (tmp_path / "notes.txt").write_text("mine")
    assert_finds(Index.open(tmp_path), predictions())
    index.add(predictions(40, seed=1, start=30))
    assert not set(leftovers) & set(files_of(tmp_path))
    assert (tmp_path / "notes.txt").exists()
    assert len(Index.open(tmp_path)) == 70


ADDER = """
import sys
import numpy as np
from surelabel.errors import DataError
from surelabel.records import Predictions
from surelabel.retrieval import Index
print("ready", flush=True)
sys.stdin.readline()
for turn in range(20):
    logits = np.zeros((1, 1), np.float32)
    made = Predictions([f"/{sys.argv[2]}-{turn}.jpg"], ["a"], logits, logits, "by hand")
    while True:
        try:
            Index.open(sys.argv[1]).add(made)
            break
        except DataError as error:
            assert "another process" in str(error).lower(), error
"""


def test_two_processes_that_write_at_once_lose_nothing_and_a_reader_sees_no_damage(
    tmp_path, forked_programs
):
    nothing = np.zeros((0, 1), np.float32)
    Index.create(tmp_path, Predictions([], ["a"], nothing, nothing, "by hand"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    commands = [[sys.executable, "-c", ADDER, str(tmp_path), who] for who in "xy"]
    sizes = []
    with ExitStack() as stack, forked_programs():
        adders = [stack.enter_context(subprocess.Popen(line, **pipes)) for line in commands]
        for adder in adders:
            stack.callback(adder.kill)
            assert adder.stdout.readline() == b"ready\n"
        for adder in adders:
            adder.stdin.write(b"go\n")
            adder.stdin.flush()
        while any(adder.poll() is None for adder in adders):
            index = Index.open(tmp_path)
            sizes.append(len(index))
            assert len(index.search("a", 50)) == len(index)  # also after the next writer's merge
        assert [adder.returncode for adder in adders] == [0, 0]
    assert sizes == sorted(sizes)
    expected = {f"/{who}-{turn}.jpg" for who in "xy" for turn in range(20)}
    assert set(Index.open(tmp_path).paths) == expected


REWRITER = """
import sys
import numpy as np
from surelabel.retrieval import Index
from surelabel.retrieval.index_rescoring import IndexScoring
index = Index.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(8):
    index.remove(index.paths[:2])
    index.compact()
    level = np.float32(turn)
    score = lambda vectors: (vectors[:, :4].clip(-20, 20) + level,) * 2
    index.rescore(IndexScoring(index.names, "model", f"level {turn}", score))
"""


def test_readers_see_whole_states_while_another_process_compacts_and_rescores(
    tmp_path, forked_programs
):
    Index.create(tmp_path, replace(predictions(40), calibration="level -1"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    sizes, old = [], Index.open(tmp_path)
    command = [sys.executable, "-c", REWRITER, str(tmp_path)]
    with forked_programs(), subprocess.Popen(command, **pipes) as writer:
        assert writer.stdout.readline() == b"ready\n"
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
        while writer.poll() is None:
            index = Index.open(tmp_path)
            level, vectors = int(index.calibration.split()[1]), [*index.image_vectors()]
            sizes.append(len(index))
            assert len(index.paths) == len(index.search("apple & !fork", 50)) == len(index)
            if level >= 0:
                logits = np.concatenate(vectors)[:, 0].astype(float) + level
                np.testing.assert_allclose(index.probabilities("apple"), expit(logits), rtol=1e-5)
        assert writer.returncode == 0
    assert sizes == sorted(sizes, reverse=True)
    assert len(Index.open(tmp_path)) == 24
    assert_finds(old, predictions(40))


def test_a_path_that_is_no_text_cannot_be_read_twice_nor_removed(tmp_path):
    made = photographs(tmp_path, 2)
    odd = SkippedImage(f"{tmp_path}/\udcff.jpg", "truncated")
    index = Index.create(tmp_path / "index", replace(made, skipped=[odd]))
    index.add(replace(predictions(0), skipped=[odd]))
    assert Index.open(tmp_path / "index").paths == made.paths
    with pytest.raises(UnknownName, match=r"1 of 1 are not, such as .*udcff"):
        index.remove([odd.path])


def test_an_index_means_the_same_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = photographs(".", 2)
    Index.create("index", replace(made, skipped=[SkippedImage("odd.jpg", "truncated")]))
    (tmp_path / "odd.jpg").write_text("no image")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    index = Index.open("../index")
    paths = [str(tmp_path / "000.jpg"), str(tmp_path / "001.jpg")]
    assert index.paths == paths
    status = index.status(["../000.jpg", "../odd.jpg"])
    assert (status.deleted, status.changed) == ({}, {})
    assert status.not_indexed == {str(tmp_path / "odd.jpg"): "truncated"}
    index.remove(["../000.jpg"])
    assert index.paths == paths[1:]


@pytest.mark.parametrize("name", ["high", "low", "scores", "first", "last"])
def test_one_flipped_bit_is_found_by_the_first_search_that_reads_its_label(tmp_path, name):
    Index.create(tmp_path, predictions())
    file = tmp_path / f"{name}-000.npy"
    data = bytearray(file.read_bytes())
    data[-5 * 4] ^= 16  # in the last label
    file.write_bytes(data)
    index = Index.open(tmp_path)
    assert len(index.search("apple & !fork")) == 20
    with pytest.raises(DataError, match=f"{name}-000.npy is damaged: the checksum of label 3 does"):
        index.search('apple & "süße 🍎"')
    with pytest.raises(DataError, match="the checksum of label 3 does not match"):
        index.add(predictions(40, start=40))  # which would write the damaged line anew


def test_a_flipped_bit_in_the_features_is_found_before_they_are_copied(tmp_path):
    Index.create(tmp_path, predictions())
    file = tmp_path / "features-000.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    index = Index.open(tmp_path)
    assert_finds(index, predictions())
    with pytest.raises(DataError, match=r"features-000\.npy is damaged: the checksum does not"):
        index.add(predictions(40, start=40))
    assert_finds(Index.open(tmp_path), predictions())


TRUNCATER = """
import os, sys
from surelabel.errors import DataError
from surelabel.retrieval import Index
for name in ("scores", "low", "first", "rows"):
    folder = os.path.join(sys.argv[1], name)
    index = Index.open(folder)
    suffix = "parquet" if name == "rows" else "npy"
    os.truncate(os.path.join(folder, f"{name}-000.{suffix}"), 100)
    try:
        index.search("apple & !fork")
    except DataError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not truncate mapped files")
def test_a_file_that_is_truncated_while_the_index_is_open_is_an_error_and_no_signal(
    tmp_path, forked_programs
):
    names = ("scores", "low", "first", "rows")
    Index.create(tmp_path / "scores", predictions(3000))
    for name in names[1:]:
        shutil.copytree(tmp_path / "scores", tmp_path / name)
    command = [sys.executable, "-c", TRUNCATER, str(tmp_path)]
    with forked_programs():
        done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    sizes = (48128, 24128, 48128)
    for name, size, line in zip(names[:3], sizes, lines, strict=False):
        assert f"{name}-000.npy is damaged: expected {size} bytes, got 100 bytes" in line
    assert "rows-000.parquet is damaged: the file cannot be read" in lines[3]


def moved(folder, made):
    """The same predictions for files in another folder."""
    return replace(made, paths=[f"{folder}/{Path(path).name}" for path in made.paths])


def test_a_moved_collection_needs_its_new_root_only(tmp_path):
    (tmp_path / "old").mkdir()
    made = photographs(tmp_path / "old", 6)
    skipped = [SkippedImage(f"{tmp_path}/old/broken.jpg", "truncated")]
    (tmp_path / "old" / "broken.jpg").write_text("no image")
    index = Index.create(tmp_path / "index", replace(made, skipped=skipped))
    assert index.root == f"{tmp_path}/old"
    (tmp_path / "old").rename(tmp_path / "new")
    assert len(Index.open(tmp_path / "index").status().deleted) == 6
    index = Index.open(tmp_path / "index", root=tmp_path / "new")
    now = moved(tmp_path / "new", made)
    assert_finds(index, now)
    status = index.status(now.paths)
    assert (status.deleted, status.changed) == ({}, {})
    assert status.not_indexed == {f"{tmp_path}/new/broken.jpg": "truncated"}
    assert Index.open(tmp_path / "index").root == f"{tmp_path}/old"
    before = files_of(tmp_path / "index")
    index.upgrade()
    assert files_of(tmp_path / "index") == before  # no row is written again
    index = Index.open(tmp_path / "index")
    assert (index.root, index.paths) == (f"{tmp_path}/new", now.paths)
    index.add(now)
    index.remove(now.paths[:2])
    assert index.paths == now.paths[2:]


def test_an_image_outside_of_the_root_stays_where_it_is(tmp_path):
    index = Index.create(tmp_path / "index", predictions(3, folder="/in/side"), root="/in")
    index.add(predictions(2, start=3, folder="/out"))
    index = Index.open(tmp_path / "index", root="/elsewhere")
    expected = [f"/elsewhere/side/00{row}.jpg" for row in range(3)] + [
        "/out/003.jpg",
        "/out/004.jpg",
    ]
    assert index.paths == expected
    index.upgrade()
    index = Index.open(tmp_path / "index", root="/out")  # also the root of absolute paths now
    index.add(predictions(2, start=3, folder="/out"))
    assert index.paths == [f"/out/side/00{row}.jpg" for row in range(3)] + expected[3:]


def write_manifest(file, fields):
    """Write ``index.json`` with a valid checksum."""
    fields = {name: value for name, value in fields.items() if name != "checksum"}
    text = json.dumps(fields, sort_keys=True).encode()
    checksum = hashlib.blake2b(text, digest_size=16).hexdigest()
    file.write_text(json.dumps(fields | {"checksum": checksum}))


def test_a_changed_text_of_the_manifest_is_refused(tmp_path):
    Index.create(tmp_path / "index", photographs(tmp_path, 3))
    listed = tmp_path / "index" / "index.json"
    fields = json.loads(listed.read_text())
    listed.write_text(json.dumps(fields | {"root": fields["root"] + "-1"}))
    with pytest.raises(DataError, match=r"index\.json is damaged: the checksum does not match"):
        Index.open(tmp_path / "index")
    write_manifest(listed, fields)
    assert len(Index.open(tmp_path / "index")) == 3


def test_stored_paths_that_leave_the_root_are_refused_and_not_opened(tmp_path):
    index = Index.create(tmp_path / "index", photographs(tmp_path, 3))
    file, listed = tmp_path / "index" / "rows-000.parquet", tmp_path / "index" / "index.json"
    table = pq.read_table(file)
    paths = pa.array(["000.jpg", "../../etc/passwd", "002.jpg"])
    pq.write_table(table.set_column(0, table.schema.field(0), paths), file)
    fields = json.loads(listed.read_text())
    fields["shards"][0]["files"][file.name] = file.stat().st_size
    write_manifest(listed, fields)
    index = Index.open(tmp_path / "index", root="/elsewhere")
    for read in (lambda: index.search("apple"), index.status, lambda: index.paths):
        with pytest.raises(DataError, match=r"inside the root of the index; got '\.\./\.\./etc"):
            read()
    write_manifest(listed, fields | {"skipped": {"../secret": "x"}})
    with pytest.raises(DataError, match=r"inside the root of the index; got '\.\./secret'"):
        Index.open(tmp_path / "index", root="/elsewhere").upgrade()


@pytest.fixture
def old_index(tmp_path):
    """Copy of an index of surelabel 0.1.0, which has absolute paths and fewer checksums."""
    return shutil.copytree(SAVED_INDEX, tmp_path / "index")


@pytest.mark.parametrize("key", ["pictures", "images"])  # of 0.1.0 and of later versions
def test_an_index_of_version_1_is_upgraded_with_the_same_hits(old_index, key):
    listed = old_index / "index.json"
    fields = json.loads(listed.read_text())
    listed.write_text(json.dumps(fields | {key: fields.pop("pictures")}))
    index, queries = Index.open(old_index), ("lion & !car", "cow", "!airplane & coffee")
    hits, paths = [index.search(query, 40) for query in queries], index.paths
    features = np.load(old_index / "features-000.npy")
    assert index.root == "/collection/pictures"
    index.remove(paths[:1])
    assert json.loads(listed.read_text())["version"] == 2
    assert json.loads(listed.read_text())["root"] == "/collection/pictures"
    index = Index.open(old_index)
    assert index.paths == paths[1:]
    for query, before in zip(queries, hits, strict=True):
        assert index.search(query, 40) == [hit for hit in before if hit.path != paths[0]]
    assert len(np.load(old_index / "checksums-001.npy")) == 5
    assert np.array_equal(np.load(old_index / "features-001.npy"), features[1:])
    stored = pq.read_table(old_index / "rows-001.parquet")["path"].to_pylist()
    assert stored == [f"{row:05}.jpg" for row in range(1, 40)]


def test_an_index_of_version_1_can_be_opened_with_a_new_root_and_keeps_it(old_index):
    paths = [path.replace("/collection/pictures/", "/new/") for path in Index.open(old_index).paths]
    index = Index.open(old_index, root="/new")
    assert (index.root, index.paths) == ("/new", paths)
    index.upgrade()
    assert Index.open(old_index).paths == paths


def test_a_damaged_index_of_version_1_is_not_upgraded(old_index):
    file = old_index / "logits-000.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    before = (old_index / "index.json").read_bytes()
    with pytest.raises(DataError, match=r"logits-000\.npy is damaged: the checksum of label 5"):
        Index.open(old_index).upgrade()
    assert (old_index / "index.json").read_bytes() == before


def test_an_upgrade_of_a_current_index_deletes_leftovers_only(tmp_path):
    index = Index.create(tmp_path, predictions())
    before, content = files_of(tmp_path), (tmp_path / "index.json").read_bytes()
    (tmp_path / "logits-001.npy").write_text("half")
    (tmp_path / ".logits-002.npy.lock").write_text("")
    index.upgrade()
    assert files_of(tmp_path) == before
    assert (tmp_path / "index.json").read_bytes() == content


def test_an_image_that_is_deleted_before_it_is_indexed_is_deleted_and_can_be_found(tmp_path):
    made = photographs(tmp_path, 3)
    hashes = [content_hash_for_cache(path) for path in made.paths]
    os.unlink(made.paths[1])
    index = Index.create(tmp_path / "index", replace(made, hashes=hashes))
    os.unlink(made.paths[2])
    assert list(index.status().deleted) == made.paths[1:]
    assert_finds(index, made)


@pytest.mark.parametrize(
    "name",
    [
        "checksums-000.npy",
        "features-000.npy",
        "first-000.npy",
        "high-000.npy",
        "last-000.npy",
        "low-000.npy",
        "rows-000.parquet",
        "scores-000.npy",
    ],
)
def test_a_damaged_or_missing_file_is_named(tmp_path, name):
    Index.create(tmp_path, predictions())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-7])
    with pytest.raises(DataError, match=f"{name} is damaged: expected {len(whole)} bytes"):
        Index.open(tmp_path)
    (tmp_path / name).write_bytes(bytes(len(whole)))
    with pytest.raises(DataError, match=f"{name} is damaged: the file cannot be read"):
        Index.open(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"{name} is damaged: .* got no file.*Restore the file"):
        Index.open(tmp_path)


def test_arrays_of_another_index_are_refused(tmp_path):
    Index.create(tmp_path / "one", predictions(10))
    Index.create(tmp_path / "two", predictions(10, names=["a", "b"]))
    os.replace(tmp_path / "two" / "index.json", tmp_path / "one" / "index.json")
    with pytest.raises(DataError, match=r"-000\.npy is damaged: expected"):
        Index.open(tmp_path / "one")


def test_no_index_a_newer_one_and_a_broken_list_are_distinguished(tmp_path):
    with pytest.raises(DataError, match="must be the folder of an index"):
        Index.open(tmp_path / "nowhere")
    Index.create(tmp_path, predictions())
    listed = tmp_path / "index.json"
    fields = json.loads(listed.read_text())
    listed.write_text(json.dumps(fields | {"version": 3}))
    with pytest.raises(DataError, match="must have a format version up to 2; got version 3"):
        Index.open(tmp_path)
    for broken in (
        "",
        "[]",
        '{"version": 1}',
        '{"version": 0}',
        listed.read_text()[:-20],
        '{"version": "x"}',
    ):
        listed.write_text(broken)
        with pytest.raises(DataError, match=r"index\.json is damaged.*build the index again"):
            Index.open(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        Index.create(tmp_path / "file" / "index", predictions())


def test_the_name_of_the_recognizer_stays_until_another_is_recorded(tmp_path):
    logits = np.zeros((2, 2), np.float32)
    named = IndexRecognizer("tiny-vit", ("x", "y|z"))
    made = Predictions(["/a.jpg", "/b.jpg"], ["x", "y"], logits, logits, "by hand")
    index = Index.create(tmp_path / "index", made, recognizer=named)
    index.remove(["/a.jpg"])
    index.add(replace(made, paths=["/c.jpg", "/d.jpg"]))
    index.upgrade()
    assert Index.open(tmp_path / "index").recognizer == index.recognizer == named
    moved = replace(named, model="/moved")
    index.upgrade(moved)
    assert Index.open(tmp_path / "index").recognizer == moved
    assert Index.open(tmp_path / "index").paths == ["/b.jpg", "/c.jpg", "/d.jpg"]


def test_vectors_and_paths_of_rows_are_those_of_the_rows_that_were_not_removed(tmp_path):
    logits = np.zeros((40, 1), np.float32)
    vectors = np.arange(80, dtype=np.float16).reshape(40, 2)
    paths = [f"/{row}.jpg" for row in range(40)]
    made = Predictions(paths, ["x"], logits, logits, "by hand", features=vectors)
    index = Index.create(tmp_path / "index", made)
    index.add(replace(made, paths=[f"/new{path}" for path in paths], features=vectors + 80))
    index.remove(["/0.jpg", "/39.jpg", "/new/3.jpg"])
    np.testing.assert_array_equal(
        np.concatenate(list(index.image_vectors())),
        np.delete(np.concatenate([vectors, vectors + 80]), [0, 39, 43], axis=0),
    )
    rows = [76, 0, 37, 38, 40, 41, 5]
    assert index.paths_of_rows(rows) == [index.paths[row] for row in rows]
    assert index.vector_width == 2


def test_an_index_of_0_1_0_records_no_recognizer_and_can_record_one(tmp_path):
    shutil.copytree(SAVED_INDEX, tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert index.recognizer is None
    expected = [(hit.path, hit.probability) for hit in index.search(index.names[0])]
    named = IndexRecognizer("tiny-vit", tuple(index.names))
    index.upgrade(named)
    opened = Index.open(tmp_path / "index")
    assert opened.recognizer == named
    assert [(hit.path, hit.probability) for hit in opened.search(index.names[0])] == expected


def test_a_compacted_index_has_one_shard_without_removed_rows_and_the_same_hits(tmp_path):
    index = Index.create(tmp_path, predictions(40))
    for block in range(3):
        index.add(predictions(3, seed=1 + block, start=40 + 3 * block))
    index.remove([f"/nowhere/{row:03}.jpg" for row in (0, 5, 39, 45)])
    reader, before = Index.open(tmp_path), (index.paths, index.search("apple & !fork", None))
    vectors = np.concatenate([*index.image_vectors()])
    assert len(list(tmp_path.glob("rows-*.parquet"))) > 1
    index.compact()
    for found in (index, Index.open(tmp_path), reader):
        assert (found.paths, found.search("apple & !fork", None)) == before
    assert np.array_equal(np.concatenate([*index.image_vectors()]), vectors)
    assert index.description.n_rows == len(index) == 45
    assert len(list(tmp_path.glob("rows-*.parquet"))) == 1
    files = files_of(tmp_path)
    index.compact()  # nothing left to do
    assert files_of(tmp_path) == files
    index.remove(index.paths)
    index.compact()
    assert (len(index), index.search("apple")) == (0, [])
    index.add(predictions(2))
    assert len(Index.open(tmp_path)) == 2


def test_a_compacted_index_of_version_1_has_dates_and_sizes(old_index, tmp_path):
    paths = Index.open(old_index).paths
    (tmp_path / "pictures").mkdir()
    Image.new("L", (7, 9)).save(tmp_path / "pictures" / os.path.basename(paths[1]), "PNG")
    file = old_index / "rows-000.parquet"
    table, listed = pq.read_table(file), old_index / "index.json"
    hashes = table["hash"].to_pylist()
    hashes[1] = content_hash_for_cache(str(tmp_path / "pictures" / os.path.basename(paths[1])))
    pq.write_table(table.set_column(3, table.schema.field(3), pa.array(hashes)), file)
    fields = json.loads(listed.read_text())
    fields["shards"][0]["files"][file.name] = file.stat().st_size
    listed.write_text(json.dumps(fields))
    index = Index.open(old_index, root=tmp_path / "pictures")
    index.compact()
    rows = pq.read_table(old_index / "rows-001.parquet")
    assert rows["width"].to_pylist()[:3] == [None, 7, None]
    assert rows["date"].to_pylist()[1] is not None
    assert rows["date"].null_count == 39
