import pytest

from surelabel.errors import InputError, UnknownName
from surelabel.recognizer import Recognizer, open_recognizer


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "saved"
    Recognizer.zero_shot("tiny-vit", ["lion", "violin|guitar"]).save(folder)
    return str(folder)


def test_an_encoder_looks_for_the_names_given():
    assert open_recognizer("tiny-vit", ["lion"]).names == ["lion"]
    assert open_recognizer("tiny-vit", ["lion"], otherwise=["bear"]).names == ["lion"]
    assert open_recognizer("tiny-vit", otherwise=["bear"]).names == ["bear"]


def test_an_encoder_without_names_is_refused():
    with pytest.raises(InputError, match="tiny-vit needs names to look for and got none"):
        open_recognizer("tiny-vit")


def test_a_saved_recognizer_keeps_its_names_unless_others_are_given(saved):
    assert open_recognizer(saved, otherwise=["bear"]).names == ["lion", "violin"]
    assert open_recognizer(saved, ["bear"]).names == ["bear"]


def test_the_same_names_give_the_same_recognizer(saved):
    again = open_recognizer(saved, ["lion", "violin|guitar"])
    assert again.fingerprint == Recognizer.load(saved).fingerprint


def test_a_template_is_for_an_encoder_only(saved):
    given = open_recognizer("tiny-vit", ["lion"], template="a drawing of a {}")
    assert given.run.method.settings == {"templates": "a drawing of a {}"}
    with pytest.raises(InputError, match="keeps the template it was saved with"):
        open_recognizer(saved, template="ensemble")


def test_what_is_neither_folder_nor_encoder_is_told_that_both_are_taken():
    with pytest.raises(UnknownName, match=r"no backbone.*saved recognizer is taken too; there is"):
        open_recognizer("tiny-vitt", ["lion"])
