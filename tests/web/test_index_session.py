from concurrent.futures import ThreadPoolExecutor

import pytest

from surelabel.errors import DataError, UnknownName
from surelabel.retrieval import Index
from surelabel.web.index_session import IndexSession


@pytest.fixture
def folder(tmp_path, write_index):
    """Write an index of three images without files."""
    write_index(tmp_path / "index", [tmp_path / f"{name}.jpg" for name in "abc"], tmp_path)
    return tmp_path


def open_session(folder):
    return IndexSession(str(folder / "index"), root=None, load_encoder=lambda index: None)


def identifiers(session, query="lion"):
    revision = session.current()
    return revision.identifiers_of_hits(revision.index.search(query))


def test_an_identifier_finds_its_image_in_several_shards_with_removed_images(
    folder, write_index, tmp_path
):
    other = write_index(
        tmp_path / "other", [tmp_path / f"{name}.jpg" for name in "defg"], tmp_path, seed=1
    )
    index = Index.open(folder / "index")
    index.remove([str(tmp_path / "a.jpg")])
    session = open_session(folder)
    revision = session.current()
    hits = revision.index.search("lion")
    found = [revision.find_image(identifier) for identifier in identifiers(session)]
    assert [image.path for image in found] == [hit.path for hit in hits]
    assert len(other) == 4
    for image, hit in zip(found, hits, strict=True):
        assert revision.label_probabilities(image)[0] == pytest.approx(hit.terms["lion"], rel=1e-6)


def test_a_removed_image_has_no_identifier(folder, tmp_path):
    session = open_session(folder)
    of_removed = identifiers(session, "lion & path:a.jpg")[0]
    Index.open(folder / "index").remove([str(tmp_path / "a.jpg")])
    with pytest.raises(UnknownName, match="is not in the index, or the index was replaced"):
        session.current().find_image(of_removed)


def test_a_replaced_index_is_opened_again(folder, write_index, tmp_path):
    session = open_session(folder)
    old, first = session.current(), identifiers(session)
    write_index(folder / "index", [tmp_path / "x.jpg"], tmp_path)
    assert session.current() is not old
    assert len(session.current().index) == 1
    for identifier in first:
        with pytest.raises(UnknownName, match="the index was replaced"):
            session.current().find_image(identifier)


def test_an_unchanged_index_stays_open(folder):
    session = open_session(folder)
    assert session.current() is session.current()


def test_the_last_revision_stays_if_the_next_is_damaged(folder, write_index, tmp_path):
    session = open_session(folder)
    old = session.current()
    content = (folder / "index" / "index.json").read_text()
    (folder / "index" / "index.json").write_text("{}")
    assert session.current() is old
    assert "index.json is damaged" in session.error
    (folder / "index" / "index.json").write_text(content)
    assert session.current() is old
    assert session.error is None
    assert len(old.index.search("lion")) == 3


def test_an_empty_index_is_refused(folder, tmp_path):
    Index.open(folder / "index").remove([str(tmp_path / f"{name}.jpg") for name in "abc"])
    with pytest.raises(DataError, match="must contain images; got an empty index"):
        open_session(folder)


def test_threads_that_search_at_the_same_time_have_the_results_of_one_thread(write_index, tmp_path):
    paths = [tmp_path / f"{row % 7}/{row}.jpg" for row in range(3000)]
    write_index(tmp_path / "index", paths, tmp_path)
    queries = ["lion", "lion & !coffee", "coffee | guitar", "lion & path:3/*", "guitar & path:*7*"]
    expected = [Index.open(tmp_path / "index").search(query, k=50) for query in queries]

    def search(number):
        session, place = sessions[number % 4], number % len(queries)
        hits = session.current().index.search(queries[place], k=50)
        return list(hits) == list(expected[place])

    sessions = [open_session(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(search, range(200)))
