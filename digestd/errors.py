"""The error tree of digestd. Floor 0: imports nothing of the package.

    DigestdError
     ├── ConfigError            settings that cannot be used; names the key and the value found
     ├── FetchError             a source could not be read: network, refused address, size, time
     │    └── MailboxError        a mailbox on another machine could not be read just now
     ├── ParseError             a document is not what it should be; knows origin and line
     │    ├── UnknownFormatError  no parser knows the format
     │    └── ErrorPageError      an error page or API error that was served as a document
     ├── StoreError             the history file cannot be used
     │    ├── StoreBusyError      another writer holds it for longer than the busy timeout
     │    ├── AlreadyExistsError  a row with this key stands already
     │    ├── NotFoundError       no row has this key
     │    └── StoreUnusableError  the file cannot be opened, or is damaged
     │         └── SchemaVersionError  it was written by a newer digestd
     ├── RenderError            a template failed; knows the template
     └── ChannelError           a channel can't be used at all (login, TLS, missing folder)

A message says what failed, on which thing, what was found against what was expected; lower case, no full stop.
Advice for the person at the terminal is added by the cli, with the exit code.
"""

from __future__ import annotations


class DigestdError(Exception):
    """Root of all errors that digestd raises on purpose."""


class ConfigError(DigestdError):
    """Settings cannot be used as they stand."""


class FetchError(DigestdError):
    """A source could not be fetched."""


class MailboxError(FetchError):
    """A mailbox on another machine could not be read, which the next try may mend."""


class ParseError(DigestdError):
    """A document could not be read as a page.

    Args:
        message: what was found against what was expected.
        origin: where the document came from, None if unknown.
        line: 1-based line of the document, None where lines mean nothing.
    """

    def __init__(self, message: str, *, origin: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.origin = origin
        self.line = line

    def __str__(self) -> str:
        where = " ".join(part for part in (self.origin, f"line {self.line}" if self.line is not None else None) if part)
        return f"{where}: {self.message}" if where else self.message


class UnknownFormatError(ParseError):
    """No parser knows the format of a document."""


class ErrorPageError(ParseError):
    """A document is an error message in disguise: an HTML error page, an API error served as a feed."""


class StoreError(DigestdError):
    """The history cannot be used."""


class StoreBusyError(StoreError):
    """Another writer held the history for longer than the busy timeout."""


class AlreadyExistsError(StoreError):
    """A row with this key stands already."""


class NotFoundError(StoreError):
    """No row has this key."""


class StoreUnusableError(StoreError):
    """The history cannot be opened: no such folder, no permission, a damaged file."""


class NoRoomError(StoreError):
    """The disk of the history has too little room for new papers and digests; what is begun goes on."""


class SchemaVersionError(StoreUnusableError):
    """The history was written by a newer digestd than this one."""


class RenderError(DigestdError):
    """A template could not be rendered.

    Args:
        message: what went wrong.
        template: name of the template.
    """

    def __init__(self, message: str, *, template: str) -> None:
        super().__init__(f"template {template}: {message}")
        self.template = template


class MovedError(DigestdError):
    """The history was at work on another machine; nothing is sent until a person says that it is no copy of one."""


class ChannelError(DigestdError):
    """A channel cannot be used at all; says nothing about single deliveries."""
