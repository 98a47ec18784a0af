"""Digests through the library apprise, held against a real server."""

from __future__ import annotations

import json
import logging
from importlib.util import find_spec

import pytest

from digestd.errors import ConfigError
from digestd.model.delivery import Outcome, Sent, Uncertain
from digestd.send.apprise import AppriseChannel
from digestd.send.settings import AppriseSettings
from tests.builders import make_message
from tests.http_faults import PostServer

pytestmark = pytest.mark.skipif(find_spec("apprise") is None, reason="the extra apprise is not installed")


async def yes() -> bool:
    """Let it go out."""
    return True


async def sent(server: PostServer, *, limit_s: float = 10) -> Outcome:
    """Return what becomes of one message."""
    channel = AppriseChannel(AppriseSettings(f"json://127.0.0.1:{server.port}/hush-314?rto=0.5", limit_s))
    try:
        return await channel.send(make_message(), before_dot=yes)
    finally:
        await channel.close()


async def test_service_gets_subject_and_text() -> None:
    """What a service shows is the digest's subject and text."""
    async with PostServer([("200",)]).running() as server:
        assert isinstance(await sent(server), Sent)
    (post,) = server.kept
    record = json.loads(post.body)
    assert ("Reefs", True) == (record["title"], record["message"].startswith("Message 1."))


@pytest.mark.parametrize("answer", ["500", "403", "reset", "hang"])
async def test_what_is_not_called_taken_is_doubt(
    answer: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library does not tell a refusal from silence, so each is doubt; the address is in no log."""
    caplog.set_level(logging.DEBUG)
    async with PostServer([(answer,)]).running() as server:
        assert isinstance(await sent(server), Uncertain)
        assert 1 == len(server.kept)
    assert "hush-314" not in caplog.text + "".join(capfd.readouterr())


def test_unknown_address_is_a_finding_without_it() -> None:
    """An address that the library does not know is refused, and not shown."""
    with pytest.raises(ConfigError, match="that apprise knows") as caught:
        AppriseChannel(AppriseSettings("nonsense://hush-314"))
    assert "hush-314" not in str(caught.value)
