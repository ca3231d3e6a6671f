"""A setting outside the range that its docstring states is refused; the limits are in the range."""

import importlib.util
import math
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit

from surelabel.calibration import calibrator_for_images
from surelabel.config import Run, load_run
from surelabel.decisions import record_validation
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError, InputError
from surelabel.features import FeatureCache, add_text_feature_cache, default_feature_cache_folder
from surelabel.methods import TextScorer
from surelabel.records import FrozenTextVectors, TrainingStep
from surelabel.tables import table_entry_settings

PAGES = Path(__file__).parents[2] / "docs" / "generate.py"
NUMBER = r"-?\d[\d.]*(?:e-?\d+)?"
RANGE = re.compile(
    rf"(?P<sign>>=|>|\babove) (?P<limit>{NUMBER})"
    rf"|\bin (?P<left>[\[(])(?P<low>{NUMBER}), (?P<high>{NUMBER})(?P<right>[\])])"
)
ANY_NUMBER = {"initial_bias", "margin", "seed"}  # settings without a range
NAMES = ["lion", "guitar", "pizza", "bus"]


def generator_of_pages():
    """Return the module docs/generate.py, whose parser reads the docstrings."""
    spec = importlib.util.spec_from_file_location("generate_pages", PAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = generator_of_pages()


def is_whole(default):
    """Return whether a setting is a whole number; a default of None stands for a number, too."""
    return default is None or isinstance(default, int)


@dataclass(frozen=True)
class Range:
    """Range of a setting, as its docstring states it."""

    low: float
    high: float = math.inf
    has_low: bool = True
    has_high: bool = False

    def outside(self, default):
        """Return the values nearest to the range that are not in it."""
        below, above = self.low, self.high
        if self.has_low:
            below = below - 1 if is_whole(default) else math.nextafter(below, -math.inf)
        if self.has_high:
            above = above + 1 if is_whole(default) else math.nextafter(above, math.inf)
        return [value for value in (below, above) if math.isfinite(value)]

    def limits(self):
        """Return the limits that belong to the range."""
        low, high = [self.low] * self.has_low, [self.high] * self.has_high
        return [value for value in (*low, *high) if math.isfinite(value)]


def stated_range(meaning):
    """Return the range in the description of a setting, or None.

    >>> stated_range("Number of bins on [0, 1], >= 1.")
    Range(low=1.0, high=inf, has_low=True, has_high=False)
    """
    match = RANGE.search(meaning)
    if match is None:
        return None
    if match["sign"]:
        return Range(float(match["limit"]), has_low=match["sign"] == ">=")
    return Range(
        float(match["low"]), float(match["high"]), match["left"] == "[", match["right"] == "]"
    )


def stated_ranges(entry):
    """Return the range of each setting of an entry whose docstring states one."""
    sections = pages.split_docstring(getdoc(entry) or "")
    arguments = "\n".join(sections.get(name, "") for name in ("Args", "Attributes"))
    meanings = pages.argument_meanings(arguments)
    ranges = {name: limits for name, text in meanings.items() if (limits := stated_range(text))}
    if "see ``TextScorer``" in arguments:
        ranges = stated_ranges(TextScorer) | ranges
    return {name: limits for name, limits in ranges.items() if name in table_entry_settings(entry)}


def value_like(value, default):
    """Return a value with the type of the default; a pair gets the value at both ends."""
    if isinstance(default, tuple):
        return (value, value)
    return int(value) if is_whole(default) else value


GENERATOR = torch.Generator().manual_seed(0)
SCORES = torch.randn(8, 4, generator=GENERATOR, dtype=torch.float64)
TARGETS = (torch.arange(32).view(8, 4) % 3 == 0).double()
KNOWN = torch.ones(8, 4, dtype=torch.bool)
TEXTS = torch.nn.functional.normalize(torch.randn(4, 6, generator=GENERATOR).double(), dim=1)
VIEWS = torch.randn(8, 3, 4, generator=GENERATOR, dtype=torch.float64)
PROBABILITIES = expit(np.random.default_rng(0).normal(size=(300, 4)))
LABELS = (np.random.default_rng(1).random((300, 4)) < PROBABILITIES).astype(float)
STEP = TrainingStep(
    *(SCORES, SCORES, TARGETS, KNOWN, TEXTS),
    tuned_texts=TEXTS,
    encode_words=lambda words: TEXTS[: len(words)],
    frozen_text_vectors=FrozenTextVectors([], ["cup", "fox"], lambda words: TEXTS[: len(words)]),
)
WEIGHTS = torch.nn.Parameter(torch.zeros(2, 2))


def record():
    return record_validation(np.log(PROBABILITIES / (1 - PROBABILITIES)), LABELS)


@cache
def encoder():
    """Return the encoder of all methods, which encodes each list of texts once."""
    return add_text_feature_cache(
        load_encoder("tiny-vit"), FeatureCache(default_feature_cache_folder())
    )


def method_of(entry, **settings):
    return entry(encoder(), NAMES, **settings)


def metric_of(entry, **settings):
    return entry(PROBABILITIES, LABELS, **settings)


def transport_of(entry, **settings):
    cost = torch.rand(2, 5, 3, generator=torch.Generator().manual_seed(0))
    return entry(cost, torch.full((2, 5), 0.2), torch.full((2, 3), 1 / 3), **settings)


def calibrator_of(entry, **settings):
    logits = np.log(PROBABILITIES / (1 - PROBABILITIES))
    return calibrator_for_images(entry(**settings), PROBABILITIES).fit(logits, LABELS)


CALLS = {  # table: package, call of an entry with settings
    "CALIBRATORS": ("calibration", calibrator_of),
    "CORRECTIONS": ("pseudolabels", lambda entry, **s: entry(SCORES, **s)),
    "FUSIONS": ("views", lambda entry, **s: entry(SCORES, VIEWS, **s)),
    "GUARANTEES": ("decisions", lambda entry, **s: entry(record(), **s)),
    "LINKS": ("links", lambda entry, **s: entry(**s)),
    "LOSSES": ("losses", lambda entry, **s: entry(SCORES, TARGETS, **s)),
    "METHODS": ("methods", method_of),
    "OPERATING_POINTS": ("decisions", lambda entry, **s: entry(record(), **s)),
    "OPTIMIZERS": ("optimizers", lambda entry, **s: entry([WEIGHTS], 0.1, **s)),
    "PER_CLASS": ("metrics", metric_of),
    "POOLED": ("metrics", metric_of),
    "PSEUDOLABELS": ("pseudolabels", lambda entry, **s: entry(VIEWS, **s)),
    "REGULARIZERS": ("regularizers", lambda entry, **s: entry(STEP, **s)),
    "SET_LOSSES": ("losses", lambda entry, **s: entry(SCORES, TARGETS, KNOWN, **s)),
    "SEWINGS": ("pseudolabels", lambda entry, **s: entry(**s)),
    "TRANSPORTS": ("transport", transport_of),
}


def table(name):
    return getattr(import_module(f"surelabel.{CALLS[name][0]}"), name)


def ranges_of_entry(name, key):
    """Return the ranges of an entry; a metric per class has the settings of the pooled metric."""
    return stated_ranges(table("POOLED" if name == "PER_CLASS" else name)[key])


SETTINGS = [
    (name, key, setting, limits)
    for name in CALLS
    for key in table(name)
    for setting, limits in ranges_of_entry(name, key).items()
]


def default_of(name, key, setting):
    return table_entry_settings(table(name)[key])[setting]


every_entry = pytest.mark.parametrize(
    ("name", "key"), list(dict.fromkeys((name, key) for name, key, _, _ in SETTINGS))
)


def cases(name, key, values_of):
    """Return each setting of an entry with each value, from the range and the default."""
    return [
        (setting, value)
        for entry_name, entry_key, setting, limits in SETTINGS
        if (entry_name, entry_key) == (name, key)
        for value in values_of(limits, default_of(name, key, setting))
    ]


def use(name, key, setting, value):
    """Return the result of an entry with one setting."""
    settings = {setting: value_like(value, default_of(name, key, setting))}
    return CALLS[name][1](table(name)[key], **settings)


def assert_refused_by_name(name, key, values):
    """Assert that an entry refuses each value of a setting with an error that names the setting."""
    accepted, messages = [], []
    for setting, value in values:
        try:
            use(name, key, setting, value)
        except (ConfigError, InputError) as error:
            messages.append((setting, value, str(error)))
        else:
            accepted.append((setting, value))
    assert not accepted
    unnamed = [case for case in messages if not re.search(rf"\b{case[0]}\b", case[2])]
    assert not unnamed


@every_entry
def test_a_value_just_outside_its_range_is_refused_by_name(name, key):
    values = cases(name, key, lambda limits, default: limits.outside(default))
    assert_refused_by_name(name, key, values)


@every_entry
def test_a_number_that_is_not_finite_is_refused_by_name(name, key):
    numbers = [math.nan, math.inf, -math.inf]
    values = cases(name, key, lambda _, default: [] if is_whole(default) else numbers)
    assert_refused_by_name(name, key, values)


@pytest.mark.filterwarnings("ignore")
@every_entry
def test_a_limit_that_belongs_to_the_range_is_accepted(name, key):
    for setting, value in cases(name, key, lambda limits, default: limits.limits()):
        assert use(name, key, setting, value) is not None, (setting, value)


@pytest.mark.parametrize("name", CALLS)
def test_every_number_has_a_range_or_any_finite_value(name):
    without = {
        (key, setting)
        for key, entry in table(name).items()
        for setting, default in table_entry_settings(entry).items()
        if isinstance(default, int | float) and not isinstance(default, bool)
        if setting not in ranges_of_entry(name, key)
    }
    assert {setting for _, setting in without} <= ANY_NUMBER


def test_the_ranges_of_the_docstrings_are_read():
    ranges = {(name, key, setting): limits for name, key, setting, limits in SETTINGS}
    assert ranges["LOSSES", "asymmetric", "clip"] == Range(0, 1, True, False)
    assert ranges["METHODS", "crops", "scale"] == Range(0, has_low=False)
    assert ranges["METHODS", "crops", "area"] == Range(0, 1, False, True)
    assert ranges["POOLED", "ece", "bins"] == Range(1)
    assert len(ranges) > 100


RUN_RANGES = {
    setting: stated_range(text)
    for setting, text in pages.argument_meanings(
        pages.split_docstring(getdoc(Run))["Attributes"]
    ).items()
    if stated_range(text)
}


def test_every_number_of_a_run_has_a_range():
    numbers = {field.name for field in fields(Run) if field.type in (int, float)}
    assert RUN_RANGES.keys() == numbers


@pytest.mark.parametrize("setting", RUN_RANGES)
def test_a_run_refuses_a_number_outside_its_range_and_takes_the_limits(setting):
    default, limits = getattr(Run(), setting), RUN_RANGES[setting]
    for value in limits.outside(default):
        with pytest.raises(ConfigError, match=rf"^{setting} must be"):
            Run(**{setting: value_like(value, default)})
        with pytest.raises(ConfigError, match=rf"^{setting} must be"):
            load_run(overrides=[f"{setting}={value_like(value, default)!r}"])
    for value in limits.limits():
        assert getattr(Run(**{setting: value_like(value, default)}), setting) == value
