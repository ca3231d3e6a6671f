"""Write the generated pages of the documentation: `python docs/generate.py [--check]`.

`cli.md` contains the help of every command. `tables.md` lists the entries of all tables with their
docstrings. A part of `models.md` has the results in `encoder_families.json`. With `--check` no page
is written, and an outdated page is an error.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from inspect import getdoc, ismodule
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from surelabel.export import EXPORT_FORMATS
from surelabel.tables import table_entry_settings

DOCS = Path(__file__).parent
NOTE = "<!-- Generated from the code by docs/generate.py: do not edit; run `make docs`. -->\n"
FAMILY_NOTE = "<!-- Tables of encoder families, written by docs/generate.py -->"
TABLES = {  # heading: module, table, description
    "Encoders": (
        "encoders",
        "ENCODERS",
        "Encoders inside the package. `--model` also takes `ARCHITECTURE/PRETRAINED` "
        "and `hf-hub:NAME` of open_clip, `local-dir:FOLDER`, `transformers:FOLDER`, `timm:NAME`, "
        "`onnx:FILE`, `features:WIDTH` and `scores:KIND`.",
    ),
    "Engines": (
        "encoders.engines",
        "ENGINES",
        "Runtimes that compute the features of images: `--engine`, in the number format `--dtype`.",
    ),
    "Methods": ("methods", "METHODS", "Methods compute scores from features."),
    "Score domains": (
        "methods",
        "SCORE_DOMAINS",
        "Normalization of the text scores of methods without labels: their setting `domain`.",
    ),
    "Losses": ("losses", "LOSSES", "Losses with one value for each image and label."),
    "Losses of sets": (
        "losses",
        "SET_LOSSES",
        "Losses that compare the labels of an image; they do not determine the level of the "
        "scores.",
    ),
    "Regularizers": (
        "regularizers",
        "REGULARIZERS",
        "Terms added to the loss, with the weight `regularizer_weight`.",
    ),
    "Optimizers": ("optimizers", "OPTIMIZERS", "Optimizers for fitting."),
    "Links": ("links", "LINKS", "Functions from scores to log-odds; each loss has its own link."),
    "Fusions": (
        "views",
        "FUSIONS",
        "Functions that combine the scores of the whole image and of its views.",
    ),
    "Pseudo-labels": (
        "pseudolabels",
        "PSEUDOLABELS",
        "Targets from scores, for unlabelled images.",
    ),
    "Corrections": (
        "pseudolabels",
        "CORRECTIONS",
        "Functions that raise the log-odds of the labels ranked first in an image.",
    ),
    "Sewings": (
        "pseudolabels",
        "SEWINGS",
        "Training of a student without labels: images sewn together, with learned pseudo-labels.",
    ),
    "Transports": (
        "transport",
        "TRANSPORTS",
        "Solvers that match the regions of an image to labels.",
    ),
    "Calibrators": ("calibration", "CALIBRATORS", "Calibrators, fitted on held-out images."),
    "Operating points": (
        "decisions",
        "OPERATING_POINTS",
        "One threshold for each label, selected for a goal; probabilities do not change.",
    ),
    "Guarantees": (
        "decisions",
        "GUARANTEES",
        "One threshold for all labels, with a statistical guarantee for images from the "
        "distribution of the annotated ones.",
    ),
    "Metrics": (
        "metrics",
        "POOLED",
        "Metrics over all images and labels; most have a version for each class, "
        "`NAME_per_class`. Undefined values are NaN.",
    ),
    "Label formats": ("data.labels", "FORMATS", "Formats of annotation files."),
    "Caption formats": ("data.captions", "CAPTION_FORMATS", "Formats of caption files."),
    "Export formats": (
        "export",
        "EXPORT_FORMATS",
        "Files that `surelabel export` writes, by their suffix.",
    ),
    "Domains of Scenes": ("data.domains", "DOMAINS", "Styles of rendered images: `--domain`."),
}
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Source", "Differs", "Example")
SECTION_HEADER = re.compile(rf"^({'|'.join(SECTIONS)}):$", re.MULTILINE)
ARGUMENT = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {6,}.*)*)", re.MULTILINE)


def split_docstring(doc: str) -> dict[str, str]:
    """Return the sections of a docstring; the text before the first one is ``About``."""
    pieces = ["About", *SECTION_HEADER.split(doc)]
    return dict(zip(pieces[::2], (piece.strip("\n") for piece in pieces[1::2]), strict=True))


def join_lines(text: str) -> str:
    """Join lines to one, escaped for a table cell."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def argument_meanings(section: str) -> dict[str, str]:
    """Return the meaning of each argument; ``a, b: …`` is the meaning of both arguments."""
    return {
        name: join_lines(meaning)
        for names, meaning in ARGUMENT.findall(section)
        for name in names.split(", ")
    }


def about_paragraphs(text: str) -> Iterator[str]:
    """Iterate over the paragraphs of a docstring; formulas (indented) become code blocks."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(" "):
            yield f"```text\n{dedent(paragraph)}\n```"
        else:
            yield paragraph.replace("``", "`")


def entry_paragraphs(name: str, entry: Any) -> Iterator[str]:
    """Iterate over the description, settings, source and differences of a table entry."""
    yield f"### `{name}`"
    sections = split_docstring(getdoc(entry) or "")
    yield from about_paragraphs(sections["About"])
    if ismodule(entry) and name not in EXPORT_FORMATS:
        yield from about_paragraphs(split_docstring(getdoc(entry.read) or "")["About"])
    meanings = argument_meanings(sections.get("Args", ""))
    defaults = table_entry_settings(entry) if callable(entry) else {}
    if defaults:
        rows = [
            f"| `{setting}` | `{default!r}` | {meanings.get(setting, '')} |"
            for setting, default in defaults.items()
        ]
        yield "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])
    for section in ("Source", "Differs"):
        if section in sections:
            yield f"{section}: {join_lines(sections[section])}"


def run_file_paragraphs() -> Iterator[str]:
    """Iterate over the description of a run file and its keys with defaults."""
    run_class = import_module("surelabel.config").Run
    attributes = split_docstring(getdoc(run_class) or "")["Attributes"]
    meanings = argument_meanings(attributes)
    yield "## Run file"
    yield (
        "A TOML file in which every key is optional; `--set key=value` changes one key. The "
        "defaults of training length and learning rate depend on the method; the table shows "
        f"those of `{run_class().method.name}`."
    )
    rows = []
    defaults, tables = run_class(), import_module("surelabel.config").TABLES
    for field in fields(run_class):
        value = getattr(defaults, field.name)
        key = f"{field.name}.name" if field.name in tables else field.name
        default = getattr(value, "name", value)
        rows.append(f"| `{key}` | `{default!r}` | {meanings.get(field.name, '')} |")
    yield "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])


def tables_page() -> str:
    """Return the page of all tables."""
    blocks = ["# Settings and table entries", NOTE.strip(), *run_file_paragraphs()]
    for heading, (module, name, description) in TABLES.items():
        table: Mapping[str, Any] = getattr(import_module(f"surelabel.{module}"), name)
        blocks += [f"## {heading}", description]
        for key, entry in table.items():
            blocks += entry_paragraphs(key, entry)
    return "\n\n".join(blocks) + "\n"


def command_sections(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[str]:
    """Iterate over the help of a command and its subcommands."""
    context = click.Context(command, info_name=path.split()[-1], parent=parent, terminal_width=80)
    yield f"{'#' * min(len(path.split()), 3)} {path}"
    yield f"```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            if subcommand and not subcommand.hidden:
                yield from command_sections(subcommand, f"{path} {name}", context)


def cli_page() -> str:
    """Return the page of all commands."""
    main_command: click.Command = import_module("surelabel.cli").main
    first, *others = command_sections(main_command, "surelabel", None)
    return "\n\n".join([first, NOTE.strip(), *others]) + "\n"


def family_row(family: str, row: Mapping[str, Any], features: Sequence[str]) -> str:
    """Return the row of an encoder family in the table of features."""
    full = row["full"]
    size = f"{full['architecture']}, {full['size']:.1f} GB" if full else "not tested"
    cells = [family, f"`{row['architecture']}`", size]
    cells += ["yes" if row["small"][feature] else "-" for feature in features]
    return f"| {' | '.join(cells)} |"


def family_tables() -> Iterator[str]:
    """Iterate over the tables of the encoder families of open_clip."""
    results = json.loads((DOCS / "encoder_families.json").read_text(encoding="utf-8"))
    for kind in ("image", "text"):
        features = results[f"{kind}_features"]
        heading = ["family", "small model", "full size", *features]
        lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
        rows = results["families"].items()
        yield "\n".join(lines + [family_row(name, row, features) for name, row in rows])
    lines = ["| family | architectures that were not tested |", "|---|---|"]
    for family, row in results["families"].items():
        if row["untested"]:
            lines.append(f"| {family} | {', '.join(row['untested'])} |")
    for name, (images, texts) in results["derived"].items():
        lines.append(f"| images: {images}; texts: {texts} | {name} |")
    yield "\n".join(lines)


def models_page() -> str:
    """Return the page of encoders, with new tables between the two notes."""
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    before, _, after = page.split(FAMILY_NOTE)
    return FAMILY_NOTE.join([before, "\n\n" + "\n\n".join(family_tables()) + "\n\n", after])


def main() -> None:
    """Write the pages, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write no page; fail if a page is outdated"
    )
    check_only = parser.parse_args().check
    outdated = []
    pages = {"cli.md": cli_page(), "models.md": models_page(), "tables.md": tables_page()}
    for name, page in pages.items():
        file = DOCS / name
        if check_only and (not file.exists() or file.read_text(encoding="utf-8") != page):
            outdated.append(name)
        elif not check_only:
            file.write_text(page, encoding="utf-8")
    if outdated:
        sys.exit(f"Outdated pages in docs/: {', '.join(outdated)}. Run `make docs`.")


if __name__ == "__main__":
    main()
