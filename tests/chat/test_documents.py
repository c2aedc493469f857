"""The documentation in the product: each file is a page, each link leads somewhere, and Ctrl+K finds its sections."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.chat import documents

LINK = re.compile(r'<a href="([^"]+)"')


def test_every_link_of_every_document_leads_to_a_page_and_a_heading_that_are_there() -> None:
    anchors = {document.url: set(re.findall(r'id="([^"]+)"', document.html)) for document in every()}
    for document in every():
        for link in LINK.findall(document.html):
            if "://" not in link:
                url, _, anchor = link.partition("#")
                assert not anchor or anchor in anchors[url or document.url], (document.name, link)


def test_every_document_is_named_in_the_index_once() -> None:
    links = [link.partition("#")[0] for link in LINK.findall(documents.read("index").html)]
    named = sorted(document.url for document in every() if document.name != "index")
    assert sorted(set(links)) == named
    assert len(links) == len(named)


def test_a_link_to_a_file_that_has_no_page_is_its_words(tmp_path: Path) -> None:
    assert "nginx.conf" in documents.read("deploying").html
    assert "deploy/nginx.conf" not in "".join(LINK.findall(documents.read("deploying").html))
    for document in every():
        assert document.html.count("<a ") == document.html.count("</a>"), document.name


def test_a_document_has_a_title_its_sections_and_no_markup_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "made.md"
    file.write_text(
        "# Tool *Python*\n\nText <script>x</script> ![A picture](x.png)\n\n## What works\n\n| a | b |\n|---|---|\n"
        "| `1` | 2 |\n\n## What works\n\n```python\nx = '<b>'\n```\n\n```nonsense\n<i>\n```\n",
        encoding="utf-8",
    )
    made = documents.laid_out("made", file)
    assert made.title == "Tool Python"
    assert [(each.anchor, each.title) for each in made.sections] == [
        ("", ""),
        ("what-works", "What works"),
        ("what-works-1", "What works"),
    ]
    assert '<h2 id="what-works">' in made.html
    assert '<div class="scroll-x" tabindex="0"><table>' in made.html
    for absent in ("<script>", "<h1", "<img", "<b>", "<i>"):
        assert absent not in made.html
    assert "A picture" in made.html


@pytest.mark.django_db
def test_a_person_reads_them_by_name_and_finds_their_sections(bob: User, client: Client) -> None:
    assert client.get("/docs/policies").status_code == 302
    client.force_login(bob)
    page = client.get("/docs/policies").content.decode()
    assert '<a href="#which-rule-wins">Which rule wins</a>' in page
    assert client.get("/docs/").status_code == 200
    assert client.get("/docs/nothing").status_code == 404
    found = client.get("/find", {"q": "which rule wins"}).content.decode()
    assert re.findall(r'<a href="(/docs/[^"]+)"', found)[0] == "/docs/policies#which-rule-wins"
    # By what is in a section, too.
    assert "/docs/operating#another-secret_key" in client.get("/find", {"q": "rotate_secrets"}).content.decode()


def test_every_document_goes_into_the_image() -> None:
    wanted = (settings.BASE_DIR / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for path in documents.files().values():
        name = str(path.relative_to(settings.BASE_DIR))
        assert f"!{name}" in wanted or (name.startswith("docs/") and "!docs/*.md" in wanted)


def every() -> list[documents.Document]:
    return [documents.read(name) for name in documents.files()]
