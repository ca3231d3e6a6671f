"""Define ``surelabel show``, which lists methods, losses, calibrators and other table entries."""

from collections.abc import Mapping
from inspect import getdoc
from pathlib import Path
from typing import Any

import click

from surelabel.cli.method_selection import method_selection_text
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


class TableOrFolder(click.Choice[str]):
    """Parameter that is the name of a table, or the folder of a saved recognizer."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of a table or the folder; raise BadParameter for other values."""
        is_folder = value not in self.choices and Path(value).is_dir()
        return value if is_folder else super().convert(value, param, ctx)


KINDS = (*TABLES, "pretrained", "words")


@click.command()
@click.argument("kind", type=TableOrFolder(KINDS), metavar="KIND|FOLDER")
@with_terminal_options
def show(terminal: Terminal, kind: str) -> None:
    """List the entries of a table, or describe a saved recognizer.

    The entries are listed with their settings and defaults.

    FOLDER is a saved recognizer: its encoder, the normalization of its vectors, its method and its
    calibration are printed. If `surelabel fit` selected the method, the results of all methods are
    printed too.

    KIND is the name of the table, such as method, loss or calibrator. The kind pretrained lists the
    pretrained encoders of open_clip with the licenses of their weights.
    """
    if kind not in KINDS:
        show_recognizer(terminal, kind)
        return
    if kind == "words":
        descriptions = scene_words_to_show()
    elif kind == "pretrained":
        descriptions = pretrained_encoders_to_show()
    else:
        descriptions = table_entries_to_show(*TABLES[kind])
    rows = [
        [name, format_settings_to_show(entry["settings"]), entry["about"]]
        for name, entry in descriptions.items()
    ]
    terminal.print_result(descriptions, format_terminal_table(["name", "settings", "about"], rows))


def show_recognizer(terminal: Terminal, folder: str) -> None:
    """Print the labels and the properties of a saved recognizer, and its model selection if any.

    Args:
        terminal: Object that prints results, status lines and progress.
        folder: Folder of the recognizer.

    Raises:
        DataError: If the folder contains no saved recognizer, or a file is damaged.
    """
    from surelabel.recognizer import Recognizer
    from surelabel.recognizer.model_card import recognizer_properties

    recognizer = Recognizer.load(folder, device=terminal.device)
    properties = {
        "labels": ", ".join(recognizer.names),
        **recognizer_properties(
            recognizer.run,
            recognizer.encoder,
            recognizer.calibrated_on,
            recognizer.method.state_dict(),
            recognizer.label_tree,
        ),
    }
    table = format_terminal_table(["property", "value"], [[*item] for item in properties.items()])
    selection = recognizer.selection
    terminal.print_result(
        properties | ({"selection": selection.state()} if selection else {}),
        f"{table}\n\n{method_selection_text(selection)}".rstrip(),
    )


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


def pretrained_encoders_to_show() -> dict[str, dict[str, Any]]:
    """Return the license of each ``ARCHITECTURE/PRETRAINED`` encoder of open_clip."""
    from surelabel.encoders.loading.licenses import pretrained_licenses

    return {
        name: {
            "settings": {},
            "about": f"license {license}",
            "license": license.name or None,
            "permits_commercial_use": license.permits_commercial_use,
        }
        for name, license in pretrained_licenses().items()
    }


def format_settings_to_show(settings: Mapping[str, Any]) -> str:
    """Format settings as ``gamma_neg=4.0 clip=0.05``, or as a dash if there are no settings."""
    return " ".join(f"{key}={value!r}" for key, value in settings.items()) or "-"
