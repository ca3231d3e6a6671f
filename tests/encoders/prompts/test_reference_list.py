from surelabel.data.scene_words import all_scene_words
from surelabel.encoders.prompts.reference_list import reference_names


def test_the_list_holds_all_words_of_scenes_and_a_hundred_others():
    names = reference_names()
    assert names[: len(all_scene_words())] == tuple(word.name for word in all_scene_words())
    assert len(names) >= len(all_scene_words()) + 100


def test_every_name_is_there_once_and_clean():
    names = reference_names()
    assert len(set(names)) == len(names)
    assert all(name == name.strip().lower() and name for name in names)
