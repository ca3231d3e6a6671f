import re

from surelabel.web.static_files import STATIC_FOLDER, read_static_files

TEMPLATES = sorted((STATIC_FOLDER.parent / "templates").glob("*.html"))


def test_each_file_has_the_type_of_its_suffix_and_a_tag_of_its_content():
    files = read_static_files()
    assert files["page.css"].content_type.startswith("text/css")
    assert files["icon.svg"].content_type == "image/svg+xml"
    assert files["page.js"].content == (STATIC_FOLDER / "page.js").read_bytes()
    assert len({file.tag for file in files.values()}) == len(files)


def test_scripts_import_only_files_that_exist():
    files = read_static_files()
    scripts = {name: file.content.decode() for name, file in files.items() if name.endswith(".js")}
    imported = {
        name for text in scripts.values() for name in re.findall(r'from "\./([^"]+)"', text)
    }
    assert imported <= scripts.keys()
    assert scripts.keys() - imported == {"page.js", "login.js"}


def test_templates_link_only_files_that_exist():
    text = "".join(template.read_text(encoding="utf-8") for template in TEMPLATES)
    linked = set(re.findall(r'"/static/([^"]+)"', text))
    assert {"page.js", "login.js", "page.css"} <= linked <= read_static_files().keys()


def test_identifiers_of_elements_in_scripts_exist_in_the_templates():
    text = "".join(template.read_text(encoding="utf-8") for template in TEMPLATES)
    identifiers = set(re.findall(r'\bid="([\w-]+)"', text))
    scripts = "".join(path.read_text(encoding="utf-8") for path in STATIC_FOLDER.glob("*.js"))
    used = set(re.findall(r'byId\(\s*"([\w-]+)"', scripts))
    assert len(used) > 50
    assert used <= identifiers


def test_no_script_parses_texts_as_html_or_executes_texts():
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    for script in STATIC_FOLDER.glob("*.js"):
        assert not re.search(forbidden, script.read_text(encoding="utf-8")), script.name


def test_no_template_has_inline_scripts_styles_or_listeners():
    for template in TEMPLATES:
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text), (
            template.name
        )
