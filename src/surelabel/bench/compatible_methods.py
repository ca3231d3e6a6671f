"""Find the methods of a comparison that an encoder supports."""

from collections.abc import Iterable, Sequence

from surelabel.config import Choice, Run
from surelabel.encoders import load_encoder
from surelabel.errors import ConfigError
from surelabel.recognizer import Recognizer
from surelabel.recognizer.method_candidates import first_sentence_of


def compatible_methods(
    encoder: str, methods: Iterable[str], names: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Return the methods that an encoder supports, and why it does not support the others.

    For example, an encoder without a text encoder does not support ``zero_shot``.

    Args:
        encoder: Name of an encoder.
        methods: Keys of methods.
        names: Labels of the recognizers.
    """
    loaded, compatible, left_out = load_encoder(encoder), list[str](), dict[str, str]()
    for method in methods:
        run = Run(encoder=Choice(encoder), method=Choice(method))
        try:
            Recognizer(run, names, encoder=loaded)
        except ConfigError as error:
            left_out[method] = first_sentence_of(error)
        else:
            compatible.append(method)
    return compatible, left_out
