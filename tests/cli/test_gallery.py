import webbrowser

from surelabel.cli.gallery import open_gallery_in_browser
from surelabel.cli.terminal import Terminal


def test_the_page_is_shown_in_the_browser(home, run, browser):
    done = run("search", "index", "lion", "--gallery", "a page.html", "--open")
    assert done.code == 0
    assert browser.read_text() == (home / "a page.html").as_uri() + "\n"


def test_without_a_browser_the_path_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    monkeypatch.setattr(webbrowser, "_browsers", {})
    open_gallery_in_browser(Terminal(), "page.html")
    assert "No browser was found; open page.html in a browser." in capsys.readouterr().err


def test_a_gallery_that_cannot_be_written_is_refused_before_the_search(home, run):
    (home / "file").touch()
    done = run("search", "nowhere", "lion", "--gallery", "file/page.html")
    assert done.code == 1
    assert "file/page.html cannot be written" in done.err
    assert "file is a file" in done.err
