"""The public names, one a line in public.txt: adding or removing one is a decision."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import surelabel

NAMES = (Path(__file__).parent / "public.txt").read_text(encoding="utf-8").split()


def test_the_list_is_what_the_package_says():
    assert sorted(surelabel.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_explains_itself(name):
    assert getattr(surelabel, name).__doc__


@pytest.mark.parametrize("name", [n for n in NAMES if find_spec(f"surelabel.{n}")])
def test_a_module_of_the_same_name_does_not_hide_a_public_name(name):
    import_module(f"surelabel.{name}")
    assert not isinstance(getattr(surelabel, name), ModuleType)


def test_dir_shows_the_public_names():
    assert set(NAMES) <= set(dir(surelabel))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = surelabel.no_such_name


@pytest.mark.parametrize(
    ("name", "current"), [("find_pictures", "find_images"), ("backbones", "encoders")]
)
def test_a_name_of_0_1_0_names_the_current_one(name, current):
    with pytest.raises(AttributeError, match=f"{name!r}; it is now {current!r}"):
        getattr(surelabel, name)


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, surelabel; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
