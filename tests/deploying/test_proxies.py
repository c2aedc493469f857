"""nginx and Caddy with the files of `deploy/`, changed in addresses only, in front of real servers."""

import asyncio
import datetime
import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hitlchat.asgi import LARGEST_BODY
from tests.mcp_server.clients import Raw
from tests.mcp_server.older import older
from tests.ports import free_port
from tests.processes import ROOT, Installation, Server, Servers, installation, migrated, servers
from tests.scripted_model import Gate, ScriptedModel, scripted_model, text
from tests.waiting import until

__all__ = ["installation", "migrated", "scripted_model", "servers"]

pytestmark = [
    pytest.mark.slow("starts a server and a proxy for each test"),
    pytest.mark.embedded,
    pytest.mark.timeout(300),
]

HOST: Final = "127.0.0.1"
BEHIND: Final = {"HTTPS": "1", "TRUSTED_PROXIES": "1", "ALLOWED_HOSTS": HOST}
ECHO: Final = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
# What surrounds the file on a machine, and keeps it to the folder of the test.
NGINX: Final = """{user}
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{file}
}}
"""
# Else it would take port 80, and put its authority among those that this machine trusts.
CADDY: Final = (
    "{{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n}}\n{file}"
)


class Proxy(Server):
    """A proxy in front of servers: people and pages use it as if it were one of them."""

    def __init__(self, behind: list[Server], kind: str, folder: Path) -> None:
        super().__init__(behind[0].home, {})
        self._behind, self._kind, self._folder = behind, kind, folder
        self.authority = folder / ("caddy/pki/authorities/local/root.crt" if kind == "caddy" else "authority.pem")

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    def _started(self, arguments: list[str], log: int) -> "subprocess.Popen[bytes]":
        command, variables = self._nginx() if self._kind == "nginx" else self._caddy()
        return subprocess.Popen(
            command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _nginx(self) -> tuple[list[str], dict[str, str]]:
        certify(self.authority)
        own = {
            "    server 127.0.0.1:8000;\n": "".join(f"    server {HOST}:{each.port};\n" for each in self._behind),
            "    listen [::]:80;\n": "",
            "    listen [::]:443 ssl http2;\n": "",
            "listen 80;": f"listen {HOST}:{free_port()};",
            "listen 443 ": f"listen {HOST}:{self.port} ",
            "/etc/letsencrypt/live/hitl.example.com/fullchain.pem": str(self.authority),
            "/etc/letsencrypt/live/hitl.example.com/privkey.pem": str(self.authority),
        }
        file = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
        for theirs, ours in own.items():
            assert theirs in file
            file = file.replace(theirs, ours)
        whole = NGINX.format(user="user root;" if os.geteuid() == 0 else "", folder=self._folder, file=file)
        (path := self._folder / "nginx.conf").write_text(whole, encoding="utf-8")
        return ["nginx", "-p", str(self._folder), "-e", "stderr", "-c", str(path)], {}

    def _caddy(self) -> tuple[list[str], dict[str, str]]:
        file = (ROOT / "deploy/Caddyfile").read_text(encoding="utf-8")
        (path := self._folder / "Caddyfile").write_text(CADDY.format(file=file), encoding="utf-8")
        places = {"XDG_DATA_HOME": str(self._folder), "XDG_CONFIG_HOME": str(self._folder)}
        ours = {"HITLCHAT_SITE": self.url, "HITLCHAT_SERVERS": " ".join(f"{HOST}:{each.port}" for each in self._behind)}
        return ["caddy", "run", "--adapter", "caddyfile", "--config", str(path)], places | ours


@pytest.fixture(params=["nginx", "caddy"])
def kind(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture
def proxy(
    kind: str,
    servers: Servers,
    scripted_model: ScriptedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Proxy]:
    """A server that asks the scripted model, behind a proxy that is ready."""
    server = servers.start(**BEHIND, **scripted_model.environment)
    with started([server], kind, tmp_path) as found:
        # Of clients that look at it: websockets, above all.
        monkeypatch.setenv("SSL_CERT_FILE", str(found.authority))
        yield found


@contextmanager
def started(behind: list[Server], kind: str, folder: Path) -> Iterator[Proxy]:
    with closing(Proxy(behind, kind, folder)) as found:
        found.start()
        yield found


def certify(path: Path) -> None:
    """Write a certificate of this machine's own address, signed by itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.OID_COMMON_NAME, HOST)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256()).public_bytes(pem)
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + signed)


def test_a_person_signs_in_and_reads_an_answer_over_a_websocket_and_as_a_stream_while_it_is_written(
    proxy: Proxy, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("The first words", gate, " and the last."))
    bob = proxy.sign_in("bob")
    conversation = bob.begin("Hi")
    page = bob.socket(conversation)
    gate.wait()
    page.until("The first words")
    with bob._client.stream("GET", f"/api/chat/{conversation}/stream") as stream:
        events = stream.iter_lines()
        assert any("The first words" in line for line in events)
        gate.open()
        assert any("and the last." in line for line in events)
    page.until("and the last.")


def test_cookies_are_for_https_alone_and_browsers_are_told_to_stay_with_it(proxy: Proxy) -> None:
    answer = httpx2.get(f"{proxy.url}/sign-in", trust_env=False, verify=False)
    assert "Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_the_largest_files_arrive_and_larger_requests_are_refused(proxy: Proxy) -> None:
    bob = proxy.sign_in("bob")
    path = f"/api/conversations/{bob.post('/api/conversations').json()['id']}/attachments"
    sent = [
        bob._client.post(path, files={"file": ("long.txt", b"a" * size)}, headers=bob._headers).status_code
        for size in (10 * 2**20, LARGEST_BODY + 1)
    ]
    assert sent == [201, 413]


async def test_a_call_at_mcp_waits_behind_the_proxy_until_a_person_answers(proxy: Proxy) -> None:
    home: Installation = proxy.home
    await asyncio.to_thread(home.add_tool, "echo", ECHO, hitl_mode="REQUIRED")
    making = ("create_token", "bob", "--kind", "mcp", "--without-elicitation", "inbox")
    token = (await asyncio.to_thread(home.manage, *making)).strip()
    calling = asyncio.create_task(Raw(proxy.url, token).call("echo"))

    def approve() -> None:
        bob = proxy.sign_in("bob")
        waiting = until(bob.pending, "the call waits")
        assert bob.post(f"/api/approvals/{waiting[0]['id']}/approve").is_success

    await asyncio.to_thread(approve)
    assert "hello" in str((await calling)["result"]["content"])


async def test_a_session_at_mcp_goes_on_where_it_began_however_many_servers_there_are(
    kind: str, servers: Servers, tmp_path: Path
) -> None:
    """That of a client from before 2026-07-28 is in one server's memory, and unknown to all others."""
    behind = [await asyncio.to_thread(servers.start, **BEHIND) for _ in range(2)]
    token = (await asyncio.to_thread(behind[0].home.manage, "create_token", "bob", "--kind", "mcp")).strip()
    with started(behind, kind, tmp_path) as proxy:
        for _ in range(5):
            async with older(proxy.url, token) as client:
                await client.call("get_order", order_id="4711")
                assert client.result["_meta"]["hitlchat/status"] == "succeeded"


def test_a_client_that_claims_another_address_for_each_guess_of_a_password_is_locked_out(proxy: Proxy) -> None:
    with httpx2.Client(base_url=proxy.url, trust_env=False, verify=False) as guesser:
        guesser.get("/sign-in")
        headers = {"X-CSRFToken": guesser.cookies["csrftoken"], "Origin": proxy.url}

        def guess(number: int) -> int:
            form = {"username": "charlie", "password": f"wrong-{number}"}
            claimed = {"X-Forwarded-For": f"198.51.100.{number}"}
            return guesser.post("/sign-in", data=form, headers=headers | claimed).status_code

        assert [guess(number) for number in range(11)][-1] == 429
