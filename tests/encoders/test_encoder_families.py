"""Each encoder family of open_clip as a small checkpoint: what works, and what is refused."""

import json
import re
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
import torch.nn.functional as F
from open_clip.tokenizer import SimpleTokenizer
from PIL import Image

from surelabel import Recognizer
from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.encoders.interface import ENCODER_METHODS
from surelabel.errors import ConfigError
from surelabel.features.feature_packing import pack_features, unpack_features
from surelabel.methods import METHODS

sys.path.append(str(Path(__file__).parent))

from family_encoders import (
    DERIVED,
    FAMILIES,
    FEATURES,
    LABELS,
    MEMBERS,
    TEMPLATES,
    clip_tokenizer,
    feature_support,
    small_encoder,
)

RESULTS = Path(__file__).parents[2] / "docs" / "encoder_families.json"
SENTENCES = ["a photo of a dog", "the red cat in the sofa"]
# timm resizes the relative positions of Swin with deprecated functions of torch
pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.searchsorted:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning"),
]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def original(family, tmp_path_factory):
    """A small encoder of the family that was never saved."""
    return small_encoder(family, tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def encoder(original, tmp_path_factory):
    """The same encoder, saved and loaded without a network connection."""
    folder = tmp_path_factory.mktemp("family") / "saved"
    original.save(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surelabel.encoders.open_clip.checkpoints.SimpleTokenizer", clip_tokenizer)
        patch.setattr("socket.socket.connect", refuse_connection)
        return load_encoder(f"local-dir:{folder}")


def refuse_connection(*arguments):
    raise OSError("the network is off")


@pytest.fixture(scope="module")
def pixels(encoder):
    torch.manual_seed(1)
    return torch.randn(2, 3, *encoder.preprocess_cfg["size"])


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def test_a_family_has_the_features_of_the_table_and_refuses_the_others(encoder, family, results):
    expected = results["families"][family]["small"]
    assert feature_support(encoder) == expected, "run benchmarks/encoder_families.py small"
    assert expected.keys() == FEATURES.keys()


def test_image_and_text_vectors_are_those_of_open_clip(encoder, pixels):
    model, tokenizer = encoder.model, encoder.tokenizer
    images = F.normalize(model.encode_image(pixels), dim=-1)
    torch.testing.assert_close(encoder.encode_images(pixels).pooled, images)
    for method in filter(
        encoder.supports, ("patches", "self_aware", "attentive", "multi_layer", "trunk")
    ):
        pooled = getattr(encoder, ENCODER_METHODS[method])(pixels).pooled
        torch.testing.assert_close(pooled, images, atol=1e-5, rtol=0)
    texts = F.normalize(model.encode_text(tokenizer(SENTENCES)), dim=-1)
    torch.testing.assert_close(encoder.encode_sentences(SENTENCES), texts)
    assert not torch.allclose(texts[0], texts[1], atol=1e-3)  # the tower reads the words


def test_a_context_of_words_gives_the_vector_of_the_sentence(encoder, family, results):
    if not results["families"][family]["small"]["context prompts"]:
        return
    prompted = encoder.context_prompt_text_encoder(["dog", "red cat"], length=4)
    tokenizer, n_start = encoder.tokenizer, prompted._n_start_tokens()
    words = torch.tensor(word_ids(tokenizer, "a photo of a"))
    rows = [
        torch.cat([row[:n_start], words, row[n_start:-4]])
        for row in tokenizer(["dog.", "red cat."])
    ]
    expected = F.normalize(encoder.model.encode_text(torch.stack(rows)), dim=-1)
    context = prompted.embed_words("a photo of a")
    torch.testing.assert_close(prompted.encode(context), expected, atol=1e-4, rtol=0)
    if family != "SigLIP 2":  # its tokens of a word differ at the beginning of a text
        whole = encoder.encode_sentences(["a photo of a dog.", "a photo of a red cat."])
        torch.testing.assert_close(expected, whole, atol=1e-5, rtol=0)


def word_ids(tokenizer, words):
    """Return the token ids of words without start and end token."""
    if isinstance(tokenizer, SimpleTokenizer):
        return tokenizer.encode(words)
    return tokenizer.tokenizer(words, add_special_tokens=False)["input_ids"]


def test_tokens_of_a_sentence_are_those_of_the_tokenizer(encoder, family, results):
    if not results["families"][family]["small"]["sentence tokens"]:
        return
    features = encoder.encode_sentence_tokens(SENTENCES)
    torch.testing.assert_close(
        features.pooled, encoder.encode_sentences(SENTENCES), atol=1e-5, rtol=0
    )
    padded = encoder.tokenizer([*SENTENCES, ""])
    is_text = torch.stack([row != padded[-1, -1] for row in padded[:-1]])
    for mask, row in zip(features.patch_mask, is_text, strict=True):
        n_padded_with_end_tokens = int(padded[-1, 0] == padded[-1, -1])
        assert int(mask.sum()) == int(row.sum()) + n_padded_with_end_tokens


def test_a_saved_family_is_loaded_with_the_same_vectors(encoder, original, pixels):
    assert encoder.fingerprint == original.fingerprint
    assert torch.equal(encoder.encode_images(pixels).pooled, original.encode_images(pixels).pooled)
    for texts in (["dog", "hot dog"], SENTENCES):
        vectors = original.encode_labels(texts, TEMPLATES)
        assert torch.equal(encoder.encode_labels(texts, TEMPLATES), vectors)
    counts = [e.count_cut_tokens(["dog", "dog " * 200]) for e in (encoder, original)]
    assert counts[0] == counts[1]
    assert (counts[0][0], counts[0][1] > 100) == (0, True)


def test_dense_features_of_a_saved_family_are_the_same(encoder, original, pixels):
    for kind in ("patches", "self_aware", "attentive", "multi_layer"):
        seen, expected = (
            getattr(e, ENCODER_METHODS[kind])(pixels[:1]) for e in (encoder, original)
        )
        assert torch.equal(seen.patches, expected.patches)
        assert seen.grid[0] * seen.grid[1] == seen.patches.shape[1]
        torch.testing.assert_close(seen.patches.norm(dim=-1), torch.ones(1, seen.patches.shape[1]))
        for name in ("attention", "multi_layer"):
            values, same = getattr(seen, name), getattr(expected, name)
            assert (values is None and same is None) or torch.equal(values, same)
            if name == "attention" and values is not None:
                torch.testing.assert_close(values.sum(dim=-1), torch.ones(values.shape[:2]))


@pytest.mark.parametrize("kind", ["patches", "self_aware"])
def test_an_object_is_localized_by_its_vector_in_another_image(encoder, pixels, kind):
    larger = encoder.with_image_size(2 * pixels.shape[-1])
    encode, side = getattr(larger, ENCODER_METHODS[kind]), larger.input_side
    empty = encode(torch.zeros(1, 3, side, side))
    across, n_patches = empty.grid[1], empty.patches.shape[1]
    width = side // across
    planted = range(2, n_patches, n_patches // 5)
    batch = torch.zeros(1 + len(planted), 3, side, side)
    thing = 3 * torch.randn(3, width, width, generator=torch.Generator().manual_seed(0))
    for image, patch in zip(batch, [across + 1, *planted], strict=True):
        top, left = patch // across * width, patch % across * width
        image[:, top : top + width, left : left + width] = thing
    changes = encode(batch).patches - empty.patches  # caused by the object
    strongest = (changes[1:] @ changes[0, across + 1]).argmax(dim=1).tolist()
    assert sum(a == b for a, b in zip(strongest, planted, strict=True)) >= len(planted) - 1


def test_a_recognizer_with_dense_regions_is_saved_with_a_family(
    encoder, family, tmp_path, monkeypatch
):
    if family not in ("SigLIP 2", "ConvNeXt"):  # with and without attention layers
        return
    monkeypatch.setattr("surelabel.encoders.open_clip.checkpoints.SimpleTokenizer", clip_tokenizer)
    run = Run(
        encoder=Choice(encoder.name),
        method=Choice("dense_regions", {"windows": 1, "background": "none"}),
    )
    expected = pytest.warns(UserWarning, match="dense_regions uses plain patches of")
    with expected if family == "ConvNeXt" else nullcontext():
        recognizer = Recognizer(run, ["dog", "cat", "bird"])
    random = np.random.default_rng(0)
    images = [Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8))] * 2
    scores = recognizer.predict(images).scores
    recognizer.save(tmp_path / "saved")
    with expected if family == "ConvNeXt" else nullcontext():
        again = Recognizer.load(tmp_path / "saved")
    assert np.array_equal(again.predict(images).scores, scores)
    assert np.isfinite(scores).all()


def test_recover_match_scores_images_with_the_ladder_of_a_family(encoder, pixels):
    if not encoder.supports("ladder"):
        with pytest.raises(ConfigError, match="Methods that run single blocks need a ViT"):
            METHODS["recover_match"](encoder, LABELS)
        return
    method = METHODS["recover_match"](encoder, LABELS, depth=1).eval()
    features = encoder.encode_ladder_features(pixels, first_block=0, depth=1)
    packed = pack_features("ladder/0/1", features)
    unpacked = unpack_features("ladder/0/1", packed, encoder.width)
    with torch.no_grad():
        scores, after = method(features), method(unpacked)
    assert scores.shape == (2, len(LABELS))
    assert scores.isfinite().all()
    torch.testing.assert_close(after, scores, atol=0.02, rtol=0)  # rounding to fp16
    last = encoder.last_blocks(1)
    *_, (_, tokens) = last.run_blocks(features.layers[-2])
    pooled = F.normalize(last.pool(tokens), dim=-1)
    torch.testing.assert_close(pooled, encoder.encode_images(pixels).pooled, atol=1e-5, rtol=0)


def test_visual_prompts_are_refused_with_rotary_and_relative_positions(encoder, family):
    if family in ("PE-Core, B to bigG", "ViT of timm, relative positions"):
        with pytest.raises(ConfigError, match=r"rotary position .* Use method\.visual_prompts=0"):
            METHODS["recover_match"](encoder, LABELS, depth=1, visual_prompts=2)


def test_every_pretrained_tag_has_patches(results):
    counts = Counter()
    for architecture, _ in open_clip.list_pretrained():
        names = [n for n, pattern in MEMBERS.items() if re.fullmatch(pattern, architecture)]
        features = results["families"][(names or DERIVED[architecture])[0]]["small"]
        kinds = [k for k in ("self-aware patches", "plain patches") if features[k]]
        counts[kinds[0] if kinds else "no patches"] += 1
    assert results["pretrained_tags"] == counts
    assert sum(counts.values()) == 196


def test_every_architecture_of_open_clip_is_in_one_family(results):
    published = {n for n in open_clip.list_models() if not n.endswith("-for-tests")}
    for architecture in published:
        families = [n for n, pattern in MEMBERS.items() if re.fullmatch(pattern, architecture)]
        assert len(families) + (architecture in DERIVED) == 1, architecture
    rows = results["families"].values()
    full = [row["full"]["architecture"] for row in rows if row["full"]]
    tested = {*full, *(row["architecture"] for row in rows)}
    untested = {name for row in rows for name in row["untested"]} | {*results["derived"]}
    assert tested | untested == published
    assert results["open_clip"] == open_clip.__version__


def test_a_full_size_model_has_the_features_of_the_small_one(results):
    rows = {name: row for name, row in results["families"].items() if row["full"]}
    for name, row in rows.items():
        assert row["full"]["features"] == row["small"], name
