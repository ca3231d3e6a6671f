from surelabel.web.thumbnail_cache import ThumbnailCache


def test_the_contents_that_were_not_used_for_the_longest_time_are_removed():
    cache = ThumbnailCache(max_bytes=10)
    cache.put("a", b"aaaa")
    cache.put("b", b"bbbb")
    assert cache.get("a") == b"aaaa"
    cache.put("c", b"cccc")
    assert [cache.get(key) for key in "abc"] == [b"aaaa", None, b"cccc"]
    assert (len(cache), cache.n_bytes) == (2, 8)


def test_a_content_that_is_larger_than_the_cache_is_not_stored():
    cache = ThumbnailCache(max_bytes=10)
    cache.put("a", bytes(11))
    assert (len(cache), cache.n_bytes) == (0, 0)


def test_a_content_that_is_replaced_is_counted_once():
    cache = ThumbnailCache(max_bytes=10)
    cache.put("a", bytes(9))
    cache.put("a", bytes(5))
    assert (len(cache), cache.n_bytes) == (1, 5)
