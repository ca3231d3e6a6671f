"""Settings that count something."""

from surelabel.errors import ConfigError


def whole(name: str, value: float, *, least: int = 1) -> int:
    """The value as a whole number.

    Raises:
        ConfigError: it is not whole, or less than ``least``.
    """
    if not float(value).is_integer() or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}. Got {value}.")
    return int(value)
