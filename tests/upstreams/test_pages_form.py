"""The form of a server: what is typed, what is kept of it, what is said of mistakes, and what never comes back."""

import re
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import HitlMode
from hitlchat.secrets.values import Value
from hitlchat.upstreams import endpoint, gallery
from hitlchat.upstreams.models import ComposedTool, ToolState, Trust, UpstreamServer
from hitlchat.upstreams.pages import form
from tests.upstreams.drawers import of
from tests.upstreams.shops import expose, listing, somewhere, take_in
from tests.upstreams.test_pages import KEY

pytestmark = pytest.mark.django_db

HTTP: Final = {"name": "shop", "transport": "http", "url": "https://shop.example/mcp", "call_seconds": "60"}
STDIO: Final = {"name": "local", "transport": "stdio", "command": "shop", "args": "--root\n/a b", "call_seconds": "60"}


def header(name: str, value: str = "", *, secret: bool = True, held: str = "", kind: str = "header") -> dict[str, Any]:
    """One row, as a browser posts it."""
    row = {f"{kind}-row": "1", f"{kind}-name": name, f"{kind}-value": value, f"{kind}-sealed": held}
    return row | ({f"{kind}-secret": "1"} if secret else {})


def save(person: User, path: str = "/servers/new", **fields: Any) -> Any:
    return of(person).post(path, fields)


def held_in(page: str) -> str:
    found = re.search(r'name="header-sealed" value="([^"]+)"', page)
    assert found
    return found[1]


def test_a_server_is_added_as_it_was_typed(alice: User) -> None:
    answer = save(
        alice, **HTTP, **header("Authorization", f"Bearer {KEY}"), enabled="on", docs_url="https://docs.example"
    )
    assert (answer.status_code, answer["Location"]) == (302, "/servers/s/shop")
    server = UpstreamServer.objects.get()
    assert (server.transport, server.url, server.call_seconds) == ("http", "https://shop.example/mcp", 60)
    assert not server.older_protocol
    save(alice, "/servers/s/shop", **HTTP | {"older_protocol": "on"}, made_from=server.updated_at.isoformat())
    assert UpstreamServer.objects.get().older_protocol
    assert (server.enabled, server.docs_url, server.trust) == (True, "https://docs.example", Trust.UNKNOWN)
    assert endpoint.spec_of(server).headers == {"Authorization": f"Bearer {KEY}"}


MISTAKES: Final = {
    "no name": ({"name": ""}, "id_name_error", "This field is required."),
    "a name with spaces": ({"name": "my shop"}, "id_name_error", "Use 1 to 64 letters"),
    "a name that is a way up": ({"name": ".."}, "id_name_error", "Use a letter or digit"),
    "no address": ({"url": ""}, "id_url_error", "begins with https://"),
    "an address without a host": ({"url": "shop"}, "id_url_error", "begins with https://"),
    "no time": ({"call_seconds": "0"}, "id_call_seconds_error", "greater than or equal to 1"),
    "no number": ({"call_seconds": "soon"}, "id_call_seconds_error", "Enter a whole number"),
    "a script as documentation": ({"docs_url": "javascript:alert(1)"}, "id_docs_url_error", "begins with https://"),
}


def test_a_mistake_is_named_at_its_field_and_what_was_typed_stays(subtests: pytest.Subtests, alice: User) -> None:
    for label, (fields, place, words) in MISTAKES.items():
        with subtests.test(label):
            answer = save(alice, **HTTP | {"docs_url": "https://kept.example"} | fields)
            page = answer.content.decode()
            assert answer.status_code == 422
            said = re.search(rf'id="{place}"[^>]*>([^<]*)', page)
            assert said
            assert words in said[1]
            assert "https://kept.example" in page or "docs_url" in fields
            assert not UpstreamServer.objects.exists()


def test_all_that_is_wrong_is_said_at_once(alice: User) -> None:
    wrong = HTTP | {"name": "my shop", "url": "https://me:pw@shop.example", "call_seconds": "0", "docs_url": "x"}
    for name in ("my shop", ""):
        page = save(alice, **wrong | {"name": name}, **header("Host", "other.example", secret=False)).content.decode()
        for field in ("name", "url", "call_seconds", "docs_url"):
            assert f'id="id_{field}_error"' in page, field
        assert "Host is set by the connection itself." in page
        assert "It must not contain a user name or password: use a header." in page


def test_what_is_wrong_with_a_header_is_said_once_and_plainly(subtests: pytest.Subtests, alice: User) -> None:
    for value, words in [
        ("Bearer ", "Authorization: type the token after Bearer."),
        ("basic", "Authorization: type user:password after basic."),
        ("Bearer  x ", "The value of Authorization begins or ends with a space."),
        ("Bearer \u2026", "The value of Authorization has characters that a header cannot carry."),
    ]:
        with subtests.test(value=value):
            given = HTTP | header("Authorization", value, secret=value.strip().lower() in {"bearer", "basic"})
            page = save(alice, **given).content.decode()
            assert f">{words}<" in page
            assert f'value="{value}"' in page
    tested = save(alice, "/servers/test", **HTTP, **header("Authorization", "basic")).content.decode()
    assert "<b>Headers:</b> Authorization: type user:password after basic.<" in tested


def test_documentation_counts_as_good_enough_until_somebody_says_otherwise(alice: User) -> None:
    save(alice, **HTTP)
    assert UpstreamServer.objects.get().docs_adequate
    save(alice, "/servers/s/shop", **HTTP, docs_lacking="on")
    assert not UpstreamServer.objects.get().docs_adequate
    assert re.search(r'name="docs_lacking"[^>]* checked', of(alice).get("/servers/s/shop").content.decode())


def test_a_program_that_is_not_there_is_not_asked_about(
    subtests: pytest.Subtests, alice: User, allow_stdio: None
) -> None:
    for command in ["no-such-program", "./shop", "/no/such/program", "/tmp"]:
        with subtests.test(command=command):
            page = save(alice, **STDIO | {"command": command}).content.decode()
            assert re.search(r'id="id_command_error"[^>]*>No such program was found', page)
            assert "Start this program" not in page
    tested = save(alice, "/servers/test", **STDIO | {"command": "no-such-program"}).content.decode()
    assert "No such program was found" in tested


def test_a_program_is_looked_for_where_its_own_path_leads(alice: User, allow_stdio: None) -> None:
    for path, found in (("/nowhere", False), ("${OTHER_PATH}", True), ("", True)):
        page = save(alice, **STDIO, **header("PATH", path, kind="env", secret=False)).content.decode()
        assert ("Start this program on this machine?" in page) == found, path


def test_an_option_with_its_value_on_one_line_is_pointed_out(alice: User, allow_stdio: None) -> None:
    given = STDIO | {"args": "-m mcp_server_time\n--zone=a b"}
    for path in ("/servers/new", "/servers/test"):
        page = save(alice, path, **given).content.decode()
        assert "“-m mcp_server_time” is one argument, with the space in it. Did you mean two lines?" in page
        assert page.count("Did you mean") == page.count("“-m mcp_server_time”")


def test_a_name_that_is_taken_is_refused_at_its_field(alice: User) -> None:
    somewhere(alice)
    page = save(alice, **HTTP | {"name": "Shop"}).content.decode()
    assert re.search(r'id="id_name_error"[^>]*>There is already a server named', page)


def test_a_typed_secret_survives_a_mistake_elsewhere_without_being_in_the_page(alice: User) -> None:
    page = save(alice, **HTTP | {"name": "my shop"}, **header("X-Key", KEY)).content.decode()
    assert KEY not in page
    answer = save(alice, **HTTP, **header("X-Key", held=held_in(page)))
    assert answer.status_code == 302
    assert endpoint.spec_of(UpstreamServer.objects.get()).headers == {"X-Key": KEY}


def test_what_one_person_typed_is_of_no_use_to_another(alice: User) -> None:
    page = save(alice, **HTTP | {"name": "my shop"}, **header("X-Key", KEY)).content.decode()
    other = User.objects.create_superuser("zoe", password="a long enough pass phrase")
    page = save(other, **HTTP, **header("X-Key", held=held_in(page))).content.decode()
    assert "X-Key: no value yet." in page


def test_a_stored_secret_is_kept_when_nothing_is_typed_and_replaced_when_something_is(alice: User) -> None:
    server = somewhere(alice, headers=(Value("X-Key", KEY),))
    client = of(alice)
    page = client.get("/servers/s/shop").content.decode()
    assert KEY not in page
    assert "Stored; type a new one to replace it" in page
    client.post("/servers/s/shop", HTTP | header("X-Key") | {"enabled": "on"})
    assert endpoint.spec_of(UpstreamServer.objects.get(pk=server.pk)).headers == {"X-Key": KEY}
    client.post("/servers/s/shop", HTTP | header("X-Key", "sk-another-secret") | {"enabled": "on"})
    assert endpoint.spec_of(UpstreamServer.objects.get(pk=server.pk)).headers == {"X-Key": "sk-another-secret"}


def test_a_stored_secret_does_not_go_to_another_host(alice: User) -> None:
    server = somewhere(alice, headers=(Value("X-Key", KEY),))
    moved = HTTP | {"url": "https://thief.example/mcp"} | header("X-Key")
    for answer in (save(alice, "/servers/s/shop", **moved), save(alice, "/servers/test", **moved, of="shop")):
        assert "enter the secrets again" in answer.content.decode()
    assert UpstreamServer.objects.get().url == server.url
    assert (
        save(alice, "/servers/s/shop", **HTTP | {"url": "https://shop.example/v2"}, **header("X-Key")).status_code
        == 302
    )


def test_a_secret_is_not_made_readable_by_unticking_the_box(alice: User) -> None:
    somewhere(alice, headers=(Value("X-Key", KEY),))
    answer = save(alice, "/servers/s/shop", **HTTP, **header("X-Key", secret=False))
    assert "X-Key: no value yet." in answer.content.decode()
    assert KEY not in answer.content.decode()


def test_a_reference_is_shown_as_it_is(alice: User) -> None:
    save(alice, **HTTP, **header("Authorization", "Bearer ${SHOP_KEY}"))
    assert "Bearer ${SHOP_KEY}" in of(alice).get("/servers/s/shop").content.decode()


def test_user_and_password_are_encoded_for_basic(alice: User) -> None:
    save(alice, **HTTP, **header("Authorization", "Basic aladdin:open sesame"))
    spec = endpoint.spec_of(UpstreamServer.objects.get())
    assert spec.headers == {"Authorization": "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ=="}
    page = save(alice, **HTTP, **header("Authorization", "Basic me:${PASSWORD}")).content.decode()
    assert "a reference cannot be encoded here" in page


def test_a_row_without_name_and_value_is_none(alice: User) -> None:
    save(alice, **HTTP, **header(""))
    assert UpstreamServer.objects.get().headers == []


def test_programs_cannot_be_chosen_unless_the_operator_allows_them(alice: User) -> None:
    page = of(alice).get("/servers/new").content.decode()
    assert "MCP_ALLOW_STDIO=1" in page
    assert re.search(r'value="stdio"[^>]* disabled', page)
    assert "MCP_ALLOW_STDIO" in save(alice, **STDIO).content.decode()
    assert not UpstreamServer.objects.exists()


def test_a_program_is_saved_only_after_its_command_line_was_shown_and_confirmed(alice: User, allow_stdio: None) -> None:
    given = STDIO | header("SHOP_KEY", KEY, kind="env")
    answer = save(alice, **given)
    page = answer.content.decode()
    assert (answer.status_code, UpstreamServer.objects.exists()) == (422, False)
    assert "Start this program on this machine?" in page
    assert "shop --root &#x27;/a b&#x27;" in page
    assert KEY not in page
    other = save(alice, **given | {"args": "--root\n/"}, confirmed="shop --root '/a b'")
    assert (other.status_code, UpstreamServer.objects.exists()) == (422, False)
    held = re.search(r'name="env-sealed" value="([^"]+)"', page)
    assert held
    save(alice, **STDIO, **header("SHOP_KEY", held=held[1], kind="env"), confirmed="shop --root '/a b'")
    assert UpstreamServer.objects.get().args == ["--root", "/a b"]
    assert endpoint.spec_of(UpstreamServer.objects.get()).env == {"SHOP_KEY": KEY}


def test_arguments_come_back_from_their_lines_as_they_were(subtests: pytest.Subtests) -> None:
    for given in [("-m", "server"), ("", "two\nlines"), (" spaces ", '"quoted"'), ("ünï", "${KEY}")]:
        with subtests.test(repr(given)):
            assert form.read(form.lines(given).replace("\n", "\r\n")) == given


def test_our_own_address_is_recognised(alice: User) -> None:
    for url in (
        "http://testserver/mcp",
        "http://testserver:80/mcp/",
        "http://127.0.0.1:80/mcp",
        "http://localhost/%6dcp",
    ):
        assert "own address" in save(alice, **HTTP | {"url": url}).content.decode(), url
    assert save(alice, **HTTP | {"url": "http://127.0.0.1:8080/mcp"}).status_code == 302


def an_entry() -> Any:
    return next(each for each in gallery.ALL if each.kind == "remote" and each.by_vendor)


def test_a_server_from_the_gallery_is_prefilled_and_trusted_as_the_gallery_says(alice: User) -> None:
    entry = an_entry()
    page = of(alice).get(f"/servers/new?from={entry.id}").content.decode()
    assert entry.draft.url in page
    assert entry.privileges[:30].replace("'", "&#x27;") in page
    save(alice, f"/servers/new?from={entry.id}", **HTTP | {"url": entry.draft.url}, entry=entry.id)
    server = UpstreamServer.objects.get()
    assert (server.trust, server.gallery_entry) == (Trust.VENDOR, entry.id)


def test_trust_is_never_taken_from_what_was_posted(alice: User) -> None:
    entry = an_entry()
    save(alice, **HTTP, entry=entry.id, trust="vendor", gallery_entry=entry.id)
    assert (UpstreamServer.objects.get().trust, UpstreamServer.objects.get().gallery_entry) == (Trust.UNKNOWN, "")


def test_a_server_of_the_gallery_that_is_led_elsewhere_is_no_longer_trusted(alice: User) -> None:
    entry = an_entry()
    save(alice, **HTTP | {"url": entry.draft.url}, entry=entry.id)
    save(alice, "/servers/s/shop", **HTTP)
    assert UpstreamServer.objects.get().trust == Trust.UNKNOWN


def test_the_name_from_the_gallery_is_a_free_one(alice: User) -> None:
    entry = an_entry()
    somewhere(alice, entry.id)
    assert f'value="{entry.id}-2"' in of(alice).get(f"/servers/new?from={entry.id}").content.decode()


def test_an_unknown_entry_of_the_gallery_is_not_found(alice: User) -> None:
    assert of(alice).get("/servers/new?from=nothing").status_code == 404


def test_what_someone_else_saved_meanwhile_is_not_overwritten_unseen(alice: User) -> None:
    server = somewhere(alice)
    made_from = server.updated_at.isoformat()
    save(alice, "/servers/s/shop", **HTTP | {"call_seconds": "30"}, made_from=made_from)
    answer = save(alice, "/servers/s/shop", **HTTP | {"call_seconds": "90"}, made_from=made_from)
    page = answer.content.decode()
    assert "Someone else changed this server" in page
    assert UpstreamServer.objects.get().call_seconds == 30
    again = re.search(r'name="made_from" value="([^"]+)"', page)
    assert again
    save(alice, "/servers/s/shop", **HTTP | {"call_seconds": "90"}, made_from=again[1])
    assert UpstreamServer.objects.get().call_seconds == 90


def test_saving_says_that_another_address_takes_the_tools_out_of_the_catalog(alice: User) -> None:
    server = somewhere(alice)
    take_in(server, listing(echo="Say the text back."))
    tool = expose(alice, server, hitl_mode=HitlMode.REQUIRED)
    page = of(alice).post("/servers/s/shop", HTTP | {"url": "https://other.example/mcp", "enabled": "on"}, follow=True)
    assert b"The address is different now, so the tools have left the catalog." in page.content
    assert ComposedTool.objects.get(tool=tool).state == ToolState.GONE
