from io import BytesIO

import pytest
from PIL import Image

from surelabel.retrieval import Index

TRAVERSALS = ["..%2f..%2fetc%2fpasswd", "%2e%2e", "0-0-..%2f", "0-0-0000000000000000", "9-9-x"]
TRAVERSALS += ["0-99999999999-0000000000000000", "..%5c..%5cwindows", "%00", "/etc/passwd"]


def test_an_image_has_its_path_date_size_and_labels(client, identifier, home):
    found = client.get(f"/api/images/{identifier('rotated.jpg')}?limit=3").json()
    assert found["path"] == str(home / "images" / "rotated.jpg")
    assert (found["width"], found["height"]) == (100, 300)
    assert found["date"][:2] == "20"
    hits = Index.open(home / "index").search(found["labels"][0]["label"] + " & path:rotated*")
    assert found["labels"][0]["probability"] == pytest.approx(hits[0].probability, rel=1e-5)
    probabilities = [label["probability"] for label in found["labels"]]
    assert probabilities == sorted(probabilities, reverse=True)


def test_a_thumbnail_is_an_upright_jpeg_without_metadata(client, identifier):
    response = client.get(f"/api/images/{identifier('rotated.jpg')}/thumbnail?size=64")
    assert response.headers["content-type"] == "image/jpeg"
    with Image.open(BytesIO(response.content)) as image:
        assert image.size == (21, 64)
        assert not image.getexif()
        assert "comment" not in image.info
    assert b"secret" not in response.content
    assert "x-surelabel-placeholder" not in response.headers


def test_an_unchanged_thumbnail_is_not_sent_again(client, identifier):
    url = f"/api/images/{identifier('rotated.jpg')}/thumbnail?size=64"
    tag = client.get(url).headers["etag"]
    again = client.get(url, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.jpg", "does not exist"),
        ("link.jpg", "symbolic link out of the root"),
        ("outer-link.jpg", "symbolic link out of the root"),
        ("svg.jpg", "not an image of a supported format"),
        ("bomb.png", "60000 ? 60000 pixels"),
    ],
)
def test_an_image_that_is_not_served_has_a_placeholder_with_the_reason(
    client, identifier, name, reason, home
):
    response = client.get(f"/api/images/{identifier('/' + name)}/thumbnail?size=64")
    assert response.status_code == 200
    assert reason in response.headers["x-surelabel-placeholder"]
    assert str(home) not in str(response.headers)
    with Image.open(BytesIO(response.content)) as image:
        assert image.size == (64, 64)


@pytest.mark.parametrize("size", ["63", "513", "../64", "64%00", ""])
def test_a_size_out_of_range_is_refused(client, identifier, size):
    url = f"/api/images/{identifier('rotated.jpg')}/thumbnail?size={size}"
    assert client.get(url).status_code == 400


def test_a_file_is_sent_unchanged_with_the_type_of_its_content(client, identifier, home):
    response = client.get(f"/api/images/{identifier('rotated.jpg')}/file")
    assert response.content == (home / "images" / "rotated.jpg").read_bytes()
    assert response.headers["content-type"] == "image/jpeg"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_part_of_a_file_is_sent(client, identifier, home):
    url = f"/api/images/{identifier('rotated.jpg')}/file"
    content = (home / "images" / "rotated.jpg").read_bytes()
    part = client.get(url, headers={"Range": "bytes=10-99"})
    assert (part.status_code, part.content) == (206, content[10:100])
    assert part.headers["content-range"] == f"bytes 10-99/{len(content)}"
    assert part.headers["x-content-type-options"] == "nosniff"
    after_end = client.get(url, headers={"Range": f"bytes={len(content)}-"})
    assert after_end.status_code == 416
    assert after_end.headers["content-range"] == f"bytes */{len(content)}"


@pytest.mark.parametrize("operation", ["file", "thumbnail?size=64"])
def test_a_head_request_has_the_headers_of_the_content_without_it(client, identifier, operation):
    url = f"/api/images/{identifier('rotated.jpg')}/{operation}"
    response, head = client.get(url), client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(response.content))
    names = ["content-type", "etag", "cache-control", "content-security-policy"]
    assert [head.headers[name] for name in names] == [response.headers[name] for name in names]
    again = client.head(url, headers={"If-None-Match": head.headers["etag"]})
    assert again.status_code == 304


def test_an_image_in_an_archive_is_sent_as_a_whole(
    tmp_path, photographs, tar_archive, write_index, running_server
):
    content = photographs[0].read_bytes()
    tar_archive(tmp_path / "a.tar", [("x.jpg", content)])
    write_index(tmp_path / "index", [tmp_path / "a.tar" / "x.jpg"], tmp_path)
    with running_server(tmp_path / "index") as served:
        hit = served.client.get("/api/search", params={"q": "lion"}).json()["hits"][0]
        url = f"/api/images/{hit['id']}/file"
        part = served.client.get(url, headers={"Range": "bytes=0-9"})
        assert (part.status_code, part.content) == (200, content)
        assert "accept-ranges" not in part.headers
        head = served.client.head(url)
        assert (head.headers["content-length"], head.content) == (str(len(content)), b"")
        again = served.client.get(url, headers={"If-None-Match": head.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["link.jpg", "outer-link.jpg", "missing.jpg", "svg.jpg"])
def test_a_part_or_the_head_of_a_file_that_is_not_served_is_not_found(client, identifier, name):
    url = f"/api/images/{identifier('/' + name)}/file"
    assert client.head(url).status_code == 404
    assert client.get(url, headers={"Range": "bytes=0-9"}).status_code == 404


def test_a_link_inside_the_root_and_an_absolute_path_outside_are_served(
    client, identifier, home, photographs
):
    inner = client.get(f"/api/images/{identifier('inner.jpg')}/file")
    outside = client.get(f"/api/images/{identifier('outside/' + photographs[3].name)}/file")
    assert inner.content == photographs[1].read_bytes()
    assert outside.content == photographs[3].read_bytes()


@pytest.mark.parametrize("name", ["link.jpg", "outer-link.jpg", "missing.jpg", "svg.jpg"])
def test_a_file_out_of_the_root_or_without_an_image_is_not_found(client, identifier, name, home):
    response = client.get(f"/api/images/{identifier('/' + name)}/file")
    assert response.status_code == 404
    assert str(home) not in response.text


@pytest.mark.parametrize("name", TRAVERSALS)
@pytest.mark.parametrize("route", ["", "/thumbnail", "/file", "/heat-map?label=lion"])
def test_an_identifier_that_is_not_in_the_index_is_not_found(get, name, route):
    status, content = get(f"/api/images/{name}{route}")
    assert status == 404
    assert "root:" not in content


def test_an_identifier_of_another_image_in_the_same_row_is_not_found(client, identifier):
    first, second = identifier("rotated.jpg"), identifier("svg.jpg")
    mixed = first.rpartition("-")[0] + "-" + second.rpartition("-")[2]
    assert client.get(f"/api/images/{mixed}").status_code == 404


def test_a_heat_map_without_a_recognizer_says_what_is_missing(client, identifier):
    url = f"/api/images/{identifier('rotated.jpg')}/heat-map"
    response = client.get(url, params={"label": "lion"})
    assert response.status_code == 501
    assert "Start the server with --model" in response.json()["error"]
    unknown = client.get(url, params={"label": "../../etc/passwd"})
    assert unknown.status_code == 404
