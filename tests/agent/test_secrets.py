"""What the people in a conversation read holds nothing that belongs to the operator alone."""

import httpx2
import openai

from hitlchat.agent.model_client import Endpoint, explain

KEY = "sk-live-4f9a"


def refusal(message: str, status: int = 401) -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://models.example/v1/chat/completions")
    return openai.APIStatusError(message, response=httpx2.Response(status, request=request), body={"message": message})


def test_the_shown_address_has_no_name_and_no_password() -> None:
    for address, shown in [
        ("", "api.openai.com"),
        ("http://models.example:8080/v1", "http://models.example:8080/v1"),
        ("http://svc:Pa55@models.example/v1", "http://models.example/v1"),
        ("https://svc:p@55@models.example", "https://models.example"),
        ("https://models.example/v1?key=Pa55#x", "https://models.example/v1"),
        ("svc:Pa55@models.example/v1", "models.example/v1"),
    ]:
        assert Endpoint(address, KEY, "m").shown_url == shown


def test_a_server_that_cannot_be_reached_is_named_without_its_password() -> None:
    error = openai.APIConnectionError(request=httpx2.Request("POST", "http://svc:Pa55w@models.example/v1"))
    said = str(explain(error, Endpoint("http://svc:Pa55w@models.example/v1", KEY, "m")))
    assert "http://models.example/v1 cannot be reached" in said
    assert "Pa55w" not in said


def test_a_key_that_the_server_repeats_is_left_out() -> None:
    for status in [400, 401, 404, 413, 429, 500]:
        said = str(explain(refusal(f"Incorrect API key provided: {KEY}.", status), Endpoint("", KEY, "m")))
        assert "Incorrect API key provided: [key]." in said
        assert KEY not in said


def test_a_password_that_the_server_repeats_is_left_out() -> None:
    where = Endpoint("http://svc:Pa%3555@models.example/v1", KEY, "m")
    said = str(explain(refusal("no user svc:Pa555, nor Pa%3555"), where))
    assert "Pa555" not in said
    assert "Pa%3555" not in said


def test_a_key_is_left_out_before_a_long_text_is_cut() -> None:
    said = str(explain(refusal("x" * 295 + KEY), Endpoint("", KEY, "m")))
    assert "sk-l" not in said
