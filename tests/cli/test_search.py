import json


def test_a_search_shows_the_probability_of_all_and_of_each_label(home, run):
    done = run("search", "index", "lion & !rocket", "-k", "3")
    header, *lines = done.out.splitlines()
    assert header.split() == ["all", "lion", "rocket", "path"]
    assert len(lines) == 3
    whole, lion, rocket = map(float, lines[0].split()[:3])
    assert abs(whole - lion * (1 - rocket)) < 2e-3


def test_a_search_as_json_is_sorted(home, run):
    hits = json.loads(run("search", "index", "lion", "-k", "100", "--json").out)
    assert len(hits) == 24
    assert [h["probability"] for h in hits] == sorted(
        (h["probability"] for h in hits), reverse=True
    )
    assert list(hits[0]["terms"]) == ["lion"]
