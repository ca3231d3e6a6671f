import json
from pathlib import Path

import pytest

from surelabel.data import collection, read_scenes
from surelabel.data.captions import scenes
from surelabel.data.text_labels import label_captions
from surelabel.errors import DataError

LINE = '{"path": "images/0.jpg", "captions": [{"text": "a dog"}, {"text": "a  cat"}]}'


def read(folder, text, **options):
    path = folder / "scenes.jsonl"
    path.write_text(text)
    return scenes.read(path, **options)


def test_every_caption_has_the_image_of_its_line(tmp_path):
    captions = read(tmp_path, LINE + "\n\n")
    assert captions.texts == ["a dog", "a cat"]
    assert captions.paths == [str(tmp_path / "images/0.jpg")] * 2
    assert read(tmp_path, LINE, images_root="r").paths == ["r/images/0.jpg"] * 2


def test_captions_of_the_collection_mention_what_its_annotations_say():
    test = collection("scenes-80", split="test")
    folder = Path(test.paths[0]).parents[1]
    captions = scenes.read(folder / "scenes.jsonl")
    annotated = [
        (path, caption)
        for path, of_image in zip(test.paths, read_scenes(folder).captions, strict=True)
        for caption in of_image
    ]
    assert list(captions.texts) == [caption.text for _, caption in annotated]
    assert list(captions.paths) == [path for path, _ in annotated]
    texts = label_captions(captions, test.names)
    assert texts.n_dropped == 0
    for row, (_, caption) in zip(texts.targets, annotated, strict=True):
        assert set(row.nonzero()[0].tolist()) == set(caption.mentions)


def scene_line(image, labels, *captions):
    entries = [{"text": text, "mentions": mentions} for text, mentions in captions]
    return json.dumps({"path": image, "labels": labels, "captions": entries}) + "\n"


def read_pairs(folder, text, *names):
    (folder / "scenes.jsonl").write_text(text)
    for name in names:
        (folder / name).touch()
    return scenes.read_pairs(folder / "scenes.jsonl")


def test_the_relevance_of_pairs_is_the_fraction_of_mentioned_objects_in_the_image(tmp_path):
    text = scene_line("0.jpg", ["dog", "cat"], ("a dog", ["dog"]), ("both", ["dog", "cat"]))
    text += scene_line("1.jpg", ["cat"], ("a cat", ["cat"]))
    pairs = read_pairs(tmp_path, text, "0.jpg", "1.jpg")
    assert pairs.image_rows.tolist() == [0, 0, 1]
    relevance = pairs.relevance
    triples = zip(relevance.image_rows, relevance.caption_rows, relevance.grades, strict=True)
    assert list(triples) == [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 1, 0.5), (1, 2, 1)]


def test_lines_without_labels_or_mentions_give_pairs_without_relevance(tmp_path):
    pairs = read_pairs(tmp_path, LINE.replace("images/", ""), "0.jpg")
    assert (pairs.captions, pairs.relevance) == (["a dog", "a cat"], None)


def test_a_scene_without_captions_is_counted_and_the_others_keep_their_relevance(tmp_path):
    text = scene_line("0.jpg", ["dog"]) + scene_line("1.jpg", ["cat"], ("a cat", ["cat"]))
    with pytest.warns(UserWarning, match=r"without a caption are ignored: 1 in .*0\.jpg'"):
        pairs = read_pairs(tmp_path, text, "1.jpg")
    assert (pairs.relevance.image_rows, pairs.relevance.grades) == ([0], [1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            scene_line("0.jpg", ["dog"], ("a dog", ["dog"])) + LINE,
            "labels and mentions in all lines or in none; they are missing in 1 of",
        ),
        (
            scene_line("0.jpg", ["dog"], ("a dog", ["dog"])) * 2,
            "in only one line; got 1 images in 2 lines",
        ),
        (scene_line("0.jpg", "dog", ("a dog", ["dog"])), "expected a list of labels; got 'dog'"),
        (scene_line("0.jpg", ["dog"], ("a dog", [3])), r"expected a list of labels; got \[3\]"),
        (scene_line("0.jpg", ["dog"], ("a dog", ["dog"])), "must exist; 1 of 1 files are missing"),
    ],
)
def test_pairs_with_invalid_labels_or_missing_images_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one caption; got none"),
        (LINE + "\n{", r"line 2: expected \{\"path\": .* got '\{' \(Expecting"),
        ('{"path": "a.jpg", "labels": ["dog"]}', r"line 1: expected .* \('captions'\)"),
        ('{"path": "a.jpg", "captions": ["a dog"]}', "line 1: expected .*string indices"),
        ("[" * 100_000, "line 1: expected .*nested too deeply"),
        (LINE.replace("a dog", ""), "line 1: expected a caption; got ''"),
        (LINE.replace("images/0.jpg", ""), "line 1: every caption must have an image path"),
        (LINE.replace('"images/0.jpg"', "3"), "line 1: every caption must have .* got 3"),
    ],
)
def test_a_file_that_is_no_list_of_scenes_is_refused_on_one_line(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"scenes\.jsonl.*{message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
