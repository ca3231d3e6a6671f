"""An index: a folder of pictures' log-odds that is searched without reading any picture."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from surelabel.errors import DataError, InputError, UnknownName
from surelabel.records import Predictions
from surelabel.retrieval.contents import Contents, check_usable, free_number, load, save
from surelabel.retrieval.intake import batch_of, check_same_recognizer, new_contents, skipped_of
from surelabel.retrieval.lock import only_writer
from surelabel.retrieval.query import Query, parse, resolve
from surelabel.retrieval.search import Floats, Literal, Rows, joined, top_k
from surelabel.retrieval.shards import Batch, Shard, write
from surelabel.retrieval.stamps import whole
from surelabel.retrieval.status import Status, compare


@dataclass(frozen=True)
class Hit:
    """A picture that a search found.

    Attributes:
        path: The whole path of its file.
        probability: That every term of the query holds, taking the labels as independent given
            the picture: the product of theirs.
        terms: For each label of the query, wanted or not, the probability that it is in the
            picture.
    """

    path: str
    probability: float
    terms: dict[str, float]


class Index:
    """Pictures by their labels; made by `create` or `open`. One writer at a time, by a lock.

    New files are written first and ``index.json`` is replaced last, so a killed writer leaves the
    index as it was; what it left behind is swept away by the next one. Paths are kept whole, so
    that an index means the same from every folder.
    """

    def __init__(self, folder: Path, contents: Contents) -> None:
        self.folder = folder
        self._contents = contents

    @classmethod
    def create(cls, folder: str | Path, predictions: Predictions) -> "Index":
        """Write an index; one that is there already is replaced when the new one is whole.

        Args:
            folder: Where to. New, empty, or holding an index.
            predictions: Calibrated, ``n`` pictures and ``c`` names.

        Raises:
            NotFitted: the predictions have no calibrated log-odds.
            InputError: a name or path comes twice, or a log-odds is outside [-40, 40].
            DataError: the folder holds something else, cannot be written, or is being written.
        """
        check_usable(Path(folder))
        index = cls(Path(folder), new_contents(predictions))
        batch = batch_of(predictions)
        with only_writer(index.folder):
            index._write([], batch, skipped_of(predictions))
        return index

    @classmethod
    def open(cls, folder: str | Path) -> "Index":
        """Open an index; its arrays stay on disk and are mapped into memory.

        Raises:
            DataError: it is no index, comes from a newer version, or a file is missing or damaged.
        """
        contents = load(Path(folder))
        while True:
            try:
                for shard in contents.shards:
                    shard.check(len(contents.names))
            except DataError:
                now = load(Path(folder))
                if now.revision == contents.revision:
                    raise
                contents = now  # a writer was here meanwhile and swept the older files
            else:
                return cls(Path(folder), contents)

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._contents.shards)

    @property
    def names(self) -> list[str]:
        """The labels that can be asked for."""
        return list(self._contents.names)

    @property
    def model(self) -> str:
        """Fingerprint of the recognizer that made the log-odds."""
        return self._contents.model

    @property
    def calibration(self) -> str:
        """What made the log-odds trustworthy, in words."""
        return self._contents.calibration

    @property
    def paths(self) -> list[str]:
        """All pictures, in the order of their rows."""
        shards = self._contents.shards
        return [path for shard in shards for path in shard.living_table["path"].to_pylist()]

    def search(self, query: str | Query, k: int = 20) -> list[Hit]:
        """The ``k`` pictures for which the query holds most probably, exactly.

        Args:
            query: As in ``"fork & apple & !knife"``; see `parse`.
            k: How many, >= 1; all pictures when there are fewer.

        Returns:
            The best first; equal ones by raw score, then by row.

        Raises:
            InputError: the query breaks the grammar, or ``k`` is below 1.
            UnknownName: the query names a label that the index does not have.
            DataError: what the index says of one of these labels was damaged on disk.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"k is how many pictures to find, at least 1. Got {k}.")
        query = parse(query) if isinstance(query, str) else query
        literals = resolve(query, self._contents.names)
        shards = self._contents.shards
        for shard in shards:
            shard.check_labels([column for column, _ in literals])
        starts = np.cumsum([0] + [shard.size for shard in shards])
        parts = [top_k(shard.sorted, literals, k) for shard in shards]
        best = joined(parts, starts.tolist()).best(k)
        hits: dict[int, Hit] = {}
        for shard, start in zip(shards, starts, strict=False):
            mine = (best.rows >= start) & (best.rows < start + shard.size)
            described = self._hits(shard, best.rows[mine] - start, best.scores[mine], literals)
            hits |= zip(best.rows[mine].tolist(), described, strict=True)
        return [hits[row] for row in best.rows.tolist()]

    def add(self, predictions: Predictions) -> None:
        """Add pictures; those that are there already are replaced.

        A picture that was indexed before and could not be read this time leaves the index.

        Raises:
            InputError: the predictions come from another recognizer or calibration, have other
                names, or break what `create` demands.
            NotFitted: they have no calibrated log-odds.
            DataError: the index was changed by another process, is being changed, is damaged, or
                cannot be written.
        """
        ours = self._contents
        check_same_recognizer(ours, predictions)
        batch, unreadable = batch_of(predictions), skipped_of(predictions)
        renewed = {*whole(predictions.paths), *unreadable}
        with self._unchanged():
            shards = [shard.without(shard.places(list(renewed))) for shard in ours.shards]
            skipped = {path: why for path, why in ours.skipped.items() if path not in renewed}
            self._write(shards, batch, skipped | unreadable)

    def remove(self, paths: Iterable[str]) -> None:
        """Take pictures out of the index; their files are not touched.

        Raises:
            UnknownName: one of them is not in the index. Nothing is removed then.
            DataError: the index was changed by another process, is being changed, is damaged, or
                cannot be written.
        """
        wanted = list(dict.fromkeys(whole(paths)))
        with self._unchanged():
            places = [shard.places(wanted) for shard in self._contents.shards]
            if sum(map(len, places)) < len(wanted):
                there = set(self.paths)
                lost = [path for path in wanted if path not in there]
                raise UnknownName(
                    f"Pictures to remove must be in the index. {len(lost)} of {len(wanted)} are "
                    f"not, such as {lost[0]!r}: leave them out."
                )
            pairs = zip(self._contents.shards, places, strict=True)
            shards = [shard.without(rows) for shard, rows in pairs]
            self._write(shards, None, self._contents.skipped)

    def stale(self) -> list[str]:
        """Pictures whose file changed after it was predicted: predict them again and `add` them."""
        return list(self.status().changed)

    def status(self, pictures: Iterable[str] | None = None) -> Status:
        """Compare the index with the disk.

        Args:
            pictures: Files that should be in the index; without them only files that could not be
                read when they were predicted count as missing.
        """
        return compare(self._contents.shards, self._contents.skipped, pictures or ())

    def _write(self, shards: Sequence[Shard], batch: Batch | None, skipped: dict[str, str]) -> None:
        """Write new rows as a shard, then ``index.json``."""
        kept, batches = _split(shards, batch)
        if batches:
            kept.append(write(self.folder, free_number(self.folder), batches))
        ours = self._contents
        for shard in kept:
            shard.check(len(ours.names))
        contents = Contents(ours.names, ours.model, ours.calibration, tuple(kept), skipped)
        save(self.folder, contents)
        self._contents = contents

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Hold the lock; what is on disk is what was opened here, and stays so."""
        load(self.folder)  # so that no lock is left where there is no index
        with only_writer(self.folder):
            if load(self.folder).revision != self._contents.revision:
                raise DataError(
                    f"{self.folder} was changed by another process after it was opened here: "
                    f"open it again and repeat the change."
                )
            yield

    def _hits(
        self, shard: Shard, rows: Rows, scores: Floats, literals: Sequence[Literal]
    ) -> list[Hit]:
        columns = [column for column, _ in literals]
        names = [self._contents.names[column] for column in columns]
        logits = np.stack([shard.sorted.logits[column, rows] for column in columns], axis=1)
        terms = expit(logits.astype(np.float64))
        paths = shard.table["path"].take(rows).to_pylist()
        return [
            Hit(path, probability, dict(zip(names, row, strict=True)))
            for path, probability, row in zip(
                paths, np.exp(scores).tolist(), terms.tolist(), strict=True
            )
        ]


def _split(shards: Sequence[Shard], batch: Batch | None) -> tuple[list[Shard], list[Batch]]:
    """What stays as it is, and what is written anew as one shard.

    A shard at the end is written anew when it is no larger than what comes after it, so that n
    small additions leave log n shards, or when most of it was removed.
    """
    kept = [shard for shard in shards if len(shard)]
    batches = [] if batch is None or not batch.table.num_rows else [batch]
    rows = sum(b.table.num_rows for b in batches)
    while kept and (len(kept[-1]) <= rows or 2 * len(kept[-1]) < kept[-1].size):
        last = kept.pop()
        batches.insert(0, last.batch())
        rows += len(last)
    return kept, batches
