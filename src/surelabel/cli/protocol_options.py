"""Define the options of comparisons on the dataset of an evaluation protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from surelabel.cli.terminal import Command

if TYPE_CHECKING:
    from surelabel.bench import ImageSplits
    from surelabel.data import Vocabulary


@dataclass(frozen=True)
class ProtocolOptions:
    """Evaluation protocol of a comparison, with the folder of its dataset.

    Attributes:
        name: Name of the evaluation protocol.
        folder: Folder of the dataset in its official layout.
        subset: Whether images may be missing.
    """

    name: str
    folder: str
    subset: bool

    @property
    def vocabulary(self) -> "Vocabulary":
        """Return the seen and unseen labels of the evaluation protocol."""
        from surelabel.data import Vocabulary
        from surelabel.data.protocols import PROTOCOLS

        groups = PROTOCOLS[self.name].groups
        return Vocabulary(groups["seen"], groups["unseen"])

    def load_image_splits(self, comparison: str) -> "ImageSplits":
        """Return the annotated images for a comparison; see ``load_protocol_image_splits``."""
        from surelabel.bench import load_protocol_image_splits

        return load_protocol_image_splits(
            self.name, self.folder, comparison=comparison, subset=self.subset
        )


def protocol_options(function: Command) -> Command:
    """Add the options ``--protocol``, ``--data`` and ``--subset`` as one argument ``data``."""

    @wraps(function)
    def with_protocol_options(
        *args: Any, protocol: str | None, folder: str | None, subset: bool, **values: Any
    ) -> Any:
        data = parse_protocol_options(protocol, folder, subset)
        return function(*args, data=data, **values)

    options: list[Callable[[Command], Command]] = [
        click.option(
            "--protocol",
            metavar="NAME",
            help="Evaluation protocol of --data, such as voc12. `surelabel protocol` lists all.",
        ),
        click.option(
            "--data",
            "folder",
            type=click.Path(exists=True),
            metavar="FOLDER",
            help="Folder of the dataset in its official layout.",
        ),
        click.option(
            "--subset",
            is_flag=True,
            help="Accept a folder in which images are missing, and mark the tables.",
        ),
    ]
    command: Command = with_protocol_options
    for option in reversed(options):
        command = option(command)
    return command


def parse_protocol_options(
    protocol: str | None, folder: str | None, subset: bool
) -> ProtocolOptions | None:
    """Return the options of an evaluation protocol, or None if they are not given.

    Raises:
        UsageError: If only some of the options are given.
    """
    if protocol is None and folder is None and not subset:
        return None
    if protocol is None or folder is None:
        missing = "--protocol NAME" if protocol is None else "--data FOLDER"
        raise click.UsageError(
            f"--protocol and --data must be given together; {missing} is missing. Add {missing}."
        )
    return ProtocolOptions(protocol, folder, subset)
