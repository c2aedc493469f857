"""What went wrong with the model server, in words that say what to do."""

from typing import TYPE_CHECKING

from django.conf import settings

from hitlchat.agent.answer_bytes import OutOfBounds
from hitlchat.agent.endpoint import Endpoint

if TYPE_CHECKING:
    import openai

LONGEST_DETAIL = 300
# How the common servers say it; there is no code that all of them use.
TOO_LONG = ("context_length", "context length", "too long", "maximum context", "too many tokens")


class ModelTrouble(Exception):
    """The model could not answer; the message is for the person in the conversation."""


def explain(error: Exception, endpoint: Endpoint) -> ModelTrouble:
    import openai  # noqa: PLC0415 - loading it takes a third of a second

    match error:
        case OutOfBounds():
            return ModelTrouble(f"{error} The rest was not read.")
        case TimeoutError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} did not end its answer within"
                f" {settings.MODEL_ANSWER_SECONDS} seconds. Try again, or set MODEL_ANSWER_SECONDS higher."
            )
        case openai.APITimeoutError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} took too long. Try again, or check its load."
            )
        case openai.APIConnectionError():
            return ModelTrouble(
                f"The model server at {endpoint.shown_url} cannot be reached. Check that it runs and that "
                "OPENAI_BASE_URL is right, then send the message again."
            )
        case openai.APIStatusError():
            return ModelTrouble(_status(error, endpoint))
        case openai.APIError():
            return ModelTrouble(
                f"The model server broke off its answer: {_detail(error, endpoint)} Send the message again."
            )
        case _:
            return ModelTrouble(
                "The model server sent something that is no Chat Completions stream. Check its version."
            )


def _status(error: "openai.APIStatusError", endpoint: Endpoint) -> str:
    detail = _detail(error, endpoint)
    match error.status_code:
        case 401 | 403:
            return f"The model server did not accept the key ({error.status_code}). Check OPENAI_API_KEY. {detail}"
        case 404:
            return f"The model server does not know “{endpoint.model}” or this address. Check OPENAI_MODEL. {detail}"
        case 429:
            return f"The model server says that a limit or quota is used up (429). Wait, then try again. {detail}"
        case 400 | 413 | 422 if _too_long(error):
            return f"The conversation is longer than the model can read. Start a new conversation. {detail}"
        case status if status >= 500:
            return f"The model server failed ({status}). Try again in a moment. {detail}"
        case status:
            return f"The model server refused the request ({status}). {detail}"


def _too_long(error: "openai.APIStatusError") -> bool:
    text = f"{error.code} {error.message}".lower()
    return error.status_code == 413 or any(words in text for words in TOO_LONG)


def _detail(error: "openai.APIError", endpoint: Endpoint) -> str:
    """What the server says, without what belongs to the operator: some servers repeat the key."""
    body = error.body if isinstance(error.body, dict) else {}
    text = " ".join(str(body.get("message") or error.message or "").split())
    for secret in endpoint.secrets:
        text = text.replace(secret, "[key]")
    cut = text if len(text) <= LONGEST_DETAIL else text[:LONGEST_DETAIL] + "…"
    return f"It says: “{cut}”." if cut else ""
