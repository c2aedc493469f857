"""Questions that upstream servers ask while they work on a call, and the answers of the person whose call it is."""

from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

from ninja import Query, Router

from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.contract import Body, Object, Page, Shape, Username, read
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.models import UpstreamQuestion
from hitlchat.upstreams.pages.questions import is_answerable

router = Router(tags=["questions"], by_alias=True)

Status = Literal["open", "answered", "declined", "expired", "gone"]


class Answer(Body):
    content: Object = {}


class Question(Shape):
    """`message`, `schema` and `url` were written by the server. The values of an answer are not kept."""

    id: UUID
    call_id: UUID
    tool_name: str = read("call.tool_name")
    server: str = read("server_name")
    message: str
    requested_schema: Object = read("schema")
    url: str
    asked_at: datetime
    deadline: datetime
    status: Status
    note: str
    answered_by: Username | None
    answered_at: datetime | None
    fields: list[str]


class QuestionFilter(Page):
    status: Status | Literal["all"] = "open"


NOTHING = Answer()
_person = partial(decider, to="answer questions")


@router.get("", response=list[Question])
def list_questions(request: ApiRequest, wanted: Query[QuestionFilter]) -> list[Question]:
    """Return what waits for you, the oldest first; or what has come of those before, the latest first."""
    user_id = _person(request).user_id
    rows = questions.open_for(user_id) if wanted.status == "open" else questions.asked_of(user_id)
    if wanted.status != "open":
        rows = rows.order_by("-asked_at", "-pk")
        rows = rows if wanted.status == "all" else rows.filter(state=wanted.status)
    return [_shape(row) for row in wanted.cut(rows)]


@router.get("/{uuid:question_id}", response=Question)
def read_question(request: ApiRequest, question_id: UUID) -> Question:
    return _shape(questions.find(question_id, _person(request)))


@router.post("/{uuid:question_id}/answer", response=Question)
def answer_question(request: ApiRequest, question_id: UUID, body: Answer = NOTHING) -> Question:
    """Send `content`, values by the names of the fields; none where the server wants an address to be opened, which
    says that you agree. It goes to that server only, and lets nothing run here.
    """
    return _shape(questions.answer(question_id, _person(request), body.content))


@router.post("/{uuid:question_id}/decline", response=Question)
def decline_question(request: ApiRequest, question_id: UUID) -> Question:
    """Don't answer. The server is told so."""
    return _shape(questions.decline(question_id, _person(request)))


def _shape(row: UpstreamQuestion) -> Question:
    # Open, and nobody waits for it any more: that is only not written down yet.
    return Question.of(row, status=row.state if row.state != "open" or is_answerable(row) else "gone")
