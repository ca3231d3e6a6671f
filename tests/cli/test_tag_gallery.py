import json

import numpy as np

from surelabel.cli.tag_gallery import TagGallery, describe_tag_gallery
from surelabel.cli.tag_options import TagSelection
from surelabel.recognizer import Recognizer
from surelabel.records import Predictions, SkippedImage


def test_a_gallery_has_the_labels_that_are_printed(home, run):
    (home / "images" / "broken.jpg").write_bytes(b"")
    options = ("--model", "recognizer", "--threshold", "0.3", "--gallery", "tags.html")
    done = run("tag", "images", *options, "--json")
    page = (home / "tags.html").read_text()
    shown = [tag["label"] for image in json.loads(done.out) for tag in image["tags"]]
    assert done.code == 0
    assert page.count("--share:") - page.partition("</style>")[0].count("--share:") == len(shown)
    for name in set(shown):
        assert page.count(f"<bdi>{name}</bdi>") == shown.count(name)
    assert page.count("<img") == 24
    assert "This image cannot be read: empty file." in page
    assert "<h1>Labels of 25 images</h1>" in page
    assert "All labels with a probability of at least 0.3 are shown for each image." in page
    assert "Calibration: beta (selected by log loss) on 24 labelled images.</p>" in page
    assert "Written: tags.html" in done.err


def test_a_gallery_beside_a_file_of_predictions_needs_no_terminal(home, run):
    options = ("--model", "recognizer", "--out", "tags.csv", "--gallery", "tags.html")
    assert run("tag", "images", *options).out == ""
    assert (home / "tags.html").read_text().count("<img") == 24


def test_a_gallery_says_that_a_calibration_is_not_verified(home, run, random_checkpoint):
    model = f"local-dir:{random_checkpoint}"
    options = ("--labels", "dog, cat", "--model", model, "--gallery", "tags.html")
    assert run("tag", "images", *options).code == 0
    page = (home / "tags.html").read_text()
    assert "At most 5 labels are shown for each image." in page
    assert "The scores are not probabilities." in page
    done = run("tag", "images", *options, "--calibrate-unlabelled", "--uncertainty", KIND)
    assert done.code == 0
    page = (home / "tags.html").read_text()
    assert "on pseudo-labels of 24 images without labels. Not verified: no labels" in page


def test_an_option_of_the_gallery_is_checked_before_an_image_is_read(home, run):
    done = run("tag", "nowhere", "--open")
    assert (done.code, "--open requires --gallery" in done.err) == (2, True)


def test_thresholds_of_labels_are_described():
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "bear"])
    selection = TagSelection(np.array([0.2, 0.3]), None)
    sentence = describe_tag_gallery(recognizer, selection)[0]
    assert "with a probability at or above the threshold of the label" in sentence


def test_images_beyond_the_limit_are_counted_only():
    gallery = TagGallery()
    scores = np.ones((700, 1), np.float32)
    paths = [f"{row}.jpg" for row in range(700)]
    skipped = [SkippedImage("broken.jpg", "empty file")]
    blocks = [Predictions(paths, ["lion"], scores, skipped=skipped) for _ in range(2)]
    assert list(gallery.collect_blocks(blocks, TagSelection(None, 1))) == blocks
    assert (gallery.n_images, len(gallery.images)) == (1402, 1000)
    assert gallery.images[700].reason == "empty file"


KIND = "bernoulli_variance"
