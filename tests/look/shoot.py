"""Draw the sample mails with Chromium, to be looked at: ``python -m tests.look.shoot FOLDER``.

Writes HTML, text and pictures of several digests (all parts; without charts and links; with text bars) at 390 and
1200 px, light and dark. Needs ``chromium`` on the PATH for the pictures; without it only HTML and text are written.
No test runs this: what a mail looks like is judged by eye.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from digestd.model.delivery import MailParts
from digestd.model.digest import Digest, Links
from digestd.render.mail import render_mail
from digestd.templating import build_environment
from tests.look.sample import LINKS, NO_LINKS, large_digest, sample_digest

_SAMPLES: tuple[tuple[str, Digest, Links, bool], ...] = (
    ("full", sample_digest(), LINKS, True),
    ("bare", sample_digest(charts=False, linked=False), NO_LINKS, True),
    ("textbars", sample_digest(), LINKS, False),
    ("large", large_digest(60), LINKS, True),
)
_DARK, _LIGHT = 0, 1  # values of Blink's preferredColorScheme


def standalone(mail: MailParts) -> str:
    """Return the HTML with its pictures inside, as a browser can show it."""
    html = mail.html
    for picture in mail.pictures:
        html = html.replace(f"cid:{picture.cid}", f"data:image/png;base64,{base64.b64encode(picture.png).decode()}")
    return html


def shoot(page: Path, picture: Path, *, width: int, height: int, scheme: int) -> None:
    """Write a picture of a page as Chromium draws it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.stdout.write(f"no chromium: {picture.name} not drawn\n")
        return
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--hide-scrollbars", f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={scheme}",
            f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> None:
    """Write all samples into the folder named on the command line."""
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    templates = build_environment()
    for name, digest, links, pictures in _SAMPLES:
        mail = render_mail(digest, links, templates, pictures=pictures)
        page = folder / f"{name}.html"
        page.write_text(standalone(mail), encoding="utf-8")
        (folder / f"{name}.txt").write_text(mail.text, encoding="utf-8")
        for width in (390, 1200):
            for scheme, word in ((_LIGHT, "light"), (_DARK, "dark")):
                shoot(page, folder / f"{name}-{width}-{word}.png", width=width, height=3200, scheme=scheme)
        sys.stdout.write(f"{name}: {mail.subject} | {mail.preheader}\n")


if __name__ == "__main__":
    main()
