"""What a server may ask for, what fits its fields, and what nobody is bothered with."""

from typing import Any

import pytest

from hitlchat.base.forms import BadAnswer, checked, read
from hitlchat.upstreams.elicitation.screening import Unusable, fields_of, link, secret_field


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
CHOICE = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}
MANY = {"type": "array", "items": {"type": "string", "enum": ["r", "g", "b"]}, "minItems": 1, "maxItems": 2}

FITS: list[tuple[dict[str, Any], str, Any]] = [
    (TEXT, "two\r\nlines", "two\nlines"),
    ({"type": "integer"}, " 12 ", 12),
    ({"type": "integer"}, "12.0", 12),
    ({"type": "number", "minimum": 0.5}, "1.5", 1.5),
    ({"type": "boolean"}, "no", False),
    (CHOICE, "b", "b"),
    ({"type": "string", "enum": ["r"], "enumNames": ["Red"]}, "r", "r"),
    ({"type": "string", "format": "email"}, "ann@shop.example", "ann@shop.example"),
    ({"type": "string", "format": "uri"}, "https://shop.example/a", "https://shop.example/a"),
    ({"type": "string", "format": "date"}, "2027-01-31", "2027-01-31"),
    ({"type": "string", "format": "date-time"}, "2027-01-31T18:00:00Z", "2027-01-31T18:00:00Z"),
    ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "abc"),
]
FAILS: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "string", "minLength": 3}, "ab", "Write at least 3 characters."),
    ({"type": "string", "maxLength": 3}, "abcd", "Write at most 3 characters, not 4."),
    (TEXT, "x" * 10_001, "Write at most 10,000 characters, not 10,001."),
    (TEXT, "a\x00", "Contains a character that cannot be stored, such as U+0000."),
    ({"type": "integer"}, "1.5", "Give a whole number."),
    ({"type": "integer"}, "9" * 400, "Give a number between -9007199254740991 and 9007199254740991."),
    ({"type": "number"}, "nan", "Give a number."),
    ({"type": "number"}, "1e999", "Give a number."),
    ({"type": "number", "maximum": 2}, "3", "Give a number of at most 2."),
    ({"type": "boolean"}, "maybe", "Choose yes or no."),
    (CHOICE, "Red", "Choose one from the list."),
    ({"type": "string", "format": "email"}, "ann@shop", "Write an e-mail address, such as ann@shop.example."),
    ({"type": "string", "format": "uri"}, "shop", "Write a whole address, such as https://shop.example/page."),
    ({"type": "string", "format": "date"}, "31.1.2027", "Write a date as year, month and day, such as 2027-01-31."),
    (
        {"type": "string", "format": "date-time"},
        "2027-01-31T18:00",
        "Write date, time and zone, such as 2027-01-31T18:00:00Z.",
    ),
    ({"type": "string", "pattern": "^[a-z]+$"}, "ABC", "Not in the expected format."),
]


def test_what_fits_is_what_the_server_gets(subtests: pytest.Subtests) -> None:
    for part, typed, value in FITS:
        with subtests.test(part=part):
            found = read(fields_of(form(it=part)), [[typed]])
            assert (found, type(found["it"])) == ({"it": value}, type(value))


def test_what_does_not_fit_is_said_with_what_was_expected(subtests: pytest.Subtests) -> None:
    for part, typed, said in FAILS:
        with subtests.test(part=part):
            with pytest.raises(BadAnswer) as refused:
                read(fields_of(form(it=part)), [[typed]])
            assert refused.value.errors == {"it": said}


def test_what_is_left_out_is_left_out_and_what_is_required_is_missed() -> None:
    schema = form(a=TEXT, b=TEXT, c=MANY, d=CHOICE) | {"required": ["a", "d"]}
    with pytest.raises(BadAnswer) as refused:
        read(fields_of(schema), [[""], [""], [], []])
    assert refused.value.errors == {"a": "Fill this in.", "d": "Choose one from the list."}
    assert read(fields_of(schema), [["x"], [""], [], ["r"]]) == {"a": "x", "d": "r"}


def test_of_several_not_too_many_and_none_that_is_not_there(subtests: pytest.Subtests) -> None:
    for chosen, said in [(["r", "g", "b"], "Choose at most 2."), (["r", "x"], "Choose one from the list.")]:
        with subtests.test(chosen=chosen):
            fields = fields_of(form(it=MANY))
            assert read(fields, [["r", "b"]]) == {"it": ["r", "b"]}
            with pytest.raises(BadAnswer, match=said):
                read(fields, [chosen])


def test_a_value_of_another_type_is_none(subtests: pytest.Subtests) -> None:
    for value in [1, None, ["x"], {"a": 1}, True]:
        with subtests.test(value=value), pytest.raises(BadAnswer, match=r"Write a text\."):
            checked(fields_of(form(it=TEXT)), {"it": value})


def test_true_is_no_number() -> None:
    with pytest.raises(BadAnswer, match=r"Give a whole number\."):
        checked(fields_of(form(it={"type": "integer"})), {"it": True})


def test_a_suggestion_that_does_not_fit_is_left_out() -> None:
    one, other = fields_of(form(a={"type": "integer", "default": 2}, b={"type": "integer", "default": "two"}))
    assert (one.default, other.default) == (2, None)


def test_of_what_is_not_flat_or_not_to_be_shown_no_form_is_made(subtests: pytest.Subtests) -> None:
    for schema in [
        form(it={"type": "object", "properties": {}}),
        form(it={"type": "array", "items": {"type": "object"}}),
        form(it={"type": ["string", "null"]}),
        form(it={"$ref": "#/$defs/x"}),
        form(it="string"),
        form(it={"type": "string", "enum": []}),
        form(it={"type": "string", "enum": [1, 2]}),
        form(it={"type": "string", "enum": [str(number) for number in range(500)]}),
        form(**{"x" * 300: TEXT}),
        form(**{f"f{number}": TEXT for number in range(21)}),
        form(it=TEXT) | {"required": ["other"]},
        form(it=TEXT) | {"required": [["it"]]},
        {"properties": []},
        {"properties": {}, "required": "it"},
    ]:
        with subtests.test(schema=schema), pytest.raises(Unusable, match="its form"):
            fields_of(schema)


def test_a_secret_is_known_however_it_is_asked_for(subtests: pytest.Subtests) -> None:
    for message, schema in [
        ("Sign in", form(password=TEXT)),
        ("Sign in", form(userPassword=TEXT)),
        ("Sign in", form(PASSWORD=TEXT)),
        ("Sign in", form(p={"type": "string", "title": "Your pass phrase"})),
        ("Sign in", form(p={"type": "string", "description": "an API key of the shop"})),
        ("Sign in", form(p={"type": "string", "format": "password"})),
        ("Sign in", form(p={"type": "string", "writeOnly": True})),
        ("Sign in", form(access_token=TEXT)),
        ("Sign in", form(value={"type": "string", "title": "\u0440\u0430ssword"})),
        ("Sign in", form(value={"type": "string", "title": "pass\u200bword"})),
        ("Sign in", form(pin={"type": "integer"})),
        ("Sign in", form(code={"type": "integer", "title": "Verification code"})),
        ("Enter your password below", form(value=TEXT)),
        ("Do not hesitate to give us your PIN", form(value=TEXT)),
        ("Do not enter your name, enter your password", form(value=TEXT)),
        ("Never share your PIN. Except here: PIN?", form(value=TEXT)),
        ("Sign in", form(value={"type": "string", "title": "Пароль"})),
    ]:
        with subtests.test(message=message):
            assert secret_field(message, fields_of(schema), schema) == next(iter(schema["properties"]))


def test_what_is_no_secret_may_be_asked(subtests: pytest.Subtests) -> None:
    for message, schema in [
        ("Which paint?", form(colour=TEXT, litres={"type": "integer"})),
        ("Which model?", form(max_tokens={"type": "integer"})),
        ("Rotate the token?", form(rotate_token={"type": "boolean"})),
        ("Which secret?", form(which={"type": "string", "enum": ["db", "web"]})),
        ("Where to?", form(pinned=TEXT, spinning=TEXT, tangent=TEXT)),
        ("Which account? Do *not* give us your PIN.", form(value=TEXT)),
        ("Never share your one-time code, don't enter any API key.", form(value=TEXT)),
        ("How many?", form(count={"type": "integer", "description": "A number; do *not* enter your pin here"})),
    ]:
        with subtests.test(message=message):
            assert secret_field(message, fields_of(schema), schema) == ""


def test_an_address_is_shown_as_a_browser_goes_there(subtests: pytest.Subtests) -> None:
    for url, address, host in [
        ("https://shop.example/a?b=c#d", "https://shop.example/a?b=c#d", "shop.example"),
        ("HTTPS://Shop.Example", "https://shop.example/", "shop.example"),
        ("http://shop.example:8080/", "http://shop.example:8080/", "shop.example:8080"),
        ("https://shop.example:443/", "https://shop.example/", "shop.example"),
        ("https://b\u00fccher.example/\u00fc", "https://xn--bcher-kva.example/%C3%BC", "xn--bcher-kva.example"),
        ("https://\u0430pple.com/", "https://xn--pple-43d.com/", "xn--pple-43d.com"),
        ("https://8.8.8.8/", "https://8.8.8.8/", "8.8.8.8"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/", "[2606:4700::1111]"),
    ]:
        with subtests.test(url=url):
            found = link(url)
            assert (found.address, found.host) == (address, host)
            assert found.before + found.host + found.after == address


def test_nobody_is_sent_to_an_address_of_another_kind_or_inside(subtests: pytest.Subtests) -> None:
    for url in [
        *("", "shop.example", "//shop.example", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"),
        *("https://user@shop.example/", "https://shop.example\\@evil.example/", "https://shop.example/ x"),
        *("https://shop.example/\u0000", "https://shop.example/\n", "https:///x", "https://.example/"),
        *("http://localhost/", "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1/", "http://169.254.169.254/"),
        *("http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://intranet/"),
        *("http://printer.local/", "http://metadata.google.internal/", "http://[fe80::1%25eth0]/", "http://a.test/"),
        *("https://shop.example:99999/", "https://sh•••op.example/", f"https://shop.example/{'x' * 2000}"),
    ]:
        with subtests.test(url=url), pytest.raises(Unusable, match="its address"):
            link(url)
