"""The pages are true: complete, linked, and what they show in Python runs as shown."""

import doctest
import re
import shlex
import shutil
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from surelabel.cli import main
from surelabel.config import Run
from surelabel.data import collection
from surelabel.tables import table_entry_settings

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CHAPTERS = {  # of docs/tables.md: where the table stands
    "Encoders": ("encoders", "ENCODERS"),
    "Calibrators": ("calibration", "CALIBRATORS"),
    "Caption formats": ("data.captions", "CAPTION_FORMATS"),
    "Corrections": ("pseudolabels", "CORRECTIONS"),
    "Domains of Scenes": ("data.domains", "DOMAINS"),
    "Label formats": ("data.labels", "FORMATS"),
    "Links": ("links", "LINKS"),
    "Fusions": ("views", "FUSIONS"),
    "Guarantees": ("decisions", "GUARANTEES"),
    "Losses": ("losses", "LOSSES"),
    "Losses of sets": ("losses", "SET_LOSSES"),
    "Methods": ("methods", "METHODS"),
    "Metrics": ("metrics", "POOLED"),
    "Operating points": ("decisions", "OPERATING_POINTS"),
    "Optimizers": ("optimizers", "OPTIMIZERS"),
    "Pseudo-labels": ("pseudolabels", "PSEUDOLABELS"),
    "Regularizers": ("regularizers", "REGULARIZERS"),
    "Transports": ("transport", "TRANSPORTS"),
    "Score domains": ("methods", "SCORE_DOMAINS"),
    "Sewings": ("pseudolabels", "SEWINGS"),
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]*)(#[^)]*)?\)")


def text(page):
    return page.read_text(encoding="utf-8")


def section(heading, words):
    """What stands under a heading, up to the next one that is not below it."""
    start = re.search(rf"^(#+) {re.escape(heading)}\n", words, re.MULTILINE)
    assert start, f"no heading {heading!r}; run `make docs`"
    below = words[start.end() :]
    return re.split(rf"^#{{1,{len(start[1])}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]


def examples(page):
    """All Python blocks of a page as one doctest; the line numbers stay those of the page."""
    keep = [""] * (text(page).count("\n") + 1)
    for block in BLOCK.finditer(text(page)):
        start = text(page)[: block.start(1)].count("\n")
        lines = block[1].splitlines()
        keep[start : start + len(lines)] = lines
    return doctest.DocTestParser().get_doctest("\n".join(keep), {}, page.name, str(page), 0)


WITH_EXAMPLES = [p for p in PAGES if examples(p).examples]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda p: p.name)
def test_what_a_page_shows_in_python_is_what_python_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    complaints = []
    result = doctest.DocTestRunner().run(examples(page), out=complaints.append)
    assert not result.failed, "".join(complaints)


def test_the_commands_of_readme_on_photographs_end_in_a_search(
    tmp_path, monkeypatch, random_checkpoint, browser
):
    """Random weights, in place of the named encoder, give probabilities without meaning."""
    monkeypatch.chdir(tmp_path)
    photographs = collection("scenes-80", split="test").paths[:24]
    Path("photos").mkdir()
    for path in photographs:
        shutil.copy(path, "photos")
    block = SHELL_BLOCK.search(section("Photographs", text(ROOT / "README.md")))[1]
    lines = block.replace("\\\n", " ").splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["surelabel", command] for command in ("tag", "index", "search")
    ]
    outputs = []
    for line in lines:
        words = shlex.split(line.replace("ViT-B-16/openai", f"local-dir:{random_checkpoint}"))
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, done.output
        outputs.append(done.output)
    tags, index, search = outputs
    assert all(Path("photos", Path(path).name).as_posix() in tags for path in photographs)
    assert "24 images and 3 labels" in index
    assert all("Not verified: no labels were available." in output for output in outputs)
    assert search.count(".jpg") == 20
    assert Path("dogs.html").read_text().count("<img") == 20
    assert browser.read_text().strip() == Path("dogs.html").absolute().as_uri()


def test_readme_shows_python_that_runs():
    assert ROOT / "README.md" in WITH_EXAMPLES


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_on_a_page_is_written_as_a_session(page):
    assert all(">>>" in block for block in BLOCK.findall(text(page)))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page):
    linked = [target for target, _ in LINK.findall(text(page)) if target]
    assert not [target for target in linked if not (page.parent / target).exists()]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_entry_and_setting_of_a_table_is_on_its_page(chapter):
    module, table = CHAPTERS[chapter]
    words = section(chapter, text(ROOT / "docs" / "tables.md"))
    for name, entry in getattr(import_module(f"surelabel.{module}"), table).items():
        described = section(f"`{name}`", words)
        options = table_entry_settings(entry) if callable(entry) else {}
        assert not [option for option in options if f"`{option}`" not in described]


def test_every_setting_on_the_page_of_tables_has_a_meaning():
    page = text(ROOT / "docs" / "tables.md")
    assert not re.findall(r"^\| `\w+` .*\|\s*\|$", page, re.MULTILINE)


@pytest.mark.parametrize("field", [f.name for f in fields(Run)])
def test_every_part_of_a_run_file_is_on_its_page(field):
    described = section("Run file", text(ROOT / "docs" / "tables.md"))
    assert f"`{field}`" in described or f"`{field}.name`" in described


def test_every_command_and_option_is_on_the_page_of_commands():
    words = text(ROOT / "docs" / "cli.md")
    context = click.Context(main)
    for name in main.list_commands(context):
        described = section(f"surelabel {name}", words)
        options = main.get_command(context, name).params
        flags = [flag for option in options for flag in option.opts if flag.startswith("-")]
        assert not [flag for flag in flags if flag not in described]


def test_readme_links_every_page():
    pages = {f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")}
    assert pages <= {target for target, _ in LINK.findall(text(ROOT / "README.md"))}
