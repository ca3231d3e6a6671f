"""Write the tags of watched images to XMP sidecars and an index, and find images with outputs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from surelabel.data import write_sidecar_tags
from surelabel.data.xmp_sidecar_paths import is_sidecar_current, shared_sidecars
from surelabel.recognizer.watched_index import WatchedIndex
from surelabel.records import LabelTree, Predictions, SkippedImage
from surelabel.storage.stored_images import StoredImageStatus


@dataclass(frozen=True)
class WrittenOutputs:
    """Result of writing the tags of a batch of images.

    Attributes:
        refused: Sidecars that were not written, each with the reason.
        n_indexed: Number of all images in the index, or None without an index.
    """

    refused: Sequence[SkippedImage]
    n_indexed: int | None


@dataclass(frozen=True)
class WatchedOutputs:
    """Outputs for the images of a watched folder.

    Attributes:
        model: Fingerprint of the recognizer.
        index: Index of the images, or None.
        naming: Naming of the sidecars, ``stem`` or ``full``, or None without sidecars.
        label_tree: Tree of the labels, for hierarchical keywords, or None.
    """

    model: str
    index: WatchedIndex | None = None
    naming: str | None = None
    label_tree: LabelTree | None = None

    def tagged_before(self, images: Mapping[str, StoredImageStatus]) -> set[str]:
        """Return the images that were tagged before, according to the index or the sidecars.

        With an index, these are the images that the index contains with the same size and
        modification time. Otherwise, these are the images that have a sidecar of the same
        recognizer, which was written after the image was changed. Without outputs, there are none.

        Args:
            images: Size and modification time of each image, by path.

        Raises:
            DataError: If the index is damaged or was deleted.
        """
        if self.index is not None:
            recorded = self.index.statuses(images)
            return {path for path, status in images.items() if recorded.get(path) == status}
        if self.naming is None:
            return set()
        return {path for path in images if is_sidecar_current(path, self.naming, self.model)}

    def refused_sidecars(self, images: Collection[str]) -> dict[str, str]:
        """Return the images whose sidecar can belong to another image too, with the reason.

        Args:
            images: Paths of the images.
        """
        if self.naming is None:
            return {}
        return {
            path: f"the sidecar can belong to {' or '.join(names)}; give --sidecar-name full"
            for path, names in shared_sidecars(images, self.naming).items()
        }

    def write(self, predictions: Predictions, refused: Mapping[str, str]) -> WrittenOutputs:
        """Write the sidecars of images, and then add the images to the index in one step.

        If the process is killed in between, the index does not contain the images, so that they are
        tagged again.

        Args:
            predictions: Predictions with the mask of the shown labels.
            refused: Images whose sidecars must not be written, each with the reason.

        Raises:
            InputError: If another recognizer has replaced the predictions of the index.
            DataError: If a sidecar or the index cannot be written.
        """
        refused_sidecars: Sequence[SkippedImage] = ()
        if self.naming is not None:
            refused_sidecars = write_sidecar_tags(
                predictions, self.naming, label_tree=self.label_tree, refused=refused
            ).refused
        n_indexed = None if self.index is None else self.index.add(predictions)
        return WrittenOutputs(refused_sidecars, n_indexed)
