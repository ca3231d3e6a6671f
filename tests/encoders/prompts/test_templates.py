import pytest
from open_clip.zero_shot_metadata import OPENAI_IMAGENET_TEMPLATES

from surelabel.encoders.prompts.templates import TEMPLATES, check_prompt_templates, prompt_templates
from surelabel.errors import ConfigError, DataError


def test_the_ensemble_says_the_same_eighty_sentences_as_clip():
    ours = [template.replace("{}", "hot dog") for template in TEMPLATES["ensemble"]]
    assert ours == [template("hot dog") for template in OPENAI_IMAGENET_TEMPLATES]
    assert len(ours) == 80


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_every_template_of_the_table_has_one_place_for_the_name(name):
    assert prompt_templates(name) == check_prompt_templates(TEMPLATES[name])


def test_templates_are_read_from_a_file_line_by_line(tmp_path):
    file = tmp_path / "templates.txt"
    file.write_text("a drawing of a {}.\n\n  the {}\n")
    assert prompt_templates(file) == ("a drawing of a {}.", "the {}")


@pytest.mark.parametrize("wrong", ["{} and {}", "a {name}", "{ }"])
def test_a_template_without_exactly_one_place_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"must contain \{\} exactly once, at the position"):
        prompt_templates(wrong)


def test_a_file_of_templates_is_checked_too(tmp_path):
    file = tmp_path / "templates.txt"
    file.write_text("a drawing\n")
    with pytest.raises(ConfigError, match=r"got 'a drawing', which contains \{\} 0 times"):
        prompt_templates(file)
    file.write_text("\n")
    with pytest.raises(DataError, match=r"must contain one template per line; the file is empty"):
        prompt_templates(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="must be text in UTF-8"):
        prompt_templates(file)


def test_what_is_neither_a_name_nor_a_sentence_nor_a_file_is_refused():
    with pytest.raises(
        ConfigError, match=r"name of a set .one, ensemble., a sentence .* got 'ensmble'"
    ):
        prompt_templates("ensmble")
    with pytest.raises(ConfigError, match="at least one template"):
        check_prompt_templates(())
