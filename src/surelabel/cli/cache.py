"""Define ``surelabel cache``, which shows the size of the feature cache or clears the cache."""

from dataclasses import asdict

import click

from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.cli.terminal_text import format_terminal_table
from surelabel.counts import format_count


@click.command()
@click.option("--clear", is_flag=True, help="Remove all cached features.")
@with_terminal_options
def cache(terminal: Terminal, clear: bool) -> None:
    """Show the size of the feature cache, or clear the cache.

    The environment variable SURELABEL_CACHE sets the folder of the cache.
    """
    from surelabel.features import FeatureCache, default_feature_cache_folder

    feature_cache = FeatureCache(default_feature_cache_folder())
    if clear:
        feature_cache.clear()
    cache_status = feature_cache.status()
    rows = [
        [name, size.entries, format_megabytes_for_cache_command(size.bytes)]
        for name, size in cache_status.per_fingerprint.items()
    ]
    lines = [
        f"{cache_status.folder} contains {format_count(cache_status.entries, 'feature array')} of "
        "images and texts and uses "
        f"{format_megabytes_for_cache_command(cache_status.bytes)} of at most "
        f"{format_megabytes_for_cache_command(cache_status.limit_bytes)}.",
        *([format_terminal_table(["encoder", "entries", "size"], rows)] if rows else []),
    ]
    encoders = {name: size._asdict() for name, size in cache_status.per_fingerprint.items()}
    terminal.print_result(asdict(cache_status) | {"per_fingerprint": encoders}, "\n".join(lines))


def format_megabytes_for_cache_command(count: int) -> str:
    """Format a number of bytes in megabytes (10^6 bytes), such as ``1.5 MB``."""
    return f"{count / 1e6:,.1f} MB"
