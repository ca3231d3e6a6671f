import numpy as np
import pytest
from PIL import Image

from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, DataError, InputError
from surelabel.features.question_features import centre_question_vectors, encode_questions
from surelabel.records import LabelledFeatures, QuestionAnswers


@pytest.fixture
def data(tmp_path):
    for number in range(2):
        Image.new("RGB", (40, 30), (number * 90, 20, 30)).save(tmp_path / f"{number}.png")
    paths = [str(tmp_path / f"{number}.png") for number in (0, 1, 0)]
    questions = ["Is it dark?", "Is it dark?", "What is it?"]
    return QuestionAnswers(paths, questions, ["yes"], np.array([[1.0], [0.3], [0.0]]))


def test_vectors_are_those_of_the_image_the_question_and_their_product(random_encoder, data):
    encoded = encode_questions(random_encoder, data)
    width = encoded.features.shape[1] // 3
    image, question, product = np.split(encoded.features, 3, axis=1)
    np.testing.assert_allclose(np.linalg.norm(image, axis=1), 1, atol=1e-3)
    np.testing.assert_array_equal(image[0], image[2])
    np.testing.assert_array_equal(question[0], question[1])
    assert not np.allclose(image[0], image[1])
    expected = random_encoder.encode_sentences(data.questions).numpy()
    np.testing.assert_allclose(question, expected, atol=1e-6)
    np.testing.assert_allclose(product, width**0.5 * image * question, atol=1e-6)
    assert (encoded.names, encoded.targets.tolist()) == (["yes"], data.targets.tolist())
    assert encoded.paths[2] == f"{data.paths[2]} What is it?"


def test_an_image_that_cannot_be_read_is_refused(random_encoder, data, tmp_path):
    (tmp_path / "1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"got 1 unreadable image of 2, such as \S+1\.png: "):
        encode_questions(random_encoder, data)


def test_missing_images_are_counted(random_encoder):
    data = QuestionAnswers(["nowhere/0.png", "nowhere/1.png"], ["?", "?"])
    with pytest.raises(DataError, match=r"got 2 unreadable images.* nowhere/0\.png: no such file"):
        encode_questions(random_encoder, data)


def test_at_least_one_question_is_required(random_encoder):
    with pytest.raises(InputError, match="At least one question is required"):
        encode_questions(random_encoder, QuestionAnswers([], []))


def test_an_encoder_without_text_tower_is_refused(data):
    encoder = load_encoder("timm:resnet10t", pretrained=False)
    with pytest.raises(ConfigError, match="has no text tower"):
        encode_questions(encoder, data)


def test_questions_without_answers_have_the_same_vectors(random_encoder, data):
    encoded = encode_questions(random_encoder, QuestionAnswers(data.paths, data.questions))
    expected = encode_questions(random_encoder, data)
    np.testing.assert_array_equal(encoded.features, expected.features)
    assert (encoded.names, encoded.targets.shape) == ((), (3, 0))


def centred_by_hand(row, means):
    width = len(row) // 3
    parts = []
    for start in (0, width):
        part = [row[i] - means[i] for i in range(start, start + width)]
        length = sum(value**2 for value in part) ** 0.5
        parts.append([value / length if length > 1e-6 else 0.0 for value in part])
    image, question = parts
    return [*image, *question, *(width**0.5 * v * q for v, q in zip(image, question, strict=True))]


def test_centred_vectors_equal_loops_over_numbers():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5, 12)).astype(np.float32)
    features[2, 4:8] = features[3, 4:8]
    means = features.mean(axis=0)
    means[4:8] = features[3, 4:8]  # the question of rows 2 and 3 equals the mean
    vectors = LabelledFeatures(features, ["yes"], rng.random((5, 1)), paths=list("abcde"))
    centred = centre_question_vectors(vectors, means)
    expected = [centred_by_hand(row, means) for row in features.astype(float)]
    np.testing.assert_allclose(centred.features, expected, atol=1e-6)
    assert not centred.features[2:4, 4:].any()
    np.testing.assert_array_equal(centred.targets, vectors.targets)
    assert (centred.names, centred.paths) == (["yes"], list("abcde"))


@pytest.mark.parametrize(("width", "n_means"), [(4, 4), (6, 2), (6, 9)])
def test_other_widths_cannot_be_centred(width, n_means):
    vectors = LabelledFeatures(np.ones((2, width)), [], np.zeros((2, 0)))
    with pytest.raises(InputError, match=rf"shape \(n, 3 d\).*got \(2, {width}\) and \({n_means},"):
        centre_question_vectors(vectors, np.zeros(n_means))
