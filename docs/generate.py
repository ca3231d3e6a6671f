"""Write the pages that are made from the code: `python docs/generate.py [--check]`.

`cli.md` is the help of every command; `tables.md` is what can be chosen, from the tables and their
docstrings. With `--check` nothing is written and a page that is out of date is an error.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from inspect import getdoc, ismodule
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from surelabel.tables import settings

DOCS = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py from the code: do not edit; run `make docs`. -->\n"
TABLES = {  # heading: module, table, what it is for
    "Backbones": (
        "backbones",
        "BACKBONES",
        "Encoders inside the package. `--model` also takes `ARCHITECTURE/PRETRAINED` "
        "and `hf-hub:NAME` of open_clip, `local-dir:FOLDER`, `timm:NAME`, `onnx:FILE` and "
        "`features:WIDTH`.",
    ),
    "Methods": ("methods", "METHODS", "From features to scores."),
    "Score domains": (
        "methods",
        "SCORE_DOMAINS",
        "What a method without labels holds a name against: its setting `domain`.",
    ),
    "Losses": ("losses", "LOSSES", "What fitting makes small, one number a picture and label."),
    "Losses of sets": (
        "losses",
        "SET_LOSSES",
        "Losses that compare labels with each other; they leave open where scores lie.",
    ),
    "Regularizers": (
        "regularizers",
        "REGULARIZERS",
        "What may stand beside the loss, times `regularizer_weight`.",
    ),
    "Optimizers": ("optimizers", "OPTIMIZERS", "How fitting steps."),
    "Links": ("links", "LINKS", "From scores to log-odds; each loss brings its own."),
    "Fusions": (
        "views",
        "FUSIONS",
        "One score a label from those of the whole picture and of its parts.",
    ),
    "Pseudo-labels": (
        "pseudolabels",
        "PSEUDOLABELS",
        "Targets from scores, where nobody labelled anything.",
    ),
    "Corrections": (
        "pseudolabels",
        "CORRECTIONS",
        "From log-odds to log-odds that claim more of what stands first in a picture.",
    ),
    "Sewings": (
        "pseudolabels",
        "SEWINGS",
        "How a student without labels learns: pictures sewn together, and labels that learn too.",
    ),
    "Transports": ("transport", "TRANSPORTS", "Which region of a picture speaks for which label."),
    "Calibrators": ("calibration", "CALIBRATORS", "What is fitted on held-out pictures."),
    "Operating points": (
        "decisions",
        "OPERATING_POINTS",
        "Thresholds that meet a goal for each label; they never change a probability.",
    ),
    "Guarantees": (
        "decisions",
        "GUARANTEES",
        "One threshold for all labels, with a promise about pictures like the labelled ones.",
    ),
    "Metrics": (
        "metrics",
        "POOLED",
        "One number for all pictures and labels; most have a second one for each class, "
        "`NAME_per_class`. Undefined is NaN.",
    ),
    "Label formats": ("data.labels", "FORMATS", "What label files may look like."),
    "Domains of Scenes": ("data.domains", "DOMAINS", "The look of drawn pictures: `--domain`."),
}
PARTS = ("Args", "Attributes", "Returns", "Raises", "Source", "Differs", "Example")
PART = re.compile(rf"^({'|'.join(PARTS)}):$", re.MULTILINE)
ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {6,}.*)*)", re.MULTILINE)


def split(doc: str) -> dict[str, str]:
    """A docstring by its parts; what stands before the first one is called ``About``."""
    pieces = ["About", *PART.split(doc)]
    return dict(zip(pieces[::2], (piece.strip("\n") for piece in pieces[1::2]), strict=True))


def flat(words: str) -> str:
    """Lines joined to one, safe inside a cell of a table."""
    return " ".join(words.split()).replace("``", "`").replace("|", "\\|")


def about(words: str) -> Iterator[str]:
    """Sentences as they are, formulas (indented) as they are laid out."""
    for paragraph in words.split("\n\n"):
        if paragraph.startswith(" "):
            yield f"```text\n{dedent(paragraph)}\n```"
        else:
            yield paragraph.replace("``", "`")


def entry_page(name: str, entry: Any) -> Iterator[str]:
    """One entry: what it is, its settings, where it comes from, and where it differs."""
    yield f"### `{name}`"
    parts = split(getdoc(entry) or "")
    yield from about(parts["About"])
    if ismodule(entry):
        yield from about(split(getdoc(entry.read) or "")["About"])
    said = dict(ARGUMENT.findall(parts.get("Args", "")))
    options = settings(entry) if callable(entry) else {}
    if options:
        rows = [f"| `{o}` | `{v!r}` | {flat(said.get(o, ''))} |" for o, v in options.items()]
        yield "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])
    for part in ("Source", "Differs"):
        if part in parts:
            yield f"{part}: {flat(parts[part])}"


def run_file() -> Iterator[str]:
    """What a run file may say, with its defaults."""
    run = import_module("surelabel.config").Run
    said = dict(ARGUMENT.findall(split(getdoc(run) or "")["Attributes"]))
    yield "## A run file"
    yield (
        "A TOML file; each line may be left out, and `--set key=value` changes one of them. How "
        "long and how fast it learns follows the method's recipe; here stands that of "
        f"`{run().method.name}`."
    )
    rows = []
    usual, tables = run(), import_module("surelabel.config").TABLES
    for field in fields(run):
        value = getattr(usual, field.name)
        key = f"{field.name}.name" if field.name in tables else field.name
        default = getattr(value, "name", value)
        rows.append(f"| `{key}` | `{default!r}` | {flat(said.get(field.name, ''))} |")
    yield "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])


def tables() -> str:
    """The page of all tables."""
    blocks = ["# What can be chosen", NOTE.strip(), *run_file()]
    for heading, (module, name, purpose) in TABLES.items():
        table: Mapping[str, Any] = getattr(import_module(f"surelabel.{module}"), name)
        blocks += [f"## {heading}", purpose]
        for key, entry in table.items():
            blocks += entry_page(key, entry)
    return "\n\n".join(blocks) + "\n"


def commands(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    """The help of a command and of all below it."""
    context = click.Context(command, info_name=path.split()[-1], parent=parent, terminal_width=80)
    yield f"{'#' * min(len(path.split()), 3)} {path}"
    yield f"```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below and not below.hidden:
                yield from commands(below, f"{path} {name}", context)


def cli() -> str:
    """The page of all commands."""
    main: click.Command = import_module("surelabel.cli").main
    first, *rest = commands(main, "surelabel", None)
    return "\n\n".join([first, NOTE.strip(), *rest]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when out of date")
    check = parser.parse_args().check
    stale = []
    for name, page in {"cli.md": cli(), "tables.md": tables()}.items():
        file = DOCS / name
        if check and (not file.exists() or file.read_text(encoding="utf-8") != page):
            stale.append(name)
        elif not check:
            file.write_text(page, encoding="utf-8")
    if stale:
        sys.exit(f"Out of date in docs/: {', '.join(stale)}. Run `make docs`.")


if __name__ == "__main__":
    main()
