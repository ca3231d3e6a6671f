import os

from surelabel.report.image_paths import (
    common_image_folder,
    render_image_folder,
    render_image_path,
)


def test_paths_are_shown_relative_to_their_common_folder():
    paths = ["/photos/2024/a.jpg", "/photos/2025/<b>.jpg"]
    folder = common_image_folder(paths)
    assert folder == "/photos"
    shown = [render_image_path(path, folder) for path in paths]
    assert "<bdi>2024/a.jpg</bdi>" in shown[0]
    assert "2025/&lt;b&gt;.jpg" in shown[1]
    assert "The image paths are relative to <code>/photos</code>." in render_image_folder(folder)


def test_paths_without_a_common_folder_are_shown_as_they_are():
    for paths in (["a.jpg", "photos/b.jpg"], ["/photos/a.jpg", "b.jpg"], []):
        folder = common_image_folder(paths)
        assert folder == ""
        assert render_image_folder(folder) == ""
        for path in paths:
            assert f"<bdi>{path}</bdi>" in render_image_path(path, folder)


def test_one_image_is_shown_by_its_file_name():
    folder = common_image_folder([os.path.join("photos", "a.jpg")])
    assert folder == "photos"
    assert "<bdi>a.jpg</bdi>" in render_image_path("photos/a.jpg", folder)
