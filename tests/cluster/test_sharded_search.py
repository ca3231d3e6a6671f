"""Indexes in the actors of a local Ray cluster, which a command starts with a time limit."""

import json
import subprocess
import sys

import numpy as np
import pytest

import surelabel as sl
from surelabel.records import Predictions
from surelabel.retrieval import Index

pytest.importorskip("ray")

from surelabel.cluster.sharded_search import IndexHolder

NAMES = ["apple", "fork", "knife"]
TIME_LIMIT = 240  # seconds


def write_indexes(folder):
    """Write one index of 30 images with many ties, and the same rows in three indexes."""
    random = np.random.default_rng(0)
    logits, scores = random.integers(-2, 3, (2, 30, 3)).astype(np.float32)
    paths = [f"/nowhere/{row:02}.jpg" for row in range(30)]
    parts = {"one": range(30), "a": range(7), "b": range(7, 8), "c": range(8, 30)}
    for name, rows in parts.items():
        made = Predictions(
            [paths[row] for row in rows], NAMES, scores[rows], logits[rows], "platt", "abc"
        )
        Index.create(folder / name, made, root="/nowhere")


def test_actors_give_the_hits_of_one_index_and_errors_are_one_line(tmp_path):
    write_indexes(tmp_path)
    code = """
import json, sys
from surelabel.cluster.sharded_search import open_cluster_index
from surelabel.errors import SurelabelError

with open_cluster_index(["a", "b", "c"]) as index:
    hits = index.search("fork & !knife", 12)
    lines = []
    for query, folders in (("fokr", None), ("fork", ["a", "none"]), ("fork", ["a", "a"]),
                           ("fork", ["a", "one"])):
        try:
            if folders is None:
                index.search(query)
            else:
                with open_cluster_index(folders) as other:
                    other.search(query)
        except SurelabelError as error:
            lines.append([type(error).__name__, str(error)])
print(json.dumps([[vars(hit) for hit in hits], lines, len(index)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    assert done.returncode == 0, done.stderr
    hits, errors, n_images = json.loads(done.stdout)
    assert hits == [vars(hit) for hit in Index.open(tmp_path / "one").search("fork & !knife", 12)]
    assert n_images == 30
    assert [name for name, _ in errors] == ["UnknownName", "DataError", "InputError", "DataError"]
    assert "00.jpg is in" in errors[3][1]
    assert "one of 7 such images" in errors[3][1]
    assert all("\n" not in text for _, text in errors)


def test_an_actor_returns_errors_and_descriptions(tmp_path):
    write_indexes(tmp_path)
    assert "none" in str(IndexHolder(str(tmp_path / "none"), None).call("description"))
    description = IndexHolder(str(tmp_path / "a"), None).call("description")
    assert (description.n_images, description.names) == (7, tuple(NAMES))


def test_actors_give_the_hits_of_one_index_for_every_form_of_query(tmp_path):
    images = sl.collection("scenes-80", split="test").take(range(30))
    recognizer = sl.Recognizer.zero_shot("tiny-vit", ["lion", "guitar", "rocket"])
    predictions = recognizer.predict(images)
    sl.Index.create(tmp_path / "one", predictions, root="/")
    for folder, start in (("a", 0), ("b", 11), ("c", 22)):
        part = recognizer.predict(images.take(range(start, min(start + 11, 30))))
        sl.Index.create(tmp_path / folder, part, root="/")
    queries = [
        "(lion | guitar) & !rocket",
        '~"a lion" | ~"a guitar" & path:*/0000?.jpg',
        f"like:{images.paths[3]}#9",
        f"like:{images.paths[3]}#9 & lion<0.9 & width>10",
        "(lion & date>1990) | (guitar & !path:*3*)",
    ]
    (tmp_path / "queries.json").write_text(json.dumps(queries))
    code = """
import json
import surelabel as sl
from surelabel.cluster.sharded_search import open_cluster_index

encoder = sl.query_encoder(sl.Index.open("a"), "tiny-vit", device="cpu")
with open_cluster_index(["a", "b", "c"]) as index:
    for query in json.load(open("queries.json")):
        hits = index.search(query, 8, encoder=encoder)
        steps = index.explain(query, 8, encoder=encoder)
        print(json.dumps([[hit.as_dict() for hit in hits], len(steps)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    assert done.returncode == 0, done.stderr
    one = sl.Index.open(tmp_path / "one")
    encoder = sl.query_encoder(one, "tiny-vit")
    lines = done.stdout.splitlines()[-len(queries) :]
    for query, line in zip(queries, lines, strict=True):
        found, n_steps = json.loads(line)
        expected = [hit.as_dict() for hit in one.search(query, 8, encoder=encoder)]
        assert [hit["path"] for hit in found] == [hit["path"] for hit in expected]
        for hit, other in zip(found, expected, strict=True):
            assert hit["probability"] == pytest.approx(other["probability"], rel=1e-5)
            assert hit["terms"] == pytest.approx(other["terms"], rel=1e-5)
            assert hit.get("similarity") == pytest.approx(other.get("similarity"), abs=1e-6)
        assert n_steps >= 1
