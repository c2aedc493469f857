"""Is anybody to be asked? What no person should be bothered with, or tricked by, is declined by itself."""

from uuid import UUID

from hitlchat.base import canonical
from hitlchat.upstreams.asking import links, schema
from hitlchat.upstreams.asking.secrecy import secret_field
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion
from hitlchat.upstreams.wire import Question

MOST_OPEN = 3
MOST_IN_ALL = 10
LONGEST_NAMED = 60


def obstacle(question: Question, earlier: list[str]) -> str:
    """Why nobody is asked, in a sentence; "" if there is nothing against it. `earlier`: the states of those before."""
    if len(earlier) >= MOST_IN_ALL:
        return f"It is more than the {MOST_IN_ALL} that a call may ask."
    if earlier.count(QuestionState.OPEN) >= MOST_OPEN:
        return f"{MOST_OPEN} of its questions were open already."
    try:
        if question.url:
            links.link(question.url)
            return ""
        canonical.dumps(question.schema)
        fields = schema.fields_of(question.schema)
    except canonical.NotJson:
        return "Nobody was asked, since its form cannot be read."
    except (schema.Unusable, links.NoLink) as error:
        return f"Nobody was asked, since {error}."
    if name := secret_field(question.message, fields, question.schema):
        return f"It asked for a secret (“{name[:LONGEST_NAMED]}”). Never give passwords, keys or tokens to a question."
    return ""


def states_of(call_id: UUID) -> list[str]:
    return list(UpstreamQuestion.objects.filter(call_id=call_id).values_list("state", flat=True))
