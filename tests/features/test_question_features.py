import numpy as np
import pytest
from PIL import Image

from surelabel.errors import DataError
from surelabel.features.question_features import encode_questions
from surelabel.records import QuestionAnswers


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
    with pytest.raises(DataError, match=r"1\.png"):
        encode_questions(random_encoder, data)
