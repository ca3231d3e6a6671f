"""Create or update an index from a folder of predictions, block by block."""

from dataclasses import replace
from pathlib import Path

from surelabel.data import (
    check_prediction_folder_is_complete,
    find_part_rows,
    prediction_folder_blocks,
    prediction_folder_paths,
    read_unpredicted_images,
)
from surelabel.progress import Progress
from surelabel.recognizer.indexing import IndexUpdate
from surelabel.retrieval import Index, IndexRecognizer
from surelabel.retrieval.index_manifest import check_index_manifest_folder
from surelabel.retrieval.index_root import common_index_root, default_index_root
from surelabel.storage.image_paths import absolute_image_path


def index_prediction_folder(
    folder: str | Path,
    predictions: str | Path,
    *,
    root: str | Path | None = None,
    recognizer: IndexRecognizer | None = None,
    progress: Progress | None = None,
) -> IndexUpdate:
    """Create an index from a folder of predictions, or add the predictions to an index.

    No image is encoded, and image files need not exist. One block of predictions and the row
    numbers of all images, 16 bytes per image, are in memory. If the process is killed, call the
    function again; images that are already in the index are replaced.

    Args:
        folder: Folder of the index. If the folder does not exist, the folder is created.
        predictions: Complete folder of calibrated predictions. Relative paths of images are
            relative to the current folder.
        root: Root folder of the images, as for :func:`index_images_with_recognizer`.
        recognizer: Name and labels of the recognizer, which a new index records.
        progress: Function called with the number of indexed images and the total number of images.

    Raises:
        DataError: If predictions of images are missing, if a part is damaged, if the same image is
            in two parts, or if the folder contains other files.
        NotFitted: If the predictions are not calibrated.
        InputError: If the index contains predictions of another recognizer.
    """
    check_prediction_folder_is_complete(predictions)
    failed = read_unpredicted_images(predictions).images
    n_images, n_indexed, n_changed = len(find_part_rows(predictions)), 0, 0
    index, indexed = None, set[str]()
    if (Path(folder) / "index.json").exists():
        index = Index.open(folder, root=root)
        indexed = set(index.paths)
    else:
        check_index_manifest_folder(Path(folder))
        root = root or common_index_root(
            map(absolute_image_path, prediction_folder_paths(predictions)),
            default_index_root(folder),
        )
    for block in prediction_folder_blocks(predictions):
        first_block = replace(block, skipped=failed)
        if index is None:
            index = Index.create(
                folder, first_block, root=root, recognizer=recognizer, must_be_new=True
            )
        else:
            index.add(block if n_indexed else first_block)
        n_indexed += len(block)
        n_changed += sum(absolute_image_path(path) in indexed for path in block.paths)
        if progress:
            progress(n_indexed, n_images)
    assert index is not None  # a complete folder has predictions of an image
    n_removed = sum(absolute_image_path(image.path) in indexed for image in failed)
    return IndexUpdate(index, n_indexed - n_changed, n_changed, n_removed, failed)
