"""A tool's variables when it runs: its own alone, and no secret in anything that comes back."""

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.gate.models import Approval, AuditEvent, Tool
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.secrets.masking import HIDDEN
from hitlchat.secrets.values import Value
from tests.conftest import MakeTool, caller
from tests.tables import each_row
from tests.tools_studio.calling import call, preview, said
from tests.tools_studio.fetching.conftest import serving
from tools_studio.models import Script, StoredVariable

SECRET = "tr0ub4dor&3/hünter"
FROM_ENVIRONMENT = "value-of-the-environment"
VARIABLES = (
    Value("SHOP", "the shop", secret=False),
    Value("SHOP_KEY", SECRET),
    Value("OTHER_KEY", "${TEST_OTHER_KEY}"),
)

HEAD = "from hitl import secret, variable"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def keyed(make_tool: MakeTool, monkeypatch: pytest.MonkeyPatch) -> MakeTool:
    """Make a tool that has a plain variable, a stored secret and one from the environment."""
    monkeypatch.setenv("TEST_OTHER_KEY", FROM_ENVIRONMENT)

    def make(name: str, body: str, *, previewed: str = "", head: str = HEAD, **fields: Any) -> Tool:
        fields = {"capabilities": {"secrets": True}, "variables": VARIABLES, "hitl_mode": "DISABLED", **fields}
        return make_tool(name, code=written(body, previewed, head), **fields)

    return make


@pytest.fixture
def reads(keyed: MakeTool) -> Tool:
    return keyed("reads", "return 1")


def written(body: str, previewed: str, head: str) -> str:
    code = f"import base64\nimport json\n{head}\n\n\n" + function("run", body)
    return f"{code}\n\n{function('preview', previewed)}" if previewed else code


def function(name: str, body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f'def {name}():\n    """Do it."""\n{lines}'


def test_a_tool_reads_its_variables_and_its_secrets(keyed: MakeTool, alice: User) -> None:
    keyed("reads", 'return [variable("SHOP"), len(secret("SHOP_KEY")), len(secret("OTHER_KEY"))]')
    assert call(alice, "reads").result == ["the shop", len(SECRET), len(FROM_ENVIRONMENT)]


@each_row(
    "body, words",
    [
        ('return secret("NONE")', "no secret 'NONE'; there is: OTHER_KEY, SHOP_KEY"),
        ('return secret("SHOP")', "SHOP is a plain variable: expected variable('SHOP')"),
        ('return variable("NONE")', "no plain variable 'NONE'; there is: SHOP"),
        ('return variable("SHOP_KEY")', "SHOP_KEY is a secret: expected secret('SHOP_KEY')"),
        ("return secret(7)", "no secret '7'"),
        ('return secret("PATH")', "no secret 'PATH'"),
        ('return variable("${TEST_OTHER_KEY}")', "no plain variable"),
    ],
)
def test_what_is_no_variable_is_named_with_those_there_are(reads: Tool, alice: User, body: str, words: str) -> None:
    Script.objects.update(code=written(body, "", HEAD))
    assert words in said(call(alice, "reads"))


@pytest.mark.parametrize(
    "capabilities, write, read",
    [
        (
            {"store": True},
            'from hitl import store\nstore.set("k", {"v": [secret("SHOP_KEY")]})',
            'from hitl import store\nkept = store.get("k")["v"][0]',
        ),
        (
            {"files": {"mode": "write", "folder": "shared"}},
            'from hitl import files\nfiles.write("k", secret("SHOP_KEY"))',
            'from hitl import files\nkept = files.read("k")',
        ),
    ],
    ids=["store", "files"],
)
def test_what_another_tool_kept_of_its_secret_is_masked_too(
    keyed: MakeTool,
    alice: User,
    settings: Settings,
    tmp_path: Path,
    capabilities: dict[str, Any],
    write: str,
    read: str,
) -> None:
    settings.TOOL_FILES_DIR = tmp_path
    keyed("writes", f"{write}\nreturn 1", capabilities={"secrets": True, **capabilities})
    keyed(
        "reads", f"{read}\nprint(kept)\nreturn [kept, kept.upper()]", variables=(), head="", capabilities=capabilities
    )
    keyed("fails", f"{read}\nraise ValueError(kept)", variables=(), head="", capabilities=capabilities)
    assert call(alice, "writes").result == 1
    done, failed = call(alice, "reads"), call(alice, "fails")
    assert (done.result, done.output) == ([HIDDEN, HIDDEN], f"{HIDDEN}\n")
    assert SECRET not in str(failed.error)
    assert HIDDEN in said(failed)


def test_without_the_capability_no_secret_can_be_read(keyed: MakeTool, alice: User) -> None:
    keyed("reads", 'return secret("SHOP_KEY")', capabilities={})
    done = call(alice, "reads")
    assert done.error["kind"] == "denied"
    assert "secret is not granted" in said(done)


def test_another_tools_variables_do_not_exist_for_a_tool(keyed: MakeTool, alice: User) -> None:
    keyed("owner", 'return variable("SHOP")')
    keyed("thief", 'return [secret("SHOP_KEY")]', variables=())
    keyed("thief_2", 'return [variable("SHOP")]', variables=(Value("MINE", "x", secret=False),))
    assert "no secret 'SHOP_KEY'; there is: none" in said(call(alice, "thief"))
    assert "there is: MINE" in said(call(alice, "thief_2"))


LEAKS = {
    "result": 'return secret("SHOP_KEY")',
    "part of a result": 'return {"a": [f"key={secret(\'SHOP_KEY\')}!"], secret("OTHER_KEY"): 1}',
    "print": 'print("key", secret("SHOP_KEY"), secret("OTHER_KEY"))',
    "printed list": 'print([secret("SHOP_KEY")])',
    "json": 'return json.dumps({"key": secret("SHOP_KEY")})',
    "base64": 'return base64.b64encode(("user:" + secret("SHOP_KEY")).encode()).decode()',
    "hex": 'print(secret("SHOP_KEY").encode().hex())',
    "exception": 'raise ValueError("bad key " + secret("SHOP_KEY"))',
    "key error": 'return {}[secret("SHOP_KEY")]',
    "failed conversion": 'return int(secret("SHOP_KEY"))',
    "unknown variable": 'return variable(secret("SHOP_KEY"))',
    "key of a store": 'from hitl import store\nreturn store.get(secret("SHOP_KEY") * 300)',
    "path": 'from hitl import files\nreturn files.read("/" + secret("SHOP_KEY"))',
    "capital": 'return secret("OTHER_KEY").upper()',
    "cut output": 'print("x" * 65530 + secret("SHOP_KEY"))',
    "cut error": 'raise ValueError("x" * 1980 + secret("SHOP_KEY") * 3)',
}


@each_row("way", LEAKS)
def test_no_secret_comes_back(
    keyed: MakeTool, alice: User, way: str, caplog: pytest.LogCaptureFixture, settings: Settings, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.TOOL_FILES_DIR = tmp_path
    name = way.replace(" ", "_")
    reach = {"secrets": True, "store": True, "files": {"mode": "read", "folder": "shared"}}
    keyed(name, LEAKS[way], capabilities=reach)
    done = call(alice, name)
    assert done.status in (Status.SUCCEEDED, Status.FAILED)
    events = [event.data for event in AuditEvent.objects.filter(call=done)]
    kept = json.dumps([done.result, done.error, done.output, done.reason, events], ensure_ascii=False)
    assert "•••" in kept or way == "key of a store"  # that error tells nothing of the key
    for value in (SECRET, FROM_ENVIRONMENT):
        for form in (value, value.upper(), value.encode().hex(), base64.b64encode(value.encode()).decode()[:12]):
            assert form not in kept
            assert form not in caplog.text
    assert SECRET[:5] not in kept


def test_a_preview_holds_no_secret_either(keyed: MakeTool, alice: User) -> None:
    table = 'return {"key": secret("SHOP_KEY"), secret("OTHER_KEY"): 1}'
    shown = preview(keyed("shows", "return 1", previewed=table), alice)
    assert shown is not None
    assert shown.table == {"columns": [], "rows": [["key", "•••"], ["•••", "1"]]}
    failed = preview(keyed("fails", "return 1", previewed='raise ValueError(secret("SHOP_KEY"))'), alice)
    assert failed is not None
    assert failed.error == "ValueError: ••• (line 13)"


def test_a_tool_with_a_missing_variable_is_not_run(
    keyed: MakeTool, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed("reads", "return 1")
    monkeypatch.delenv("TEST_OTHER_KEY")
    done = call(alice, "reads")
    assert done.error["kind"] == "unavailable"
    assert said(done) == (
        "It was not run: OTHER_KEY: the environment variable TEST_OTHER_KEY is not set on this server."
    )


def test_a_secret_that_can_no_longer_be_opened_keeps_the_tool_from_running(keyed: MakeTool, alice: User) -> None:
    keyed("reads", "return 1")
    StoredVariable.objects.filter(name="SHOP_KEY").update(value="gAAAA-of-another-key")
    assert said(call(alice, "reads")).startswith("It was not run: SHOP_KEY: It was sealed with another SECRET_KEY")


def test_a_revoked_tool_is_not_run(keyed: MakeTool, alice: User) -> None:
    tool = keyed("reads", 'print("ran")\nreturn 1')
    Script.objects.filter(tool=tool).update(revoked="its content is not what was shipped")
    done = call(alice, "reads")
    assert (done.status, done.output) == (Status.FAILED, "")
    assert said(done) == "It was not run: this tool was revoked: its content is not what was shipped"


def test_the_server_adds_a_secret_that_the_tool_never_sees(keyed: MakeTool, alice: User) -> None:
    with serving() as shop:
        place = f"http://127.0.0.1:{shop.server_port}"
        body = f'return fetch("{place}/echo", auth="OTHER_KEY")["text"]'
        reach = {"fetch": {"mode": "allowlist", "hosts": [place]}}
        keyed("asks", body, head="from hitl import fetch", capabilities=reach)
        done = call(alice, "asks")
        ((_, _, headers, _),) = shop.asked
    assert headers["authorization"] == f"Bearer {FROM_ENVIRONMENT}"
    assert done.status == Status.SUCCEEDED
    assert "Bearer •••" in done.result
    assert FROM_ENVIRONMENT not in done.result


def test_a_message_goes_to_the_url_that_a_variable_holds(keyed: MakeTool, alice: User) -> None:
    with serving() as shop:
        url = f"http://127.0.0.1:{shop.server_port}/echo?key=very-secret"
        hook = Value("HOOK", url)
        grants = {"webhook": {"targets": ["HOOK"]}}
        fields: dict[str, Any] = {"head": "from hitl import webhook", "capabilities": grants, "variables": (hook,)}
        keyed("tells", 'return webhook("HOOK", {"text": "done"})', **fields)
        done = call(alice, "tells")
        ((method, path, _, data),) = shop.asked
    assert (done.status, done.result) == (Status.SUCCEEDED, {"status": 200})
    assert (method, path, json.loads(data)) == ("POST", "/echo?key=very-secret", {"text": "done"})


def test_what_the_person_is_shown_holds_no_secret(keyed: MakeTool, alice: User) -> None:
    keyed("asks", "return 1", previewed='return secret("SHOP_KEY")', hitl_mode="REQUIRED")
    waiting = async_to_sync(submit)(CallRequest("asks", {}, caller(alice)))
    shown = Approval.objects.get(call=waiting).disclosure
    assert waiting.status == Status.WAITING
    assert shown["preview"]["text"] == "•••"
    assert SECRET not in json.dumps(shown, ensure_ascii=False)
