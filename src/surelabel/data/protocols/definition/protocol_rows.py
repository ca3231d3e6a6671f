"""Define the annotations of a split of an evaluation protocol, before images are looked up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array
from surelabel.errors import DataError


@dataclass(frozen=True, eq=False)
class ProtocolRows:
    """Annotations of the images of a split.

    Attributes:
        images: Path of each image, relative to the folder of the dataset, length n.
        names: Labels of the columns of ``targets``, length c.
        targets: Targets with 1 = positive, 0 = negative, NaN = unknown, ``(n, c)``.
        captions: Captions, length m; empty for labels.
        image_rows: Row of the image of each caption, length m.
        defects: Defects of the files that were found, one sentence each. They are problems of the
            check.
        image_ids: Id of each image in the dataset, length n, or empty. Relevance files, such as
            those of ECCV Caption, refer to ids.
        caption_ids: Id of each caption in the dataset, length m, or empty.
        known_defects: Properties of the annotations that correct copies of the published files
            have, too, such as identical labels, one sentence each. They are reported as notes, and
            the check can pass.

    Raises:
        DataError: If an image occurs twice.
    """

    images: Sequence[str]
    names: Sequence[str]
    targets: Array
    captions: Sequence[str] = ()
    image_rows: Sequence[int] = ()
    defects: Sequence[str] = ()
    image_ids: Sequence[int] = ()
    caption_ids: Sequence[int] = ()
    known_defects: Sequence[str] = ()

    def __post_init__(self) -> None:
        first_row: dict[str, int] = {}
        for row, image in enumerate(self.images):
            if image in first_row:
                raise DataError(
                    f"Each image of a split must occur once; got {image!r} in rows "
                    f"{first_row[image]} and {row}, counted from 0. Correct the list of the split."
                )
            first_row[image] = row

    def take(self, rows: Sequence[int]) -> "ProtocolRows":
        """Return the annotations of some images, with their captions.

        Args:
            rows: Increasing indices of images.
        """
        new_row = {row: number for number, row in enumerate(rows)}
        kept = [number for number, row in enumerate(self.image_rows) if row in new_row]
        return ProtocolRows(
            [self.images[row] for row in rows],
            self.names,
            self.targets[np.asarray(rows, dtype=np.intp)],
            [self.captions[number] for number in kept],
            [new_row[self.image_rows[number]] for number in kept],
            self.defects,
            [self.image_ids[row] for row in rows] if self.image_ids else (),
            [self.caption_ids[number] for number in kept] if self.caption_ids else (),
            self.known_defects,
        )
