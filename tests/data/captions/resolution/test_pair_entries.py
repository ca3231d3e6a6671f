import pytest

from surelabel.data.captions.resolution.caption_entries import CaptionEntry
from surelabel.data.captions.resolution.pair_entries import resolve_pairs
from surelabel.errors import DataError
from surelabel.records import Relevance


def resolve(folder, *triples, **options):
    entries = [CaptionEntry(f"line {n}", *triple) for n, triple in enumerate(triples, start=1)]
    for entry in entries:
        (folder / str(entry.image)).touch()
    return resolve_pairs(folder / "x.csv", entries, images_root=None, **options)


def test_repeated_captions_of_an_image_are_used_once_and_counted(tmp_path):
    relevance = Relevance([0, 0, 0, 1, 1], [0, 1, 2, 2, 3], [1, 1, 0.5, 1, 1])
    triples = [("a", "a dog"), ("a", " a  dog "), ("b", "a dog"), ("b", "a dog"), ("b", "A dog")]
    expected = r"Repeated captions of the same image are ignored: 2 of 5 captions in .*x\.csv"
    with pytest.warns(UserWarning, match=expected):
        pairs = resolve(tmp_path, *triples, relevance=relevance)
    assert pairs.captions == ["a dog", "a dog", "A dog"]
    assert pairs.image_rows.tolist() == [0, 1, 1]
    assert pairs.relevance.caption_rows.tolist() == [0, 1, 1]
    assert pairs.relevance.grades.tolist() == [1, 0.5, 1]


def test_two_spellings_of_a_path_with_the_same_root_are_one_image(tmp_path):
    pairs = resolve(tmp_path, ("a", "x"), (str(tmp_path / "a"), "y"))
    assert (pairs.paths, pairs.image_rows.tolist()) == ([str(tmp_path / "a")], [0, 0])


def test_images_that_are_listed_without_a_caption_are_named(tmp_path):
    expected = r"without a caption are ignored: 2 in .*x\.csv, such as '.*b', '.*c'\."
    with pytest.warns(UserWarning, match=expected):
        resolve(tmp_path, ("a", "x"), listed_images=["c", "a", "b", "b"])


def test_a_file_without_captions_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least one caption; got none"):
        resolve(tmp_path)
