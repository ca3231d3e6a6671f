"""Read objects of object stores through the file systems of pyarrow.

Each process opens a file system before the first use, because a forked process must not share the
S3 client of its parent.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

from surelabel.errors import DataError

MAX_OBJECT_BYTES = 2**30  # maximum size of one image
MAX_SPOOLED = 4  # maximum number of archives in temporary files
BLOCK_BYTES = 2**23
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 10, 60, 3  # limits of a request to S3

_filesystems: dict[tuple[int, str], tuple[Any, str]] = {}  # by process and bucket
_files: dict[tuple[int, str], "ObjectStatus"] = {}  # containers, by process and URL
_last = threading.local()  # .url and .content of the object that was read last
_spooled: dict[str, "SpooledObject"] = {}


class ObjectStatus(NamedTuple):
    """Size of an object in bytes, and its modification time in nanoseconds since 1970."""

    size: int
    mtime_ns: int


def object_status(url: str) -> ObjectStatus | None:
    """Return the status of an object, or None if there is no object with this URL.

    Raises:
        DataError: If the object store cannot be read.
    """
    info = _object_info(url)
    if not info.is_file:
        return None
    return ObjectStatus(info.size, info.mtime_ns or 0)


def is_cached_object_file(url: str) -> bool:
    """Return whether an object with a URL exists; an existing object is examined once per process.

    Raises:
        DataError: If the object store cannot be read.
    """
    key = (os.getpid(), url)
    if key not in _files and (status := object_status(url)) is not None:
        _files[key] = status
    return key in _files


def read_object(url: str) -> bytes:
    """Return the bytes of an object; each thread caches the bytes of the last object.

    Because of the cache, an image that is hashed and then decoded is requested only once.

    Raises:
        DataError: If the object cannot be read or has more than 1 GiB. The message is the reason,
            without the URL.
    """
    if getattr(_last, "url", None) == url:
        content: bytes = _last.content
        return content
    _last.url = None
    with open_object(url) as file:
        try:
            size = file.size()
            if size > MAX_OBJECT_BYTES:
                raise DataError(f"an image must have at most {MAX_OBJECT_BYTES} bytes; got {size}")
            _last.content = file.read_at(size, 0)
        except (OSError, pa.ArrowException) as error:
            raise DataError(_describe_object_error(error)) from error
    _last.url = url
    return bytes(_last.content)


def open_object(url: str) -> Any:
    """Open an object as a random-access file of pyarrow.

    Raises:
        DataError: If the object does not exist or the object store cannot be read. The message is
            the reason, without the URL.
    """
    filesystem, path = _filesystem_of_object(url)
    try:
        return filesystem.open_input_file(path)
    except FileNotFoundError as error:
        raise DataError("the object does not exist") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(_describe_object_error(error)) from error


def list_objects(url: str) -> Iterator[str]:
    """Yield the URLs of the objects below a prefix in sorted order, or the URL if it is an object.

    Objects whose name or folder below the prefix starts with a dot are skipped.

    Raises:
        DataError: If the bucket or prefix does not exist, or the object store cannot be read.
    """
    from pyarrow.fs import FileSelector, FileType

    info = _object_info(url)
    if info.type == FileType.File and not url.endswith("/"):
        yield url
        return
    filesystem, path = _filesystem_of_object(url)
    if info.type == FileType.NotFound:
        bucket = _bucket_of_object(url)
        is_missing = _object_info(f"{bucket}/").type == FileType.NotFound
        subject = f"the bucket {bucket}" if is_missing else "the object or folder"
        raise DataError(f"{url} cannot be read: {subject} does not exist. Check the URL.")
    try:
        infos = filesystem.get_file_info(FileSelector(path.rstrip("/"), recursive=True))
    except (OSError, pa.ArrowException) as error:
        raise _object_store_error(url, error) from error
    start = len(path.rstrip("/")) + 1
    prefix = url.rstrip("/")
    for name in sorted(info.path[start:] for info in infos if info.is_file):
        if not any(part.startswith(".") for part in name.split("/")):
            yield f"{prefix}/{name}"


def spooled_object(url: str) -> "SpooledObject":
    """Return a copy of an object in a temporary file without a name.

    The copy is deleted when the last process that uses the copy ends, even if this process is
    killed. Forked processes share the copy. The ``MAX_SPOOLED`` newest copies are cached.

    Raises:
        DataError: If the object cannot be read, or the temporary folder is full.
    """
    if url not in _spooled:
        _spooled[url] = _spool_object(url)
        while len(_spooled) > MAX_SPOOLED:
            del _spooled[next(iter(_spooled))]
    return _spooled[url]


class SpooledObject:
    """Copy of an object in a temporary file, which is closed when this instance is deleted.

    Attributes:
        descriptor: Descriptor of the file. Forked processes share the position in the file.
    """

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def _spool_object(url: str) -> SpooledObject:
    with open_object(url) as source, tempfile.TemporaryFile() as copy:
        try:
            while block := source.read(BLOCK_BYTES):
                copy.write(block)
            copy.flush()
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"{_describe_object_error(error)} (copy in {tempfile.gettempdir()})"
            ) from (error)
        return SpooledObject(os.dup(copy.fileno()))


def _object_info(url: str) -> Any:
    filesystem, path = _filesystem_of_object(url)
    try:
        return filesystem.get_file_info(path)
    except (OSError, pa.ArrowException) as error:
        raise _object_store_error(url, error) from error


def _filesystem_of_object(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path of the object in the file system."""
    bucket = _bucket_of_object(url)
    key = (os.getpid(), bucket)
    if key not in _filesystems:
        _filesystems[key] = _open_filesystem(bucket)
    filesystem, root = _filesystems[key]
    return filesystem, root + url[len(bucket) :].rstrip("/")


def _bucket_of_object(url: str) -> str:
    scheme, _, rest = url.partition("://")
    bucket = rest.partition("/")[0]
    if not bucket and scheme != "hdfs":
        raise DataError(
            f"A URL must contain a bucket, such as {scheme}://bucket/folder/; got {url}."
        )
    return f"{scheme}://{bucket}"


def _open_filesystem(bucket: str) -> tuple[Any, str]:
    """Return the file system of a bucket and the path of the bucket in the file system."""
    from pyarrow import fs

    try:
        if bucket.startswith("s3://"):
            return _open_s3(bucket.removeprefix("s3://")), bucket.removeprefix("s3://")
        if bucket.startswith("gs://"):
            limit = timedelta(seconds=REQUEST_SECONDS)
            return fs.GcsFileSystem(retry_time_limit=limit), bucket.removeprefix("gs://")
        filesystem, root = fs.FileSystem.from_uri(f"{bucket}/")
        return filesystem, root.rstrip("/")
    except (OSError, ValueError, pa.ArrowException, ImportError) as error:
        raise _object_store_error(bucket, error) from error


def _open_s3(bucket: str) -> Any:
    """Return the file system of S3; endpoint and region are the AWS environment variables."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not endpoint and not region:
        region = fs.resolve_s3_region(bucket)
    options: dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return fs.S3FileSystem(
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        **options,
    )


def _object_store_error(url: str, error: Exception) -> DataError:
    return DataError(
        f"{url} cannot be read: {_describe_object_error(error)}. Check the URL, the credentials "
        "and the network."
    )


def _describe_object_error(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "NO_SUCH_BUCKET" in text or "NoSuchBucket" in text:
        return "the bucket does not exist"
    if "ACCESS_DENIED" in text or "HTTP status 403" in text or "Forbidden" in text:
        return "access denied, or no credentials"
    if "NETWORK_CONNECTION" in text:
        return (
            "the object store does not respond "
            f"({text.partition('Details: ')[2][:80].rstrip('. ')})"
        )
    return text[:200].rstrip(". ") or type(error).__name__
