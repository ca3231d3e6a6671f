"""``surelabel show``: list methods, losses, calibrators and the entries of other tables."""

from collections.abc import Mapping
from inspect import getdoc
from typing import Any

import click

from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table

TABLES = {
    "encoder": ("encoders", "ENCODERS"),
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
    "operating-point": ("decisions", "OPERATING_POINTS"),
    "guarantee": ("decisions", "GUARANTEES"),
    "calibrator": ("calibration", "CALIBRATORS"),
    "format": ("data", "FORMATS"),
    "domain": ("data.domains", "DOMAINS"),
}


@click.command()
@click.argument("kind", type=click.Choice([*TABLES, "words"]))
@with_terminal_options
def show(terminal: Terminal, kind: str) -> None:
    """List the entries of a table, with their settings and defaults.

    KIND is the name of the table, such as method, loss or calibrator.
    """
    descriptions = (
        scene_words_to_show() if kind == "words" else table_entries_to_show(*TABLES[kind])
    )
    rows = [
        [name, format_settings_to_show(entry["settings"]), entry["about"]]
        for name, entry in descriptions.items()
    ]
    terminal.print_result(descriptions, format_terminal_table(["name", "settings", "about"], rows))


def table_entries_to_show(module: str, name: str) -> dict[str, dict[str, Any]]:
    """Return the settings and the first sentence of the docstring of each table entry.

    Args:
        module: Module of the table inside the package ``surelabel``.
        name: Variable name of the table in the module.
    """
    from importlib import import_module

    from surelabel.tables import table_entry_settings

    table: Mapping[str, Any] = getattr(import_module(f"surelabel.{module}"), name)
    return {
        key: {
            "settings": table_entry_settings(entry) if callable(entry) else {},
            "about": (getdoc(entry) or "").split("\n\n")[0].replace("\n", " "),
        }
        for key, entry in table.items()
    }


def scene_words_to_show() -> dict[str, dict[str, Any]]:
    """Return the emoji and the theme of each word that is available for scenes."""
    from surelabel.data.scene_words import all_scene_words

    return {
        w.name: {"settings": {}, "about": f"{w.character} {w.theme}"} for w in all_scene_words()
    }


def format_settings_to_show(settings: Mapping[str, Any]) -> str:
    """Format settings as ``gamma_neg=4.0 clip=0.05``, or as a dash if there are no settings."""
    return " ".join(f"{key}={value!r}" for key, value in settings.items()) or "-"
