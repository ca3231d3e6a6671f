import re
from dataclasses import replace

import pytest
import torch

from surelabel.config import Choice, Run, load_run
from surelabel.errors import ConfigError
from surelabel.methods import METHODS, Linear, Method, TrainingRecipe, check_method_contract

COMPLETE = {
    "learns_from": "labels",
    "needs": (),
    "open_vocabulary": False,
    "recipe": TrainingRecipe(),
    "forward": Linear.forward,
    "initialize": Linear.initialize,
}
ABILITIES = {
    "views": ("next_views", "view_scores"),
    "pixels": ("finetuned_encoder", "frozen_feature_head"),
    "trunk": ("heat_maps",),
    "ladder": ("heat_maps",),
}


def toy(*without, **members):
    """Return a class of a method that lacks some members."""
    chosen = {k: v for k, v in (COMPLETE | members).items() if k not in without}
    return type("Toy", (Method,), chosen)


def configured(monkeypatch, method):
    monkeypatch.setitem(METHODS, "toy", method)
    return load_run(overrides=["method.name=toy"])


def test_a_complete_method_is_configured(monkeypatch):
    assert check_method_contract("toy", toy()) is None
    assert configured(monkeypatch, toy()).method.name == "toy"


@pytest.mark.parametrize("member", COMPLETE)
def test_a_method_that_lacks_a_member_is_refused_when_it_is_configured(monkeypatch, member):
    with pytest.raises(
        ConfigError, match=rf"Method toy must define {member}; its class Toy .*docs/extending\.md"
    ):
        configured(monkeypatch, toy(member))


def test_all_missing_members_are_named_at_once():
    with pytest.raises(ConfigError, match="must define needs, recipe; its class Toy"):
        check_method_contract("toy", toy("recipe", "needs"))


@pytest.mark.parametrize("need", ABILITIES)
def test_a_need_asks_for_the_functions_that_serve_it(need):
    with pytest.raises(ConfigError, match=f"must define {', '.join(ABILITIES[need])};"):
        check_method_contract("toy", toy(needs=(need,)))
    functions = dict.fromkeys(ABILITIES[need], Linear.forward)
    assert check_method_contract("toy", toy(needs=(need,), **functions)) is None


def test_a_method_of_images_is_trained_or_fitted_at_once():
    with pytest.raises(ConfigError, match="must define initialize"):
        check_method_contract("toy", toy("initialize", learns_from="images"))
    assert check_method_contract("toy", toy(learns_from="images")) is None
    at_once = toy("initialize", learns_from="images", fit_unlabelled=Linear.forward)
    assert check_method_contract("toy", at_once) is None


def test_a_method_of_labels_is_trained_or_fitted_at_once():
    members = {name: Linear.forward for name in ("fit_targets", "expected_fit_seconds")}
    assert check_method_contract("toy", toy("initialize", **members)) is None
    with pytest.raises(ConfigError, match="must define initialize"):
        check_method_contract("toy", toy("initialize", fit_targets=Linear.forward))
    with pytest.raises(ConfigError, match="must define initialize"):
        check_method_contract("toy", toy("initialize", learns_from="texts", **members))


def test_a_method_of_texts_needs_initial_values():
    with pytest.raises(ConfigError, match="must define initialize"):
        check_method_contract("toy", toy("initialize", learns_from="texts"))
    assert check_method_contract("toy", toy(learns_from="texts")) is None


def test_a_method_without_a_fit_needs_no_initial_values():
    assert check_method_contract("toy", toy("initialize", learns_from="nothing")) is None


@pytest.mark.parametrize("entry", [Linear.forward, torch.nn.Linear, "linear"])
def test_an_entry_of_another_type_is_refused(monkeypatch, entry):
    with pytest.raises(ConfigError, match=r"Method toy must be a subclass of .*Method; got"):
        configured(monkeypatch, entry)


def test_a_method_learns_from_what_a_user_can_give():
    message = '"labels", "images", "texts", "pairs" or "nothing"; got .captions.'
    with pytest.raises(ConfigError, match=message):
        check_method_contract("toy", toy(learns_from="captions"))


@pytest.mark.parametrize(
    "needs", [("nonsense",), ("views", "patch"), ["patches"], "views", None, (["views"],)]
)
def test_an_unknown_need_is_refused_with_the_known_needs(monkeypatch, needs):
    expected = (
        "needs of method toy, class Toy, must be a tuple with values among views, pixels, "
        "patches, self_aware, attention, multi_layer, trunk, ladder; "
        f"got {needs!r}. See docs/extending.md."
    )
    with pytest.raises(ConfigError, match=re.escape(expected)):
        configured(monkeypatch, toy(needs=needs))


def test_a_method_is_refused_wherever_a_run_is_made(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", toy("needs"))
    with pytest.raises(ConfigError, match="must define needs"):
        Run(method=Choice("toy"))
    with pytest.raises(ConfigError, match="must define needs"):
        replace(Run(), method=Choice("toy"))
