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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one caption; got none"),
        (LINE + "\n{", r"line 2: expected \{\"path\": .* got '\{' \(Expecting"),
        ('{"path": "a.jpg", "labels": ["dog"]}', r"line 1: expected .* \('captions'\)"),
        ('{"path": "a.jpg", "captions": ["a dog"]}', "line 1: expected .*string indices"),
        ("[" * 100_000, "line 1: expected .*nested too deeply"),
        (LINE.replace("a dog", ""), "line 1: expected a caption; got ''"),
        (LINE.replace("images/0.jpg", ""), "line 1: every caption must have the path"),
        (LINE.replace('"images/0.jpg"', "3"), "line 1: every caption must have .* got 3"),
    ],
)
def test_a_file_that_is_no_list_of_scenes_is_refused_on_one_line(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"scenes\.jsonl.*{message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
