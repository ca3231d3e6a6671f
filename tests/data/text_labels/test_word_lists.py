import pytest

from surelabel.data.label_names import parse_label_names
from surelabel.data.text_labels.word_lists import WordListEntry, read_word_list
from surelabel.data.vocabularies import VOCABULARIES
from surelabel.errors import DataError

HEADER = "label\tsynonyms\tkinds\texceptions\n"
VOC_OF_COCO = {
    "aeroplane": "airplane",
    "diningtable": "dining table",
    "motorbike": "motorcycle",
    "pottedplant": "potted plant",
    "sofa": "couch",
    "tvmonitor": "tv",
}


def read(folder, text):
    (folder / "words.tsv").write_text(text)
    return read_word_list(folder / "words.tsv")


def test_a_line_is_found_by_its_label_and_by_its_synonyms_only(tmp_path):
    text = HEADER + "dog\tcanine|Pet-dog\tpuppy|pup\thot dog\n\ncat\n"
    dog = WordListEntry(("dog", "canine", "Pet-dog"), ("puppy", "pup"), ("hot dog",))
    assert read(tmp_path, text) == {
        ("dog",): dog,
        ("canine",): dog,
        ("pet", "dog"): dog,
        ("cat",): WordListEntry(("cat",), (), ()),
    }


def test_a_list_without_lines_is_empty(tmp_path):
    assert read(tmp_path, HEADER) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must contain .* kinds, exceptions, separated by tabs; got ''"),
        ("dog\tpuppy\n", "the first line must contain the columns label, synonyms"),
        (HEADER + "\tpuppy\n", "line 2: expected a label and at most 3 more columns"),
        (HEADER + "a\tb\tc\td\te\n", "line 2: expected a label and at most 3 more columns"),
        (HEADER + "dog\nhound\tDOG\n", "line 3: a label .* one line only; got 'dog' again"),
        (HEADER + "hot-dog\nhot dog\n", "line 3: a label .* one line only; got 'hot dog' again"),
        (
            HEADER + "dog\t\tpup||puppy\n",
            "line 2: every spelling must contain letters or digits; got ''",
        ),
        (HEADER + "dog\t\t🐶\n", "line 2: every spelling must contain letters or digits; got '🐶'"),
        (HEADER + "|dog\n", "line 2: every spelling must contain letters or digits; got ''"),
        (HEADER + "dog\0\n", "must be text in UTF-8; got: a NUL byte"),
    ],
)
def test_a_line_that_is_no_entry_is_refused_on_one_line(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"words\.tsv.*{message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_the_list_of_the_package_has_all_categories_of_coco_and_the_names_of_voc():
    entries = read_word_list(None)
    coco = VOCABULARIES["coco-48-17"]
    for name in (*coco.seen, *coco.unseen, *coco.unused):
        assert entries[tuple(name.split())].spellings[0] == name
    for voc, name in VOC_OF_COCO.items():
        assert voc in entries[tuple(name.split())].spellings
    assert {"man", "woman", "child", "boy", "girl"} < set(entries[("person",)].kinds)
    assert ("man",) not in entries


def test_the_synonyms_of_the_package_are_distinct_labels():
    entries = {entry.spellings: entry for entry in read_word_list(None).values()}
    assert len(parse_label_names(["|".join(spellings) for spellings in entries])[0]) == 80
    for entry in entries.values():
        assert not set(entry.spellings) & {*entry.kinds, *entry.exceptions}
        assert not set(entry.kinds) & set(entry.exceptions)
