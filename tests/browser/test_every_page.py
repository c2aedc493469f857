"""Every page opens in a browser without a complaint, and fits its window."""

from typing import Final

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import House
from tests.browser.looking import IN_SHORT, THOROUGHLY, Looks, check

pytestmark = pytest.mark.browser

# At which the stories of this folder that are not slow look too.
OF_STORIES: Final = ("/approvals/", "/servers/", "/servers/new")
OTHERS: Final = (
    "/",
    "/account",
    "/attention-checks",
    "/docs/",
    "/docs/tool-python",
    "/grants/",
    "/history/",
    "/history/changes",
    "/insights/",
    "/insights/report",
    "/mcp-access/connect",
    "/mcp-access/inspector",
    "/mcp-access/tokens",
    "/models/",
    "/notices/",
    "/people/",
    "/policies",
    "/policies/earned",
    "/policies/lab",
    "/presets/",
    "/record/",
    "/servers/gallery",
    "/servers/history",
    "/servers/questions/",
    "/servers/tools",
    "/studio/",
    "/studio/agents/",
    "/studio/export",
    "/studio/import",
    "/studio/new",
    "/studio/project/",
    "/studio/sandbox",
    "/studio/tools/echo",
    "/studio/tools/echo/cases",
    "/studio/tools/echo/delete",
    "/studio/tools/echo/versions",
    "/texts",
    "/tool-sets/",
    "/tools/echo/rules",
    "/tools/echo/texts",
)
PAGES: Final = OF_STORIES + OTHERS


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "looks, pages",
    [
        pytest.param(IN_SHORT, OTHERS, id="in short"),
        # In parts, so that one worker is not left with all of it at the end.
        *(
            pytest.param(THOROUGHLY, PAGES[first::3], id=f"thoroughly {first}", marks=pytest.mark.slow("contrast"))
            for first in range(3)
        ),
    ],
)
def test_every_page_opens_fits_its_window_and_is_usable_by_everyone(
    author: Page, house: House, looks: Looks, pages: tuple[str, ...]
) -> None:
    for path in pages:
        answer = author.goto(house.server.url + path)
        assert answer
        assert answer.status == 200, path
        check(author, looks)
