import pytest

from surelabel.errors import ConfigError
from surelabel.links import SPA, Focal, Sigmoid
from surelabel.losses import LINK_OF_LOSS
from surelabel.losses.properties.loss_link import make_loss_link


@pytest.mark.parametrize(
    ("loss", "settings", "link"),
    [
        ("binary", {}, Sigmoid()),
        ("spa", {"zeta_neg": 2.0}, SPA(zeta_neg=2.0)),
        ("asymmetric", {"clip": 0.1}, Focal(clip=0.1)),
        ("ranking", {}, None),
    ],
)
def test_the_link_has_the_settings_of_the_loss(loss, settings, link):
    assert repr(make_loss_link(loss, **settings)) == repr(link)


def test_a_setting_of_the_loss_alone_does_not_reach_the_link(monkeypatch):
    monkeypatch.setitem(LINK_OF_LOSS, "weighted", Sigmoid)
    assert isinstance(make_loss_link("weighted", weight=3.0), Sigmoid)


def test_a_loss_without_an_entry_in_the_table_of_links_is_refused():
    with pytest.raises(ConfigError, match=r"loss own_loss has no entry in LINK_OF_LOSS\. Add its"):
        make_loss_link("own_loss")
