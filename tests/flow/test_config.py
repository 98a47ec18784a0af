"""Settings from their four layers, and what the operator is told when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from digestd.config import Settings, find_config, load_settings
from digestd.errors import ConfigError

SOURCE = '[[sources]]\nkind = "url"\nurl = "https://reef.example/"\n'


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine that the tests run on is read."""
    for name in ("DIGESTD_CONFIG", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))


def write(folder: Path, text: str) -> Path:
    """Return a configuration file with this text."""
    file = folder / "digestd.toml"
    file.write_text(text, encoding="utf-8")
    return file


def findings(file: Path | None = None, **overrides: object) -> list[str]:
    """Return what is wrong with the settings, without the file's folder."""
    with pytest.raises(ConfigError) as caught:
        load_settings(file, overrides)
    lines = str(caught.value).splitlines()
    return [line.replace(f"{file.parent}/", "") for line in lines] if file else lines


def test_load_settings_without_anything(tmp_path: Path) -> None:
    """All runs with no configuration at all, with its history in the user's state folder."""
    assert Settings() == load_settings()
    assert tmp_path / "nowhere/digestd/digestd.sqlite" == load_settings().store.path


def test_load_settings_under_a_service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service finds its file and its history in the folders that the unit file gives it."""
    write(tmp_path, "[digest]\nbudget = 7\n")
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    settings = load_settings()
    assert (7, tmp_path / "state/digestd.sqlite") == (settings.digest.budget, settings.store.path)


def test_load_settings_layers_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line wins over credentials, these over the environment, that over the file, key by key."""
    file = write(tmp_path, '[mail]\nhost = "a"\nusername = "a"\npassword = "a"\nreply_to = "a@example.org"\n')
    monkeypatch.setenv("DIGESTD_MAIL__HOST", "b")
    monkeypatch.setenv("DIGESTD_MAIL__USERNAME", "b")
    monkeypatch.setenv("DIGESTD_MAIL__PASSWORD", "b")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "mail__password").write_text("c\n", encoding="utf-8")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    mail = load_settings(file, {"mail": {"host": "d"}}).mail
    assert mail.password is not None
    assert ("d", "b", "c", "a@example.org") == (
        mail.host,
        mail.username,
        mail.password.get_secret_value(),
        mail.reply_to,
    )


def test_load_settings_named_file_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was named and is not there is an error, never silently the defaults."""
    missing = tmp_path / "digestd.toml"
    assert ["digestd.toml: expected a configuration file, found nothing"] == findings(missing)
    monkeypatch.setenv("DIGESTD_CONFIG", str(missing))
    with pytest.raises(ConfigError, match="found nothing"):
        find_config()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[mail]\nprot = 25\n", "digestd.toml: mail.prot: unknown key, nearest known: port"),
        ("[mial]\nport = 25\n", "digestd.toml: mial: unknown key, nearest known: mail"),
        ("[mail]\nport = 70000\n", "digestd.toml: mail.port: expected less than or equal to 65535, found 70000"),
        ('[mail]\nport = "many"\n', "digestd.toml: mail.port: expected a whole number, found 'many'"),
        ("[arxiv]\ncross_lists = 7\n", "digestd.toml: arxiv.cross_lists: expected true or false, found 7"),
        ("[digest]\nname = 7\n", "digestd.toml: digest.name: expected text in quotes, found 7"),
        (
            '[log]\nlevel = "loud"\n',
            "digestd.toml: log.level: expected 'debug', 'info', 'warning' or 'error', found 'loud'",
        ),
        (
            '[[sources]]\nkind = "folder"\n',
            "digestd.toml: sources no. 1: expected a path and no url, because kind is 'folder'",
        ),
        ('[[topics]]\ngloss = "x"\n', "digestd.toml: topics no. 1.name: expected a value, found none"),
        (
            '[[topics]]\nname = "Reefs"\n[[topics]]\nname = "reefs"\n',
            "digestd.toml: topics: expected different names, 'reefs' stands twice",
        ),
        (
            '[fetch]\nallow_networks = ["10.0.0.0/8", "x"]\n',
            "digestd.toml: fetch.allow_networks no. 2: expected a network like '10.1.0.0/16', found 'x'",
        ),
        ("digest = 7\n", "digestd.toml: digest: expected a table, found 7"),
        (
            f'{SOURCE}zone = "Europe/Atlantis"\n',
            "digestd.toml: sources no. 1.zone: expected a time zone like 'Europe/Berlin', found 'Europe/Atlantis'",
        ),
        (
            f'{SOURCE}due_by = "25:00"\n',
            "digestd.toml: sources no. 1.due_by: expected a time of day like '07:30', found '25:00'",
        ),
        (
            f'{SOURCE}rest_days = ["sat", "sabbath"]\n',
            "digestd.toml: sources no. 1.rest_days no. 2: expected 'mon', 'tue', 'wed', 'thu', 'fri', 'sat' or 'sun', "
            "found 'sabbath'",
        ),
        (
            f'{SOURCE}holidays = ["2026-02-30 No Day"]\n',
            "digestd.toml: sources no. 1.holidays no. 1: expected a day, with its name if wanted, like "
            "'2026-12-25 Christmas Day', found '2026-02-30 No Day'",
        ),
    ],
)
def test_load_settings_says_what_is_wrong(tmp_path: Path, text: str, line: str) -> None:
    """A finding names the file, the key, what was expected and what was found."""
    assert [line] == findings(write(tmp_path, text))


def test_load_settings_says_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All findings come in one go, each with the layer that it is from."""
    monkeypatch.setenv("DIGESTD_WEB__PORT", "x")
    assert [
        "digestd.toml: digest.budget: expected greater than or equal to 1, found 0",
        "environment: web.port: expected a whole number, found 'x'",
        "command line: log.level: expected 'debug', 'info', 'warning' or 'error', found 'loud'",
    ] == findings(write(tmp_path, "[web]\nport = 1\n[digest]\nbudget = 0\n"), log={"level": "loud"})


def test_load_settings_broken_toml(tmp_path: Path) -> None:
    """A file that is not TOML is named with line and column."""
    (line,) = findings(write(tmp_path, "[digest\n"))
    assert line.startswith("digestd.toml: expected TOML, found: expected ']'")
    assert "line 1" in line


def test_load_settings_never_shows_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No finding shows a password, nor the value of a misspelt key, nor the login in an address."""
    text = '[mail]\npasword = "424242"\npassword = 424242\n[[sources]]\nkind = "url"\nurl = "ftp://me:424242@example.org/"\n'
    monkeypatch.setenv("DIGESTD_MAIL__SECRET", "424242")
    lines = findings(write(tmp_path, text))
    assert 4 == len(lines)
    assert "424242" not in "\n".join(lines)


def test_load_settings_unknown_section_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable is an error; a variable without a section is someone else's."""
    monkeypatch.setenv("DIGESTD_OTHER", "x")
    load_settings()
    monkeypatch.setenv("DIGESTD_MIAL__HOST", "x")
    assert ["environment: DIGESTD_MIAL__HOST: unknown section mial, nearest known: mail"] == findings()


def test_load_settings_refuses_line_ends_in_names(tmp_path: Path) -> None:
    """Nothing from a configuration can add a header to a mail."""
    assert ["digestd.toml: mail.from_name: expected text on one line, without control characters"] == [
        line.partition(", found")[0] for line in findings(write(tmp_path, '[mail]\nfrom_name = "a\\r\\nBcc: b"\n'))
    ]


def test_load_settings_refuses_an_open_password(tmp_path: Path) -> None:
    """A password never goes to another machine unencrypted."""
    (line,) = findings(write(tmp_path, '[mail]\nmode = "none"\nhost = "relay.example.org"\npassword = "x"\n'))
    assert line.startswith("digestd.toml: mail: expected mode 'starttls' or 'implicit'")


def test_load_settings_relative_paths(tmp_path: Path) -> None:
    """A relative path begins at the file's folder, wherever digestd is started."""
    file = write(tmp_path, '[store]\npath = "h.sqlite"\n[[sources]]\nkind = "folder"\npath = "in"\n')
    settings = load_settings(file)
    assert (tmp_path / "h.sqlite", tmp_path / "in") == (settings.store.path, settings.sources[0].path)
