"""This module defines a record of the license of the weights of an encoder."""

from dataclasses import dataclass

COMMERCIAL_LICENSES = (  # identifiers of the Hugging Face hub
    "apache-2.0",
    "bsd-2-clause",
    "bsd-3-clause",
    "cc-by-4.0",
    "cc-by-sa-4.0",
    "cc0-1.0",
    "isc",
    "mit",
    "unlicense",
)
RESEARCH_LICENSES = ("apple-amlr",)  # research only, without "-nc" in the identifier


@dataclass(frozen=True)
class EncoderLicense:
    """License of the weights of an encoder.

    Attributes:
        name: Identifier of the license on the Hugging Face hub, such as ``mit`` or
            ``cc-by-nc-4.0``. If the license is unknown, the identifier is empty.
        source: Document that states the identifier, such as ``the model card of owner/name``.

    Example:
        >>> print(EncoderLicense("cc-by-nc-4.0", "its model card"))
        cc-by-nc-4.0, according to its model card; no commercial use
        >>> print(EncoderLicense())
        unknown; read the model card before commercial use
    """

    name: str = ""
    source: str = ""

    @property
    def permits_commercial_use(self) -> bool | None:
        """Return whether the license permits commercial use, or None if this is unknown."""
        if self.name in COMMERCIAL_LICENSES:
            return True
        return False if self.name in RESEARCH_LICENSES or "-nc" in self.name else None

    def __str__(self) -> str:
        if not self.name:
            return "unknown; read the model card before commercial use"
        permission = {
            True: "permits commercial use",
            False: "no commercial use",
            None: "read the license before commercial use",
        }[self.permits_commercial_use]
        return f"{self.name}, according to {self.source}; {permission}"
