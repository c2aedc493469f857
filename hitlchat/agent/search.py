"""Full-text search over titles and messages: FTS5 on SQLite, a text index on PostgreSQL, with the same results.

Both read the words as they are made here, so that neither database's own idea of a word matters.
"""

import re
import unicodedata
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from hitlchat.agent.models import Conversation, Message, SearchText
from hitlchat.base.statements import compiled

# Of a longer text the beginning is found. PostgreSQL indexes no more than about a megabyte of one text.
LONGEST_TEXT: Final = 200_000
LONGEST_WORD: Final = 100
MOST_WORDS: Final = 20
HITS: Final = {
    "sqlite": "SELECT rowid FROM agent_search WHERE agent_search MATCH %s",
    "postgresql": "SELECT id FROM agent_searchtext WHERE to_tsvector('simple', words) @@ to_tsquery('simple', %s)",
}
_WORD: Final = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the words of `text`: letters and digits, without accents, capitals or marks."""
    plain = unicodedata.normalize("NFKD", text[:LONGEST_TEXT].casefold())
    # Again: one sign may have become many.
    bare = "".join(each for each in plain[:LONGEST_TEXT] if not unicodedata.combining(each))
    return [found[:LONGEST_WORD] for found in _WORD.findall(bare)]


def note_title(conversation_id: UUID, title: str) -> None:
    SearchText.objects.update_or_create(
        conversation_id=conversation_id, message=None, defaults={"words": " ".join(words(title))}
    )


def note_message(message_id: UUID, text: str) -> None:
    found = _conversation(message_id).one()
    if found is not None and (said := words(text)):
        row = SearchText(message_id=message_id, conversation_id=found, words=" ".join(said))
        SearchText.objects.bulk_create([row], update_conflicts=True, unique_fields=["message"], update_fields=["words"])


@compiled
def _conversation(message_id: UUID) -> QuerySet[Message, UUID]:
    return Message.objects.filter(pk=message_id).values_list("conversation_id", flat=True)


def matching(conversations: QuerySet[Conversation], text: str) -> QuerySet[Conversation]:
    """Return those whose title, or one message, has all words of `text`; the last one may be only begun."""
    wanted = words(text)[:MOST_WORDS]
    if not wanted:
        return conversations.none()
    # Words are letters and digits alone: nothing in them means something to either database.
    query = " ".join(f'"{word}"' for word in wanted) + "*"
    if connection.vendor == "postgresql":
        query = " & ".join(wanted) + ":*"
    hits = SearchText.objects.filter(pk__in=RawSQL(HITS[connection.vendor], [query]))  # noqa: S611
    return conversations.filter(pk__in=hits.values("conversation_id"))
