"""What may go wrong with one reference to Google Secret Manager, as the command line tells it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

from plugins.gcp.conftest import DEFAULT
from plugins.gcp.fake_secret_manager import FORBIDDEN, TOKEN, FakeSecretManager
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.failures import Failure, assert_told_apart, without
from support.terminal import Terminal
from support.wires import Intercepting

HOST = "secretmanager.example"


def test_nine_are_told_apart(
    google: FakeSecretManager,
    keyed: dict[str, str],
    user: Terminal,
    service: RunningService,
    tmp_path: Path,
) -> None:
    google.hold("db", b"x")
    google.hold(FORBIDDEN, b"x")
    expired = user.file("expired.json", google.credentials(token_uri=f"{google.base_url}/expired"))
    stranger = user.file(
        "stranger.json", google.credentials(client_email="gone@acme.iam.gserviceaccount.com")
    )
    key = json.loads(google.credentials())["private_key"].splitlines()[1]
    with ExitStack() as stack:
        silent = FaultyServer("silent")
        stack.callback(silent.stop)
        proxy = stack.enter_context(Intercepting(tmp_path, {HOST: google.port}))
        behind = {**keyed, f"{DEFAULT}URL": f"https://{HOST}"}
        failures = {
            "wrong path": Failure("gcp-sm:nothing", keyed),
            "denied path": Failure(f"gcp-sm:{FORBIDDEN}", keyed),
            "expired login": Failure(
                "gcp-sm:db", {**keyed, "GOOGLE_APPLICATION_CREDENTIALS": str(expired)}
            ),
            "unreachable": Failure(
                "gcp-sm:db", {**keyed, f"{DEFAULT}URL": "https://nowhere.invalid"}
            ),
            "timeout": Failure(
                "gcp-sm:db", {**keyed, f"{DEFAULT}URL": silent.url, f"{DEFAULT}TIMEOUT": "1"}
            ),
            "missing library": Failure(
                "gcp-sm:db", {**keyed, **without(user, "google-auth", "google.auth")}
            ),
            "wrong account": Failure(
                "gcp-sm:db", {**keyed, "GOOGLE_APPLICATION_CREDENTIALS": str(stranger)}
            ),
            "a proxy's login": Failure(
                "gcp-sm:db",
                {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)},
            ),
            "unknown CA": Failure("gcp-sm:db", {**behind, "HTTPS_PROXY": proxy.url()}),
        }
        assert_told_apart(failures, user, service, secrets=(TOKEN, key, Intercepting.password))
