"""What a person does to sign in, and what stands in the addresses they are sent to."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from django.test import Client
from django.urls import reverse

from hitlchat.upstreams.models import SignIn, UpstreamServer

HOST = "localhost"


def begin(browser: Client, name: str = "guarded", **fields: str) -> Any:
    return browser.post(reverse("servers:sign-in", args=[name]), fields, headers={"host": HOST})


def link(page: Any) -> str:
    """Where the page sends the person."""
    assert page.status_code == 200, page.content.decode()
    return str(page.context["begun"].url)


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def there(url: str) -> str:
    """Say yes at the authorization server; where that sends the person back to."""
    with httpx2.Client(trust_env=False, verify=False) as web:
        answer = web.get(url)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def back(browser: Client, url: str) -> Any:
    parts = urlsplit(url)
    assert parts.netloc == HOST
    return browser.get(f"{parts.path}?{parts.query}", headers={"host": HOST})


def sign_in(browser: Client, name: str = "guarded", **fields: str) -> Any:
    """All of it."""
    answer = back(browser, there(link(begin(browser, name, **fields))))
    assert answer.status_code == 302, answer.context["why"]
    return answer


def kept(server: UpstreamServer) -> SignIn:
    return SignIn.objects.get(pk=server.pk)


def callback(server: UpstreamServer, **told: str) -> str:
    return (
        f"http://{HOST}{reverse('servers:callback', args=[server.pk])}?{'&'.join(f'{k}={v}' for k, v in told.items())}"
    )
