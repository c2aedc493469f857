from typing import Sequence

def context_diff(
    a: Sequence[str], b: Sequence[str], fromfile: str = "", tofile: str = "", fromfiledate: str = "",
    tofiledate: str = "", n: int = 3, lineterm: str = "\\n",
) -> list[str]: ...
def get_close_matches(word: str, possibilities: Sequence[str], n: int = 3, cutoff: float = 0.6) -> list[str]: ...
def unified_diff(
    a: Sequence[str], b: Sequence[str], fromfile: str = "", tofile: str = "", fromfiledate: str = "",
    tofiledate: str = "", n: int = 3, lineterm: str = "\\n",
) -> list[str]: ...
