"""The source k8s against kmock's emulator."""

from __future__ import annotations

import base64
import itertools
import json
import os
from pathlib import Path

import pytest
import trustme

from sealpipe.errors import (
    NotConfiguredError,
    ReferenceValueError,
    UnsupportedError,
)
from sealpipe.plugin import Document
from support.backends import answers, refused, registry, values
from support.kubernetes import TOKEN, Cluster

DEFAULT, STORE = "SEALPIPE_PLUGIN_K8S__", "SEALPIPE_STORE__OTHER__"
NAMED = {f"{STORE}PLUGIN": "k8s"}


@pytest.fixture
def environ(cluster: Cluster) -> dict[str, str]:
    return {f"{DEFAULT}SERVER": cluster.base_url, f"{DEFAULT}TOKEN": TOKEN}


class TestASecret:
    def test_is_a_map_of_bytes_that_are_kept_exactly(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        data = {
            "tls.crt": b"-----\n\xc3\xa9\n",
            "raw": bytes(range(256)) * 256,
            "empty": b"",
            "-._": b" ",
        }
        cluster.secret("prod", "tls.v1-2", data)
        (answer,) = answers(registry(environ), "k8s:prod/tls.v1-2")
        assert isinstance(answer, Document)
        assert answer.content == data
        assert values(environ, "k8s:prod/tls.v1-2#cert.pem=tls.crt,-._") == [
            "-----\né\n".encode(),
            b" ",
        ]

    def test_without_a_key_names_its_keys(self, cluster: Cluster, environ: dict[str, str]) -> None:
        cluster.secret("prod", "db", {"user": b"u", "pw": b"p"})
        with pytest.raises(ReferenceValueError) as caught:
            values(environ, "k8s:prod/db")
        assert '"user", "pw"' in caught.value.remedy

    @pytest.mark.parametrize("nothing", [None, {}])
    def test_may_have_no_keys(
        self, nothing: dict[str, bytes] | None, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "void", nothing)
        (answer,) = answers(registry(environ), "k8s:prod/void")
        assert isinstance(answer, Document)
        assert answer.content == {}

    def test_is_read_once_for_all_its_keys(self, cluster: Cluster, environ: dict[str, str]) -> None:
        cluster.secret("prod", "db", {"user": b"u", "pw": b"p"})
        assert values(environ, "k8s:prod/db#user", "k8s:prod/db#pw") == [b"u", b"p"]
        assert cluster.targets == ["/api/v1/namespaces/prod/secrets/db"]

    def test_of_a_server_with_a_path_is_below_it(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "db", {"pw": b"p"})
        environ[f"{DEFAULT}SERVER"] += "/k8s/clusters/c-1/"
        answers(registry(environ), "k8s:prod/db")
        assert cluster.targets[0] == "/k8s/clusters/c-1/api/v1/namespaces/prod/secrets/db"


def test_the_check_tells_our_rights_and_reads_no_secret(
    cluster: Cluster, environ: dict[str, str]
) -> None:
    environ[f"{DEFAULT}NAMESPACE"] = "prod"
    health = registry(environ).check("source", "k8s")
    assert (health.ok, "may read Secrets in the namespace prod" in health.detail) == (
        True,
        True,
    )
    cluster.allowed = False
    health = registry(environ).check("source", "k8s")
    assert (health.ok, "may not read all Secrets" in health.detail) == (False, True)
    assert {path.rpartition("/")[2] for path in cluster.targets} == {"selfsubjectaccessreviews"}


class TestWhichCluster:
    def test_the_default_store_in_a_pod_is_the_pods_own(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        account = tmp_path / "account"
        account.mkdir()
        (account / "token").write_text(TOKEN + "\n")
        (account / "namespace").write_text("prod")
        authority.cert_pem.write_to_path(account / "ca.crt")
        host, _, port = secure.base_url.removeprefix("https://").partition(":")
        inside = {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "HOME": str(tmp_path),
        }
        assert values({**inside, f"{DEFAULT}SERVICE_ACCOUNT": str(account)}, "k8s:db#pw") == [b"x"]
        found = registry({**inside, f"{DEFAULT}SERVICE_ACCOUNT": str(account)})
        assert isinstance(answers(found, "k8s:db")[0], Document)
        secure.token = "the-next-one"
        (account / "token").write_text("the-next-one")
        assert isinstance(answers(found, "k8s:db")[0], Document), (
            "a token is read anew: the pod's is replaced"
        )
        named = {**inside, **NAMED, f"{STORE}SERVICE_ACCOUNT": str(account)}
        refused(named, "other:prod/db", NotConfiguredError, "no cluster is configured for other")

    def test_a_kubeconfig_names_it_by_its_current_context(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        path = kubeconfig(tmp_path, secure, authority, {"token": TOKEN})
        assert values({"KUBECONFIG": str(path)}, "k8s:db#pw") == [b"x"]
        assert values({**NAMED, f"{STORE}KUBECONFIG": str(path)}, "other:db#pw") == [b"x"]
        refused(
            {**NAMED, "KUBECONFIG": str(path)},
            "other:prod/db",
            NotConfiguredError,
            "no cluster is configured",
        )

    def test_the_users_own_kubeconfig_is_taken_as_kubectl_takes_it(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        (tmp_path / ".kube").mkdir()
        kubeconfig(tmp_path, secure, authority, {"token": TOKEN}).rename(
            tmp_path / ".kube" / "config"
        )
        home = {"HOME": str(tmp_path)}
        assert values(home, "k8s:db#pw") == [b"x"]
        assert values({**home, **NAMED, f"{STORE}CONTEXT": "here"}, "other:db#pw") == [b"x"]
        refused(
            {**home, **NAMED, f"{STORE}CONTEXT": "there"},
            "other:db",
            NotConfiguredError,
            "no context 'there'",
        )
        refused({**home, **NAMED}, "other:prod/db", NotConfiguredError, "no cluster is configured")

    def test_a_client_certificate_does_for_a_token(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        secure.token = None
        leaf = authority.issue_cert("somebody@example.com")
        pair = {
            "client-certificate-data": coded(leaf.cert_chain_pems[0].bytes()),
            "client-key-data": coded(leaf.private_key_pem.bytes()),
        }
        path = kubeconfig(tmp_path, secure, authority, pair)
        assert values({"KUBECONFIG": str(path)}, "k8s:db#pw") == [b"x"]
        assert not list(Path("/tmp").glob("sealpipe-k8s-*"))

    def test_files_are_beside_the_kubeconfig_and_several_are_one(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        (tmp_path / "token").write_text(TOKEN)
        path = kubeconfig(
            tmp_path,
            secure,
            authority,
            {"tokenFile": "token"},
            **{"certificate-authority": "ca.pem"},
        )
        first = tmp_path / "first"
        first.write_text("{current-context: here, contexts: null}")
        assert values({"KUBECONFIG": f"{first}:{path}"}, "k8s:db#pw") == [b"x"]

    @pytest.mark.parametrize(
        "user",
        [
            {"exec": {"command": "aws"}},
            {"auth-provider": {"name": "gcp"}},
            {"username": "a", "password": "b"},
            {"as": "x"},
        ],
    )
    def test_what_a_kubeconfig_may_not_do_is_named_and_a_token_does_instead(
        self, user: dict[str, object], secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        environ = {"KUBECONFIG": str(kubeconfig(tmp_path, secure, authority, user))}
        error = refused(
            environ,
            "k8s:prod/db",
            UnsupportedError,
            f"has {next(iter(user))}, which sealpipe does not support",
        )
        assert "kubectl create token" in error.remedy
        assert values({**environ, f"{DEFAULT}TOKEN": TOKEN}, "k8s:db#pw") == [b"x"]

    def test_a_cluster_whose_certificate_is_not_to_be_checked_is_refused(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        path = kubeconfig(
            tmp_path, secure, authority, {"token": TOKEN}, **{"insecure-skip-tls-verify": True}
        )
        refused(
            {"KUBECONFIG": str(path)}, "k8s:prod/db", UnsupportedError, "insecure-skip-tls-verify"
        )
        assert secure.targets == []

    def test_another_authority_is_not_trusted(self, secure: Cluster, tmp_path: Path) -> None:
        trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
        environ = {f"{DEFAULT}SERVER": secure.base_url, f"{DEFAULT}TOKEN": TOKEN}
        words = "a certificate from an authority that is not trusted here"
        refused(environ, "k8s:prod/db", NotConfiguredError, words)
        refused(
            {**environ, f"{DEFAULT}CA_FILE": str(tmp_path / "other.pem")},
            "k8s:prod/db",
            NotConfiguredError,
            words,
        )
        assert secure.targets == []

    def test_the_ca_of_everything_serves_it_too(
        self, secure: Cluster, authority: trustme.CA, tmp_path: Path
    ) -> None:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        environ = {f"{DEFAULT}SERVER": secure.base_url, f"{DEFAULT}TOKEN": TOKEN}
        assert isinstance(
            answers(registry(environ, ca_file=tmp_path / "ca.pem"), "k8s:prod/db")[0], Document
        )
        trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
        both = registry(
            {**environ, f"{DEFAULT}CA_FILE": str(tmp_path / "other.pem")},
            ca_file=tmp_path / "ca.pem",
        )
        assert isinstance(answers(both, "k8s:prod/db")[0], Document)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    words = f"{file} cannot be read: it is larger than 4194304 bytes"
    for size, (setting, more) in itertools.product(
        (4 * 1024 * 1024 + 1, 1 << 40),
        {
            "KUBECONFIG": {},
            "CA_FILE": {"SERVER": "https://k8s.example", "TOKEN": TOKEN},
            "TOKEN_FILE": {"SERVER": "https://k8s.example"},
        }.items(),
    ):
        os.truncate(file, size)
        environ = {STORE + name: value for name, value in {**more, setting: str(file)}.items()}
        refused(environ | NAMED, "other:a/b", NotConfiguredError, words)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kubeconfig(
    folder: Path, cluster: Cluster, authority: trustme.CA, user: dict[str, object], **more: object
) -> Path:
    """As kubectl writes it; JSON is YAML."""
    trust = (
        {}
        if "certificate-authority" in more
        else {"certificate-authority-data": coded(authority.cert_pem.bytes())}
    )
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "prod"}}
        ],
        "clusters": [{"name": "c", "cluster": {"server": cluster.base_url, **trust, **more}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path
