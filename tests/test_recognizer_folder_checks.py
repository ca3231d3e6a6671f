import pytest

from surelabel.errors import DataError
from surelabel.recognizer_folder_checks import (
    check_folder_is_not_encoder,
    check_saved_recognizer_folder,
    score_kind_of_recognizer_folder,
)


def test_a_folder_with_other_files_is_not_replaced_by_a_recognizer(tmp_path):
    check_saved_recognizer_folder(tmp_path / "new")
    check_saved_recognizer_folder(tmp_path)
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(DataError, match=r"must be new, empty or a saved recognizer; .* contains"):
        check_saved_recognizer_folder(tmp_path)
    (tmp_path / "about.json").touch()
    check_saved_recognizer_folder(tmp_path)


def test_a_folder_of_an_encoder_is_no_saved_recognizer(tmp_path):
    check_folder_is_not_encoder(tmp_path)
    (tmp_path / "open_clip_config.json").touch()
    with pytest.raises(DataError, match=r"not a saved recognizer. Give local-dir:"):
        check_folder_is_not_encoder(tmp_path)


@pytest.mark.parametrize(
    ("content", "kind"), [('{"scores": "logits"}', "logits"), ('{"timm": "x"}', None), ("[", None)]
)
def test_the_kind_of_scores_is_read_without_loading_the_recognizer(tmp_path, content, kind):
    assert score_kind_of_recognizer_folder(tmp_path) is None
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "surelabel_encoder.json").write_text(content)
    assert score_kind_of_recognizer_folder(tmp_path) == kind
