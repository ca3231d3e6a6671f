"""Define ``surelabel serve``, which serves an index over HTTP."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from surelabel.cli.index import index_root_option
from surelabel.cli.output_paths import validate_terminal_model_path
from surelabel.cli.terminal import Terminal, with_terminal_options
from surelabel.counts import format_count

if TYPE_CHECKING:
    from surelabel.retrieval import Index
    from surelabel.retrieval.query_encoding import QueryEncoder


@click.command()
@click.argument("index")
@click.option(
    "--model",
    callback=validate_terminal_model_path,
    help="Recognizer of the index, for uploads, heat maps and sentences. Give this option if the "
    "recognizer was moved. [recorded in the index]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Name or address at which the server listens. An address that other machines can reach "
    "requires --token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port of the server; 0 is any free port.",
)
@click.option(
    "--token",
    envvar="SURELABEL_TOKEN",
    help="Token that each request must contain. The environment variable SURELABEL_TOKEN also sets "
    "the token, and is not visible in the list of processes.",
)
@click.option(
    "--corrections",
    metavar="FILE.csv",
    help="File to which corrections of labels are appended. The first correction creates it. "
    "[INDEX.corrections.csv beside the index]",
)
@click.option(
    "--report",
    metavar="FILE",
    help="Report of `surelabel evaluate --report`, an HTML file or its folder, that the page "
    "links.",
)
@index_root_option
@with_terminal_options
def serve(
    terminal: Terminal,
    index: str,
    model: str | None,
    host: str,
    port: int,
    token: str | None,
    corrections: str | None,
    report: str | None,
    root: str | None,
) -> None:
    """Serve an index over HTTP: a page for browsers and a JSON API.

    The page searches the index, shows images with heat maps, records corrections of labels,
    recalibrates the index, and tags new images. The address /api/docs lists all operations for
    programs. Only files of the index are served. Corrections of labels are appended to one file.
    Stop the server with Ctrl-C.
    """
    from surelabel.web.web_extra import check_web_extra_is_installed

    check_web_extra_is_installed()

    from surelabel.web.serving import IndexServer

    def load_encoder(opened: "Index") -> "QueryEncoder":
        from surelabel.recognizer import query_encoder

        return query_encoder(opened, server.model_of(opened), device=terminal.device)

    if model is not None:
        terminal.print_status(f"Loading the recognizer {model}")
    server = IndexServer(
        index,
        load_encoder=load_encoder,
        model=model,
        device=terminal.device,
        root=root,
        host=host,
        port=port,
        token=token,
        corrections=corrections,
        report=report,
    )
    n_images = len(server.session.current().index)
    terminal.print_result(
        {"url": server.url, "images": n_images},
        f"Serving {format_count(n_images, 'image')} at {server.url}/ (stop with Ctrl-C)",
    )
    with suppress(KeyboardInterrupt):
        server.run()
    terminal.print_status("The server was stopped.")
