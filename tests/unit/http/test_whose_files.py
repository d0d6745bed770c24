"""Credential, configuration and state are taken from nobody but their owner, whichever folder is
the loose one.
"""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path

import pytest

from sealpipe.config import Config
from sealpipe.errors import CredentialError, SettingError, StateError
from sealpipe.permissions import find_folder_flaw
from sealpipe.state.files import make_private_directory
from support.terminal import Terminal

KEY = "svc_sk_live_x"
NOBODY = 65534


@pytest.fixture(autouse=True)
def own(tmp_path: Path) -> None:
    """Folders as anybody has them, whatever umask the tests run under."""
    tmp_path.chmod(0o755)


def key_in(folder: Path, mode: int = 0o600) -> Path:
    file = folder / "key"
    file.write_text(KEY + "\n")
    file.chmod(mode)
    return file


def read_key(file: Path, **environ: str) -> str:
    found = Config(environ).read_api_key(str(file))
    assert found is not None
    return found.reveal()


@pytest.mark.parametrize(
    ("mode", "who"), [(0o666, "any user"), (0o602, "any user"), (0o646, "any user")]
)
def test_a_credential_that_others_can_write_is_refused(tmp_path: Path, mode: int, who: str) -> None:
    file = key_in(tmp_path, mode)
    with pytest.raises(CredentialError, match=f"{who} can write the credential file") as refused:
        read_key(file)
    os.system(refused.value.remedy)  # noqa: S605 - the line as it is told
    assert read_key(file) == KEY


@pytest.mark.parametrize(
    ("user", "group", "is_own"),
    [
        (0, 0, True),
        (0, 12345, False),
        (12345, 12345, True),  # neither has a name: the user's own group has the user's number
        (12345, 12346, False),
        (12346, 12345, False),
    ],
)
def test_a_group_that_is_not_the_users_own_is_others(
    tmp_path: Path, user: int, group: int, *, is_own: bool
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    file = key_in(tmp_path, 0o660)
    os.chown(file, user, group)
    if is_own:
        assert read_key(file) == KEY
        return
    with pytest.raises(CredentialError, match="a group can write"):
        read_key(file)


@pytest.mark.parametrize("which", ["key", "."])
def test_users_in_an_access_list_count_as_others(tmp_path: Path, which: str) -> None:
    """The group is the user's own, and its bit stands for the user 12345 whom the list lets
    write.
    """
    file, nobody = key_in(tmp_path), 0xFFFFFFFF
    rows = [(1, 7, nobody), (2, 7, 12345), (4, 0, nobody), (0x10, 7, nobody), (0x20, 5, nobody)]
    try:
        packed = b"".join(struct.pack("<HHI", *row) for row in rows)
        os.setxattr(tmp_path / which, "system.posix_acl_access", struct.pack("<I", 2) + packed)
    except (OSError, AttributeError):
        pytest.skip("no access lists here")
    with pytest.raises(CredentialError, match="a group can write") as refused:
        read_key(file)
    os.system(refused.value.remedy)  # noqa: S605 - the line as it is told
    assert read_key(file) == KEY


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_credential_in_a_folder_that_others_can_write_is_refused(
    tmp_path: Path, mode: int
) -> None:
    loose = tmp_path / "loose"
    (loose / "inner").mkdir(parents=True)
    file = key_in(loose / "inner")
    loose.chmod(mode)
    with pytest.raises(
        CredentialError, match=r"any user can write .*/loose, and so replace"
    ) as refused:
        read_key(file)
    assert refused.value.remedy == f"chmod o-w {loose}"
    os.system(refused.value.remedy)  # noqa: S605
    assert read_key(file) == KEY


def test_a_sticky_folder_is_safe(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o1777)
    assert read_key(key_in(loose)) == KEY


def test_a_link_through_a_loose_folder_is_one_too(tmp_path: Path) -> None:
    """The folder of the file is fine, and so is that of the link's name: the one in the middle is
    not.
    """
    for name in ("real", "loose", "named"):
        (tmp_path / name).mkdir()
    key_in(tmp_path / "real")
    (tmp_path / "loose" / "on").symlink_to(tmp_path / "real")
    (tmp_path / "named" / "way").symlink_to("../loose/on")
    assert read_key(tmp_path / "named" / "way" / "key") == KEY
    (tmp_path / "loose").chmod(0o777)
    with pytest.raises(CredentialError, match="/loose, and so replace"):
        read_key(tmp_path / "named" / "way" / "key")


def test_a_loop_of_links_is_not_followed_forever(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert find_folder_flaw(tmp_path / "one", {}, "it") is None


def test_in_a_ci_job_other_loose_folders_are_refused(tmp_path: Path) -> None:
    """The job's folder is trusted with its parents, not what lies beside it."""
    loose = tmp_path / "loose"
    loose.mkdir()
    file = key_in(loose)
    loose.chmod(0o777)
    with pytest.raises(CredentialError, match="/loose, and so replace"):
        read_key(file, GITLAB_CI="true", CI_PROJECT_DIR=str(tmp_path / "builds" / "app"))


def test_what_the_system_made_so_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "builds" / "app"
    made = tmp_path / "builds" / "app.tmp"
    made.mkdir(parents=True)
    file = key_in(made, 0o666)
    for folder in (made, made.parent):
        folder.chmod(0o777)
    with pytest.raises(CredentialError):
        read_key(file)
    job = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(project)}
    assert read_key(file, **job) == KEY
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    assert make_private_directory(made / "sealpipe" / "outbox").is_dir()


def test_where_a_gitlab_job_works_may_hold_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runner makes the checkout for everybody, and the templates keep the state there."""
    project = tmp_path / "builds" / "app"
    project.mkdir(parents=True)
    for folder in (project, project.parent):
        folder.chmod(0o777)
    with pytest.raises(StateError, match="any user can write"):
        make_private_directory(project / ".sealpipe" / "outbox")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PROJECT_DIR", str(project))
    assert make_private_directory(project / ".sealpipe" / "outbox").is_dir()
    with pytest.raises(CredentialError, match="any user can write the credential file"):
        read_key(key_in(project, 0o666), GITLAB_CI="true", CI_PROJECT_DIR=str(project))


def test_a_volume_of_kubernetes_is_taken(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    (volume / "..2026_01_01").mkdir(parents=True)
    key_in(volume / "..2026_01_01", 0o666)
    (volume / "..data").symlink_to("..2026_01_01")
    (volume / "key").symlink_to("..data/key")
    volume.chmod(0o777)
    assert read_key(volume / "key") == KEY


def test_a_pipe_is_not_checked() -> None:
    reading, writing = os.pipe()
    os.write(writing, KEY.encode() + b"\n")
    os.close(writing)
    assert read_key(Path(f"/dev/fd/{reading}")) == KEY
    os.close(reading)


@pytest.mark.parametrize("loose", ["file", "folder"])
def test_a_config_that_others_can_write_is_refused(tmp_path: Path, loose: str) -> None:
    config = tmp_path / "own" / "config.toml"
    config.parent.mkdir()
    config.write_text('base_url = "https://api.example/v1"\n')
    config.chmod(0o644)
    assert Config({"SEALPIPE_CONFIG": str(config)}).user
    wrong = config if loose == "file" else config.parent
    wrong.chmod(0o777)
    with pytest.raises(SettingError, match="any user can write") as refused:
        _ = Config({"SEALPIPE_CONFIG": str(config)}).user
    os.system(refused.value.remedy)  # noqa: S605
    assert Config({"SEALPIPE_CONFIG": str(config)}).user


def test_a_machines_config_that_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "config.toml"
    machine.write_text("[enforce]\n")
    monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", machine)
    machine.chmod(0o666)
    with pytest.raises(SettingError, match="any user can write the machine's config file"):
        _ = Config({}).machine


def test_every_folder_on_the_way_to_the_state_is_looked_at(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    state = loose / "a" / "sealpipe" / "outbox"
    assert make_private_directory(state).is_dir()
    loose.chmod(0o777)
    with pytest.raises(StateError, match=r"any user can write .*/loose, and so replace") as refused:
        make_private_directory(state)
    assert refused.value.remedy.startswith(f"chmod o-w {loose}, or set SEALPIPE_STATE_DIR")
    loose.chmod(0o1777)
    assert make_private_directory(state).is_dir()


def test_no_remedy_suggests_changing_a_device() -> None:
    with pytest.raises(
        StateError, match=r"/dev/null/outbox cannot be created or read: Not a directory"
    ) as refused:
        make_private_directory(Path("/dev/null/outbox"))
    assert "chmod" not in refused.value.remedy


def test_a_folder_of_another_user_is_theirs_to_change() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives folders away")
    with tempfile.TemporaryDirectory() as folder:
        theirs = Path(folder)
        theirs.chmod(0o755)
        os.chown(theirs, NOBODY, NOBODY)
        # Root's containers have folders of others mounted.
        assert find_folder_flaw(theirs, {}, "it") is None
        os.seteuid(12345)
        try:
            flaw = find_folder_flaw(theirs, {}, "it")
        finally:
            os.seteuid(0)
    assert flaw is not None
    assert "belongs to another user" in flaw[0]


def test_a_credential_that_others_can_read_is_warned_about(user: Terminal) -> None:
    file = user.file("key", str(user.environ["SEALPIPE_API_KEY"]) + "\n", mode=0o644)
    own = {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": str(file), "X": "v"}
    done = user.sealpipe("share", "-f", "env:X", **own)
    assert done.code == 0, done
    assert f"other users can read the credential file {file}: chmod 600 {file}" in done.err
    job = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(user.here)}
    done = user.sealpipe("share", "-f", "env:X", "--print", **own, **job)
    assert "can read the credential file" not in done.err
    file.chmod(0o600)
    assert "can read the credential file" not in user.sealpipe("share", "-f", "env:X", **own).err
