"""Construct the link of a loss with given settings."""

from typing import Any

from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.losses import LINK_OF_LOSS
from surelabel.tables import table_entry_settings


def make_loss_link(name: str, **settings: Any) -> Link | None:
    """Return the link of a head that was trained with a loss; if there is no link, return None.

    Args:
        name: Key of ``LOSSES`` or ``SET_LOSSES``.
        settings: Settings of the loss. Settings that the link does not have are ignored.

    Raises:
        ConfigError: If the loss has no entry in ``LINK_OF_LOSS``, or a setting is out of range.

    Example:
        >>> make_loss_link("focal", gamma_neg=1.0)
        Focal(gamma_pos=2.0, gamma_neg=1.0, clip=0.0, variant='paper')
    """
    if name not in LINK_OF_LOSS:
        raise ConfigError(
            f"The loss {name} has no entry in LINK_OF_LOSS. Add its link, or None if its scores "
            "have no log-odds, to LINK_OF_LOSS in losses/__init__.py."
        )
    link = LINK_OF_LOSS[name]
    if link is None:
        return None
    accepted = table_entry_settings(link)
    return link(**{key: value for key, value in settings.items() if key in accepted})
