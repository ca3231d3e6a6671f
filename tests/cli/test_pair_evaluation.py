import json

import numpy as np
import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.data import collection
from surelabel.data.bundled_collections import bundled_collection_folder


@pytest.fixture(scope="module")
def captions(tmp_path_factory):
    """JSON lines with ids of six images of the validation split and their captions."""
    folder = tmp_path_factory.mktemp("captions")
    pairs = collection("scenes-80", split="validation", captions=True).take(range(6))
    paths = pairs.paths
    lines = [
        {"image": paths[image], "image_id": 100 + int(image), "caption": text, "caption_id": row}
        for row, (image, text) in enumerate(zip(pairs.image_rows, pairs.captions, strict=True))
    ]
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def surelabel(*arguments, fails=False):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert (result.exit_code != 0) == fails, result.output
    return result


def test_a_caption_file_is_evaluated_by_retrieval(captions):
    value = json.loads(surelabel("evaluate", "tiny-vit", captions, "--json").stdout)
    assert value["images"] == 6
    assert value["image_to_caption"]["metrics"]["recall_at_10"] > 0.5
    text = surelabel("evaluate", "tiny-vit", captions).stdout
    assert "RSUM, the sum of R@1, R@5 and R@10" in text
    assert "Prediction of errors at rank 1" in text


def test_a_collection_is_evaluated_by_its_labels_unless_captions_are_requested(tmp_path):
    arrays = {
        "image_features": np.eye(4),
        "text_features": np.eye(4, 5),
        "image_rows": np.arange(4),
    }
    np.savez(tmp_path / "pairs.npz", **arrays)
    out = tmp_path / "fitted"
    settings = ["--set", "epochs=1"]
    fitted = surelabel(
        "fit", tmp_path / "pairs.npz", "--method", "cosine_projection", "--out", out, *settings
    )
    assert "Fitted cosine_projection on 4 captions." in fitted.stdout
    assert "Next: surelabel evaluate" in fitted.stdout
    value = json.loads(surelabel("evaluate", out, tmp_path / "pairs.npz", "--json").stdout)
    assert (value["images"], value["captions"]) == (4, 4)
    refused = surelabel(
        "evaluate", out, tmp_path / "pairs.npz", "--relevance", __file__, fails=True
    )
    assert "--relevance requires captions with ids; got vectors" in refused.output


def test_a_variational_fit_on_captions_reports_its_uncertainty(captions, tmp_path):
    out = tmp_path / "fitted"
    surelabel("fit", captions, "--method", "variational", "--out", out, "--set", "epochs=1")
    value = json.loads(surelabel("evaluate", out, captions, "--json").stdout)
    assert "uncertainty" in value["caption_to_image"]["error_predictions"]
    unlabelled = surelabel(
        "tag",
        bundled_collection_folder("scenes-80", split="test") / "images",
        "--model",
        out,
        fails=True,
    )
    assert "Predictions require labels" in unlabelled.output


def test_relevance_files_are_evaluated_beside_own_captions(captions, tmp_path):
    by_image = tmp_path / "by_image.json"
    by_image.write_text(json.dumps({"100": [0, 7], "103": [1]}))
    by_caption = tmp_path / "by_caption.json"
    by_caption.write_text(json.dumps({"20": [100], "21": [101, 102], "22": [105]}))
    graded = tmp_path / "graded.csv"
    graded.write_text("image_id,caption_id,relevance\n100,0,1\n100,7,1\n101,9,0.5\n")
    options = [o for path in (by_image, by_caption, graded) for o in ("--relevance", path)]
    value = json.loads(surelabel("evaluate", "tiny-vit", captions, *options, "--json").stdout)
    assert [file["direction"] for file in value["relevance_files"]] == [
        "image_to_caption",
        "caption_to_image",
    ]
    assert value["threshold"] == 1.0
    text = surelabel("evaluate", "tiny-vit", captions, *options).stdout
    assert "by_image.json" in text
    two = surelabel(
        "evaluate", "tiny-vit", captions, "--relevance", graded, "--relevance", graded, fails=True
    )
    assert "accepts one CSV file" in two.output


def test_options_of_labels_are_refused_with_captions(captions):
    refused = surelabel(
        "evaluate", "tiny-vit", captions, "--labels", "dog", "--retrieval", fails=True
    )
    assert "--labels, --retrieval cannot be combined with captions" in refused.output


def test_noisy_captions_are_counted_and_need_captions(captions, tmp_path):
    out = tmp_path / "noisy"
    noisy = surelabel(
        "fit",
        captions,
        "--method",
        "cosine_projection",
        "--caption-noise",
        "0.5",
        "--set",
        "epochs=1",
        "--out",
        out,
    )
    assert "captions are permuted (seed 0)" in noisy.output
    refused = surelabel(
        "fit",
        "scenes-80:test",
        "--method",
        "linear",
        "--caption-noise",
        "0.5",
        "--out",
        out,
        fails=True,
    )
    assert "--caption-noise requires images with captions" in refused.output
    several = surelabel(
        "fit", captions, captions, "--method", "variational", "--out", out, fails=True
    )
    assert "requires one file of images with captions; got 2 arguments" in several.output
    missing = surelabel(
        "fit", tmp_path / "none.json", "--method", "variational", "--out", out, fails=True
    )
    assert "does not exist" in missing.output
