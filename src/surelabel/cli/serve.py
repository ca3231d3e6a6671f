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
@index_root_option
@with_terminal_options
def serve(
    terminal: Terminal,
    index: str,
    model: str | None,
    host: str,
    port: int,
    token: str | None,
    root: str | None,
) -> None:
    """Serve an index over HTTP, with a JSON API.

    Programs search the index, read thumbnails and heat maps, and upload images for tagging. The
    address /api/docs lists all operations. Only files of the index are served, and nothing is
    written. Stop the server with Ctrl-C.
    """
    from surelabel.web.web_extra import check_web_extra_is_installed

    check_web_extra_is_installed()

    from surelabel.web.serving import IndexServer

    def load_encoder(opened: "Index") -> "QueryEncoder":
        from surelabel.recognizer import query_encoder

        return query_encoder(opened, model, device=terminal.device)

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
    )
    n_images = len(server.session.current().index)
    terminal.print_result(
        {"url": server.url, "images": n_images},
        f"Serving {format_count(n_images, 'image')} at {server.url}/api/docs (stop with Ctrl-C)",
    )
    with suppress(KeyboardInterrupt):
        server.run()
    terminal.print_status("The server was stopped.")
