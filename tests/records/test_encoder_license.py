import pytest

from surelabel.records import EncoderLicense


@pytest.mark.parametrize(
    ("name", "permits", "words"),
    [
        ("mit", True, "mit, according to x; permits commercial use"),
        ("apache-2.0", True, "permits commercial use"),
        ("cc-by-nc-4.0", False, "no commercial use"),
        ("cc-by-nc-sa-4.0", False, "no commercial use"),
        ("apple-amlr", False, "no commercial use"),
        ("apple-ascl", None, "read the license before commercial use"),
        ("", None, "unknown; read the model card before commercial use"),
    ],
)
def test_commercial_use_is_permitted_refused_or_unknown(name, permits, words):
    license = EncoderLicense(name, "x")
    assert license.permits_commercial_use is permits
    assert str(license).endswith(words)
