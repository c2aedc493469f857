"""`GET /metrics`, for administrators and whoever has the token for it. Being on the same machine is no credential: so
is a proxy that speaks for the whole world.
"""

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_GET

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.telemetry import metrics as numbers

NOT_FOR_YOU = (
    "For administrators: sign in as one, or send a personal token of one, or HITL_METRICS_TOKEN, as "
    "“Authorization: Bearer …”.\n"
)


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        response = HttpResponse(NOT_FOR_YOU, status=401, content_type="text/plain; charset=utf-8")
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(numbers.text(), content_type=numbers.CONTENT_TYPE)


def _may_read(request: HttpRequest) -> bool:
    if "Authorization" not in request.headers:
        return isinstance(request.user, User) and may_administer(request.user)
    scheme, _, secret = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "bearer":
        return False
    wanted = settings.HITL_METRICS_TOKEN
    if wanted and constant_time_compare(secret.strip(), wanted):
        return True
    token = Token.find(secret.strip())
    if token is None or token.kind == TokenKind.MCP or not may_administer(token.user):
        return False
    token.note_use()
    return True
