from surelabel.bench.supervised import load_supervised_scene_splits
from surelabel.data import collection


def test_quick_splits_are_the_images_of_the_package():
    splits = load_supervised_scene_splits("tiny-rn", quick=True)
    assert (splits.name, splits.encoder) == ("scenes-80, tiny-rn", "tiny-rn")
    for split in ("train", "validation", "test"):
        expected = collection("scenes-80", split=split)
        assert list(getattr(splits, split).paths) == list(expected.paths)
