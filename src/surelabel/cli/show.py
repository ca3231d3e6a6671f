"""``surelabel show``."""

from collections.abc import Mapping
from inspect import getdoc
from typing import Any

import click

from surelabel.cli.terminal import Terminal, table, with_terminal

TABLES = {
    "backbone": ("backbones", "BACKBONES"),
    "method": ("methods", "METHODS"),
    "loss": ("losses", "LOSSES"),
    "set-loss": ("losses", "SET_LOSSES"),
    "regularizer": ("regularizers", "REGULARIZERS"),
    "optimizer": ("optimizers", "OPTIMIZERS"),
    "link": ("links", "LINKS"),
    "metric": ("metrics", "METRICS"),
    "pseudolabel": ("pseudolabels", "PSEUDOLABELS"),
    "correction": ("pseudolabels", "CORRECTIONS"),
    "sewing": ("pseudolabels", "SEWINGS"),
    "score-domain": ("methods", "SCORE_DOMAINS"),
    "fusion": ("views", "FUSIONS"),
    "transport": ("transport", "TRANSPORTS"),
    "goal": ("decisions", "OPERATING_POINTS"),
    "guarantee": ("decisions", "GUARANTEES"),
    "calibrator": ("calibration", "CALIBRATORS"),
    "format": ("data", "FORMATS"),
    "domain": ("data.domains", "DOMAINS"),
}


@click.command()
@click.argument("kind", type=click.Choice([*TABLES, "words"]))
@with_terminal
def show(terminal: Terminal, kind: str) -> None:
    """List what can be chosen, with its settings and their defaults."""
    found = words() if kind == "words" else entries(*TABLES[kind])
    rows = [[name, line(e["settings"]), e["about"]] for name, e in found.items()]
    terminal.show(found, table(["name", "settings", "about"], rows))


def entries(module: str, name: str) -> dict[str, dict[str, Any]]:
    """The entries of a table: their settings and the first sentence about them."""
    from importlib import import_module

    from surelabel.tables import settings

    found: Mapping[str, Any] = getattr(import_module(f"surelabel.{module}"), name)
    return {
        key: {
            "settings": settings(entry) if callable(entry) else {},
            "about": (getdoc(entry) or "").split("\n\n")[0].replace("\n", " "),
        }
        for key, entry in found.items()
    }


def words() -> dict[str, dict[str, Any]]:
    """The words that Scenes can draw."""
    from surelabel.data.words import all_words

    return {w.name: {"settings": {}, "about": f"{w.character} {w.theme}"} for w in all_words()}


def line(settings: Mapping[str, Any]) -> str:
    """``gamma_neg=4.0 clip=0.05``; a dash where there are none."""
    return " ".join(f"{key}={value!r}" for key, value in settings.items()) or "-"
