import torch
import torch.nn.functional as F

from surelabel.encoders import load_encoder
from surelabel.methods.variational.label_sentences import LabelSentences


def test_with_tokens_the_sentences_of_a_label_are_its_templates_and_synonyms():
    encoder, templates = load_encoder("tiny-vit"), ["a photo of a {}.", "the {}"]
    labels = LabelSentences(
        encoder, ["lion", "sofa|couch"], templates, text_width=None, with_tokens=True
    )
    expected = encoder.encode_sentence_tokens(
        [
            *("a photo of a lion.", "the lion"),
            *("a photo of a sofa.", "a photo of a couch.", "the sofa", "the couch"),
        ]
    )
    features = labels.features()
    torch.testing.assert_close(features.patches, expected.patches)
    means = labels.mean_over_sentences(expected.pooled)
    torch.testing.assert_close(means[0], F.normalize(expected.pooled[:2].mean(0), dim=0))
    torch.testing.assert_close(means[1], F.normalize(expected.pooled[2:].mean(0), dim=0))


def test_without_tokens_each_label_has_the_vector_of_the_text_tower():
    encoder = load_encoder("tiny-vit")
    labels = LabelSentences(encoder, ["lion"], "one", text_width=None, with_tokens=False)
    vectors = labels.features().pooled
    torch.testing.assert_close(vectors, encoder.encode_labels(["lion"], ["a photo of a {}."]))
    torch.testing.assert_close(labels.mean_over_sentences(vectors), vectors)


def test_no_labels_have_no_sentences_and_need_no_text_tower():
    encoder = load_encoder("features:3")
    labels = LabelSentences(encoder, [], "one", text_width=7, with_tokens=False)
    assert labels.mean_over_sentences(labels.features().pooled).shape == (0, 7)


def test_with_trained_blocks_the_features_have_the_tokens_in_front_of_them():
    encoder = load_encoder("tiny-vit")
    labels = LabelSentences(
        encoder, ["lion"], "one", text_width=None, with_tokens=True, trained_blocks=2
    )
    expected = encoder.encode_sentence_block_tokens(["a photo of a lion."], depth=2)
    features = labels.features()
    assert torch.equal(features.layers[-3], expected.layers[-3])
    assert torch.equal(features.patch_mask, expected.patch_mask)
    assert features.patches is None
    assert not labels.state_dict()


def test_braces_in_a_template_other_than_the_placeholder_are_text():
    encoder = load_encoder("tiny-vit")
    labels = LabelSentences(
        encoder, ["lion"], ["a photo {1} of a {}."], text_width=None, with_tokens=True
    )
    expected = encoder.encode_sentence_tokens(["a photo {1} of a lion."])
    torch.testing.assert_close(labels.features().patches, expected.patches)
