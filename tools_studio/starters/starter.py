from dataclasses import dataclass

from tools_studio.drafts import Draft


@dataclass(frozen=True)
class Starter:
    """`key` stands in addresses; `title` and `sentence` are what an author chooses by.

    `needs` says what has to be there, or changed, before its test can pass. `mails` if that includes a mail server.
    """

    key: str
    title: str
    sentence: str
    draft: Draft
    needs: str = ""
    mails: bool = False
