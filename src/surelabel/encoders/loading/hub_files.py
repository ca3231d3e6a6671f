"""Find files of the Hugging Face hub in the local cache, or download the files."""

import logging
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
)
from huggingface_hub.utils.tqdm import (
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)

from surelabel.errors import DataError

TIMEOUT_SECONDS = 5.0  # for the first connection to the hub, before any download
MIN_STATED_BYTES = 10**6  # the log states the size of larger files
# Errors of the hub client: OSError, and the base error of its HTTP library (requests or httpx).
HUB_ERRORS: tuple[type[Exception], ...] = (
    OSError,
    HfHubHTTPError.__bases__[0],
    HFValidationError,
)
_log = logging.getLogger(__name__)


def cached_or_downloaded_hub_file(
    repository: str, *files: str, encoder_name: str, remedy: str
) -> Path:
    """Return the local path of a hub file. If the file is not cached, it is downloaded.

    The name, the size and the repository of a downloaded file are logged with the level INFO. If
    the level of the log is above WARNING, the progress bar of the hub client is hidden.

    Args:
        repository: Name of the repository on the hub, ``owner/name``.
        files: Names of the file in the repository. The first file that is cached is used. If none
            is cached, the first file that the repository contains is downloaded.
        encoder_name: Model name of the encoder, for error messages.
        remedy: Last sentences of the error messages. They describe how to load the encoder without
            a download.

    Raises:
        DataError: If the repository does not contain the file, or if the file is not cached and
            cannot be downloaded.
    """
    expected = f"{encoder_name} needs the file {' or '.join(files)}"
    try:
        cached = cached_hub_file(repository, files)
        if cached:
            return cached
        reason = _hub_unreachable_reason()
        for file in files if reason is None else ():
            try:
                return _download_hub_file(repository, file)
            except LocalEntryNotFoundError:
                raise
            except EntryNotFoundError:
                continue
    except HUB_ERRORS as error:
        reason = _first_line_of_hub_error(error)
    if reason is None:
        raise DataError(f"{expected}, which {repository} does not contain. {remedy}")
    raise DataError(
        f"{expected} of {repository}, which cannot be downloaded from {constants.ENDPOINT} "
        f"({reason.rstrip('.')}). {remedy}"
    )


def optional_hub_file(repository: str, file: str) -> Path | None:
    """Return the local path of a small hub file, or None if it cannot be downloaded."""
    try:
        return cached_hub_file(repository, [file]) or _download_hub_file(repository, file)
    except HUB_ERRORS:
        return None


def cached_or_downloaded_hub_tokenizer(
    repository: str,
    *,
    required: Sequence[str],
    optional: Sequence[str],
    encoder_name: str,
    remedy: str,
) -> Path:
    """Return the local folder of a tokenizer. If no vocabulary is cached, it is downloaded.

    Args:
        repository: Name of the repository on the hub, ``owner/name``.
        required: Names of vocabulary files. The repository must contain at least one of them.
        optional: Names of other files that are downloaded if the repository contains them.
        encoder_name: Model name of the encoder, for error messages.
        remedy: Last sentences of the error message. They describe how to load the encoder without
            a download.

    Raises:
        DataError: If the repository contains no vocabulary, or if the vocabulary is not cached and
            cannot be downloaded.
    """
    cached = cached_hub_file(repository, required)
    if cached:
        return cached.parent
    reason = _hub_unreachable_reason()
    try:
        if reason is None:
            _log.info("Downloading the tokenizer of %s from %s", repository, constants.ENDPOINT)
            with _hub_progress_bars():
                folder = Path(snapshot_download(repository, allow_patterns=[*required, *optional]))
            if any((folder / file).exists() for file in required):
                return folder
            reason = "the repository contains no vocabulary"
    except HUB_ERRORS as error:
        reason = _first_line_of_hub_error(error)
    raise DataError(
        f"{encoder_name} needs the tokenizer of {repository}, which cannot be downloaded from "
        f"{constants.ENDPOINT} ({str(reason).rstrip('.')}). {remedy}"
    )


def cached_hub_file(repository: str, files: Sequence[str]) -> Path | None:
    """Return the path of the first file that is in the local cache of the hub, or None."""
    cached = (try_to_load_from_cache(repository, file) for file in files)
    return next((Path(path) for path in cached if isinstance(path, str)), None)


def _download_hub_file(repository: str, file: str) -> Path:
    """Download a file of the hub into the cache, after logging its name and its size.

    Raises:
        EntryNotFoundError: If the repository does not contain the file.
    """
    size = get_hf_file_metadata(hf_hub_url(repository, file)).size
    megabytes = f" ({size / 1e6:,.1f} MB)" if size and size >= MIN_STATED_BYTES else ""
    _log.info("Downloading %s%s of %s from %s", file, megabytes, repository, constants.ENDPOINT)
    with _hub_progress_bars():
        return Path(hf_hub_download(repository, file))


@contextmanager
def _hub_progress_bars() -> Iterator[None]:
    """Hide the progress bars of the hub client if the level of the log is above WARNING."""
    hide = not _log.isEnabledFor(logging.WARNING) and not are_progress_bars_disabled()
    if hide:
        disable_progress_bars()
    try:
        yield
    finally:
        if hide:
            enable_progress_bars()


def _first_line_of_hub_error(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _hub_unreachable_reason() -> str | None:
    """Return the reason why the hub cannot be reached, or None if the hub can be reached.

    This connection times out after 5 seconds. The hub client would retry for about a minute.
    """
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        urllib.request.urlopen(constants.ENDPOINT, timeout=TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        return str(getattr(error, "reason", error))
    return None
