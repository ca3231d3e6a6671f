import pytest

from surelabel.cluster.cluster_indexing import predict_for_index_on_cluster
from surelabel.errors import NoReadableImage
from surelabel.recognizer import index_images_with_recognizer
from surelabel.retrieval import Index


def test_an_index_of_a_cluster_equals_one_of_this_process(cluster, recognizer, images, tmp_path):
    readable = [path for path in images if "poison" not in path][-30:]
    reports = []
    predict = predict_for_index_on_cluster(
        recognizer, readable, tmp_path / "parts", workers=1, report=reports.append
    )
    update = index_images_with_recognizer(tmp_path / "a", recognizer, readable, predict=predict)
    index_images_with_recognizer(tmp_path / "b", recognizer, readable)
    first, second = (Index.open(tmp_path / name) for name in "ab")
    assert first.paths == second.paths
    assert first.content_hashes == second.content_hashes
    assert first.probabilities("lion") == pytest.approx(second.probabilities("lion"), abs=1e-5)
    assert next(first.image_vectors()).shape == (29, first.vector_width)
    assert (update.added, len(update.skipped), reports[0].n_images) == (29, 1, 30)


def test_no_readable_image_is_an_error(cluster, recognizer, images, tmp_path):
    damaged = [path for path in images if "no-image" in path]
    predict = predict_for_index_on_cluster(
        recognizer, damaged, tmp_path / "parts", workers=1, report=print
    )
    with pytest.raises(NoReadableImage, match="got 1 unreadable image"):
        list(predict(damaged))
