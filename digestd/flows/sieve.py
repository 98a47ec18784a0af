"""Of a feed that was read before, only what is new. Floor 4. Entry point: :class:`Sieve`.

An item that the source showed before, byte for byte, is not parsed again, and the paper that it is is not looked at again,
as long as nothing else could have changed what it means: the feed's head, the operator's rules, the paper's record in the
history. What the history holds afterwards is what it would hold had the feed been read whole; whenever that is not certain,
it is read whole. What is decided on a page as a whole, such as that a link on several papers names none of them, is guarded
by the names of the items left out: a new item that shares one has the page read whole.
"""

from __future__ import annotations

from dataclasses import replace

from digestd.diff import DiffRules
from digestd.errors import ParseError
from digestd.identity import paper_ids, text_hash, title_print
from digestd.matching import intent_keys, page_names
from digestd.model.paper import Paper
from digestd.model.slices import KnownFeed, KnownSlice
from digestd.model.snapshot import Document, Known, Order, Page, SnapshotDiff
from digestd.page_hash import paper_hash, title_name
from digestd.parse.slices import CutFeed, cut_feed, guid_hash
from digestd.ports import Store

#: what an item becomes may change with the parser: raised when it does, so that everything is read again once
_READING = 1


class ReadWholeError(ParseError):
    """A feed read in part has to be read whole; never leaves the flow."""


class Sieve:
    """One feed on its way through: cut, read in part if that can be, kept for the next time."""

    def __init__(self, cut: CutFeed, place: str, store: Store, rules: DiffRules) -> None:
        self._cut = cut
        self._place = place
        self._feeds = feeds = store.feeds_read
        matched = [(topic.slug, topic.rule) for topic in store.history.topics() if topic.rule is not None]
        self._rules_hash = text_hash(f"{_READING} {rules} {matched}")
        self._before = feeds.find(place)
        self._left_out: dict[int, KnownSlice] = {}  # place in the feed -> what is known of the item
        if self._before is not None and self._still_means_the_same(self._before):
            records = feeds.records([one.paper for one in self._before.slices])
            known = {one.bytes_hash: one for one in self._before.slices if records.get(one.paper) == one.record_hash}
            self._left_out = {at: known[of] for at, of in enumerate(cut.hashes) if of in known}

    @classmethod
    def of(cls, document: Document, place: str, store: Store, rules: DiffRules) -> Sieve | None:
        """Return the sieve of a document; None if it is no feed that can be cut."""
        cut = cut_feed(document.body)
        return None if cut is None else cls(cut, place, store, rules)

    def _still_means_the_same(self, before: KnownFeed) -> bool:
        return before.head_hash == self._cut.head_hash and before.rules_hash == self._rules_hash

    @property
    def unread(self) -> tuple[str, ...]:
        """What the items left out say, hashed."""
        return tuple(one.content for one in self._left_out.values())

    @property
    def unread_titles(self) -> tuple[str, ...]:
        """The names of the items left out, by title and first author."""
        return tuple(one.title for one in self._left_out.values())

    def rest_of(self, document: Document) -> Document | None:
        """Return the document without the items that need not be read; None if it has to be read whole."""
        if not self._left_out:
            return None
        fresh = [at for at in range(len(self._cut.items)) if at not in self._left_out]
        return replace(document, body=self._cut.with_items(frozenset(fresh)))

    def read_whole(self) -> None:
        """Leave out nothing after all."""
        self._left_out = {}

    def joined(self, page: Page) -> Page:
        """Return the page of the rest as the page of the whole feed.

        Raises:
            ReadWholeError: something on it may depend on the items left out.
        """
        names = {name for one in self._left_out.values() for name in one.names}
        if (
            not self._is_clean(page)
            or len(page.papers) + len(self._left_out) != len(self._cut.items)
            or any(not names.isdisjoint(found) for found in self._names(page))
        ):
            raise ReadWholeError("the rest of the feed can't be read alone", origin=page.origin)
        return replace(page, quiet_reason=None, unread=len(self._left_out))

    def check(self, slug: str, source: str, diff: SnapshotDiff | None = None) -> None:
        """Hold what is about to be recorded against the items left out.

        Raises:
            ReadWholeError: it goes elsewhere than they went, or is one of their papers.
        """
        if not self._left_out or self._before is None:
            return
        papers = {one.paper for one in self._left_out.values()}
        elsewhere = (slug, source) != (self._before.topic, self._before.source)
        if elsewhere or (diff and any(not papers.isdisjoint(intent_keys(intent)) for intent in diff.papers)):
            raise ReadWholeError("the feed has to be read whole")

    def keep(self, page: Page, known: Known, diff: SnapshotDiff, slug: str, source: str) -> None:
        """Keep, inside the open transaction, what was read and recorded for the next time."""
        slices = [self._left_out[at] for at in sorted(self._left_out)]
        if self._is_clean(page) and len(page.papers) == len(diff.papers) == len(self._cut.items) - len(slices):
            slices += self._recorded(page, known, diff)
        found = [name for one in slices for name in one.names]
        # a name of several items names none of them, which is decided on the page as a whole
        unsure = diff.warnings or not slices or len(found) != len(set(found))
        feed = KnownFeed(self._cut.head_hash, self._rules_hash, slug, source, tuple(slices))
        self._feeds.put(self._place, None if unsure else feed)

    def _recorded(self, page: Page, known: Known, diff: SnapshotDiff) -> list[KnownSlice]:
        """Return what is known now of the items read; without those whose paper is not certain."""
        if page_names(page.papers) != [paper_ids(paper) for paper in page.papers]:
            return []
        bearers = self._feeds.bearers([str(name) for intent in diff.papers for name in intent.ids])
        met = {paper.key for paper in known.papers}
        keys: list[int | None] = []
        for intent in diff.papers:
            found = {bearers.get(str(name)) for name in intent.ids}
            key = next(iter(found)) if len(found) == 1 else None
            keys.append(key if key == intent.key or (intent.key is None and key not in met) else None)
        records = self._feeds.records([key for key in keys if key is not None])
        fresh = [at for at in range(len(self._cut.items)) if at not in self._left_out]
        return [
            KnownSlice(self._cut.hashes[at], key, records[key], paper_hash(paper), title_name(paper), names)
            for at, key, paper, names in zip(fresh, keys, page.papers, self._names(page), strict=True)
            if key is not None and key in records
        ]

    def _names(self, page: Page) -> list[tuple[int, ...]]:
        fresh = [at for at in range(len(self._cut.items)) if at not in self._left_out]
        return [_names_of(paper, self._cut.items[at]) for at, paper in zip(fresh, page.papers, strict=True)]

    def _is_clean(self, page: Page) -> bool:
        """Whether a page is a feed in which nothing had to be mended, guessed or left out."""
        faultless = not (page.warnings or page.incomplete or any(paper.warnings for paper in page.papers))
        labelled = any(paper.topics or paper.topics_unparsed for paper in page.papers)
        return faultless and not labelled and page.format == "feed" and page.order is Order.FEED


def _names_of(paper: Paper, item: bytes) -> tuple[int, ...]:
    """Return hashes of everything by which two items of a page could be taken for one, or told apart."""
    names = {text_hash(str(name)) for name in paper_ids(paper)} | {text_hash(f"print {title_print(paper.title)}")}
    guid = guid_hash(item)
    return tuple(sorted(names | ({guid} if guid is not None else set())))
