import pytest

from surelabel.data.labels.resolution.relative_image_paths import check_relative_image_path
from surelabel.errors import DataError


@pytest.mark.parametrize("path", ["a.jpg", "sub/c d.jpg", "sub/../a.jpg", "..a/b..jpg", "./a.jpg"])
def test_a_path_is_accepted_inside_the_folder_and_refused_beside_it(path):
    check_relative_image_path("file, line 1", path)
    with pytest.raises(DataError, match="must have a relative path inside the folder"):
        check_relative_image_path("file, line 1", f"../{path}")


@pytest.mark.parametrize(
    "path", ["", "..", "../a.jpg", "sub/../../a.jpg", r"..\a.jpg", "a\0.jpg", "\ud800.jpg"]
)
@pytest.mark.parametrize("allows_absolute", [False, True])
def test_a_path_that_leaves_the_folder_or_is_no_text_is_refused(path, allows_absolute):
    with pytest.raises(DataError, match=r"^file, line 1: an image must have a .*Correct the path"):
        check_relative_image_path("file, line 1", path, allows_absolute=allows_absolute)


@pytest.mark.parametrize("path", ["/a.jpg", r"C:\a.jpg", r"\\server\a.jpg", "s3://bucket/a.jpg"])
def test_an_absolute_path_is_accepted_only_if_the_format_has_such_paths(path):
    check_relative_image_path("file, line 1", path, allows_absolute=True)
    with pytest.raises(DataError, match="must have a relative path inside the folder"):
        check_relative_image_path("file, line 1", path)
