"""How many calls wait for a person, as the bar and the title of every page say it."""

from dataclasses import dataclass

from hitlchat.gate import queue

# Beyond this nobody needs the number, and counting on would cost the more the more wait.
MOST = 1000


@dataclass(frozen=True)
class Count:
    """`number` is at most MOST; `over`: there are more."""

    number: int
    over: bool = False

    def __bool__(self) -> bool:
        return self.number > 0

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.over else str(self.number)


def waiting(user_id: int) -> Count:
    found = queue.count(user_id, MOST + 1)
    return Count(min(found, MOST), found > MOST)
