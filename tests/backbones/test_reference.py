from surelabel.backbones.reference import reference_names
from surelabel.data.words import all_words


def test_the_list_holds_all_words_of_scenes_and_a_hundred_others():
    names = reference_names()
    assert names[: len(all_words())] == tuple(word.name for word in all_words())
    assert len(names) >= len(all_words()) + 100


def test_every_name_is_there_once_and_clean():
    names = reference_names()
    assert len(set(names)) == len(names)
    assert all(name == name.strip().lower() and name for name in names)
