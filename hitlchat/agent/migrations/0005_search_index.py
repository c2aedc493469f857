import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from django.db import migrations

# As hitlchat/agent/search.py made words when this landed.
WORD = re.compile(r"[^\W_]+")
LONGEST_TEXT, LONGEST_WORD = 200_000, 100

ON = {
    "sqlite": (
        "CREATE VIRTUAL TABLE agent_search USING fts5("
        "words, content='agent_searchtext', content_rowid='id', tokenize='unicode61')",
        "CREATE TRIGGER agent_search_insert AFTER INSERT ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(rowid, words) VALUES (new.id, new.words); END",
        "CREATE TRIGGER agent_search_delete AFTER DELETE ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(agent_search, rowid, words) VALUES ('delete', old.id, old.words); END",
        "CREATE TRIGGER agent_search_update AFTER UPDATE ON agent_searchtext BEGIN"
        " INSERT INTO agent_search(agent_search, rowid, words) VALUES ('delete', old.id, old.words);"
        " INSERT INTO agent_search(rowid, words) VALUES (new.id, new.words); END",
    ),
    "postgresql": ("CREATE INDEX agent_search ON agent_searchtext USING gin (to_tsvector('simple', words))",),
}
OFF = {
    "sqlite": (
        "DROP TRIGGER agent_search_insert",
        "DROP TRIGGER agent_search_delete",
        "DROP TRIGGER agent_search_update",
        "DROP TABLE agent_search",
    ),
    "postgresql": ("DROP INDEX agent_search",),
}


def words(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:LONGEST_TEXT].casefold())
    bare = "".join(each for each in plain if not unicodedata.combining(each))
    return " ".join(found[:LONGEST_WORD] for found in WORD.findall(bare))


def put_on(_apps: Any, schema_editor: Any) -> None:
    for statement in ON[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def take_off(_apps: Any, schema_editor: Any) -> None:
    for statement in OFF[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def fill(apps: Any, _schema_editor: Any) -> None:
    search_text = apps.get_model("agent", "SearchText")
    titles = apps.get_model("agent", "Conversation").objects.exclude(title="").values_list("pk", "title")
    rows = (search_text(conversation_id=pk, words=words(title)) for pk, title in titles.iterator(500))
    add(search_text, rows)
    said = apps.get_model("agent", "Message").objects.filter(role__in=["user", "assistant"]).exclude(content="")
    found = said.values_list("conversation_id", "pk", "content").iterator(500)
    add(search_text, (search_text(conversation_id=chat, message_id=pk, words=words(text)) for chat, pk, text in found))


def add(search_text: Any, rows: Iterator[Any]) -> None:
    batch: list[Any] = []
    for row in rows:
        if row.words:
            batch.append(row)
        if len(batch) == 500:
            search_text.objects.bulk_create(batch)
            batch.clear()
    search_text.objects.bulk_create(batch)


class Migration(migrations.Migration):
    dependencies = [("agent", "0004_kept_and_searched")]

    operations = [
        migrations.RunPython(put_on, take_off),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
