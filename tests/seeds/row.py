from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`said`: the sentence in few words. `tests`: paths below tests/. `instead`: why hitlchat does something else."""

    said: str
    tests: tuple[str, ...] = ()
    instead: str = ""


def row(said: str, *tests: str, instead: str = "") -> Row:
    return Row(said, tests, instead)
