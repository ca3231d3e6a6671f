"""Indexes in the actors of a local Ray cluster."""

import numpy as np
import pytest

import surelabel as sl
from surelabel.records import Predictions
from surelabel.retrieval import Index

pytest.importorskip("ray")

from surelabel.cluster import sharded_search
from surelabel.cluster.sharded_search import IndexHolder, open_cluster_index
from surelabel.errors import DataError, InputError, SurelabelError, UnknownName

NAMES = ["apple", "fork", "knife"]


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


def test_actors_give_the_hits_of_one_index_and_errors_are_one_line(cluster, tmp_path, monkeypatch):
    write_indexes(tmp_path)
    monkeypatch.chdir(tmp_path)
    addresses, connect = [], sharded_search.connect_to_ray

    def connect_and_record(address, **more):
        addresses.append(address)
        return connect(address, **more)

    monkeypatch.setattr(sharded_search, "connect_to_ray", connect_and_record)
    with open_cluster_index(["a", "b", "c"]) as index:
        hits = index.search("fork & !knife", 12)
        n_images = len(index)
        errors = [error_of(lambda: index.search("fokr"))]
        for folders in (["a", "none"], ["a", "a"], ["a", "one"]):
            errors.append(error_of(lambda folders=folders: search_fork(folders)))
    assert addresses == ["local"] * 4
    expected = Index.open(tmp_path / "one").search("fork & !knife", 12)
    assert [vars(hit) for hit in hits] == [vars(hit) for hit in expected]
    assert n_images == 30
    assert [type(error) for error in errors] == [UnknownName, DataError, InputError, DataError]
    assert "/nowhere/00.jpg is in " in str(errors[3])
    assert "(7 common images in total)" in str(errors[3])


def error_of(search):
    with pytest.raises(SurelabelError, match=r"\A[^\n]+\Z") as error:
        search()
    return error.value


def search_fork(folders):
    with open_cluster_index(folders) as index:
        index.search("fork")


def test_an_actor_returns_errors_and_descriptions(tmp_path):
    write_indexes(tmp_path)
    assert "none" in str(IndexHolder(str(tmp_path / "none"), None).call("description"))
    description = IndexHolder(str(tmp_path / "a"), None).call("description")
    assert (description.n_images, description.names) == (7, tuple(NAMES))


def test_actors_give_the_hits_of_one_index_for_every_form_of_query(cluster, tmp_path, monkeypatch):
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
    monkeypatch.chdir(tmp_path)
    one = sl.Index.open("one")
    encoder = sl.query_encoder(one, "tiny-vit", device="cpu")
    with open_cluster_index(["a", "b", "c"]) as index:
        answers = [
            (index.search(query, 8, encoder=encoder), index.explain(query, 8, encoder=encoder))
            for query in queries
        ]
    for query, (hits, steps) in zip(queries, answers, strict=True):
        found = [hit.as_dict() for hit in hits]
        expected = [hit.as_dict() for hit in one.search(query, 8, encoder=encoder)]
        assert [hit["path"] for hit in found] == [hit["path"] for hit in expected]
        for hit, other in zip(found, expected, strict=True):
            assert hit["probability"] == pytest.approx(other["probability"], rel=1e-5)
            assert hit["terms"] == pytest.approx(other["terms"], rel=1e-5)
            assert hit.get("similarity") == pytest.approx(other.get("similarity"), abs=1e-6)
        assert len(steps) >= 1
