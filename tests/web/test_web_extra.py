import pytest

from surelabel.errors import MissingPart
from surelabel.web import web_extra
from surelabel.web.web_extra import check_web_extra_is_installed


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    check_web_extra_is_installed()
    monkeypatch.setattr(web_extra, "WEB_PACKAGES", {"no_such_module": "no-such-package"})
    with pytest.raises(MissingPart, match=r"needs the package no-such-package.*surelabel\[web\]"):
        check_web_extra_is_installed()
