def dedent(text: str) -> str: ...
def fill(
    text: str, width: int = 70, *, initial_indent: str = "", subsequent_indent: str = "", expand_tabs: bool = True,
    replace_whitespace: bool = True, fix_sentence_endings: bool = False, break_long_words: bool = True,
    drop_whitespace: bool = True, break_on_hyphens: bool = True, tabsize: int = 8, max_lines: int | None = None,
    placeholder: str = " [...]",
) -> str: ...
def indent(text: str, prefix: str) -> str: ...
def shorten(
    text: str, width: int, *, initial_indent: str = "", subsequent_indent: str = "", expand_tabs: bool = True,
    replace_whitespace: bool = True, fix_sentence_endings: bool = False, break_long_words: bool = True,
    drop_whitespace: bool = True, break_on_hyphens: bool = True, tabsize: int = 8, max_lines: int | None = None,
    placeholder: str = " [...]",
) -> str: ...
def wrap(
    text: str, width: int = 70, *, initial_indent: str = "", subsequent_indent: str = "", expand_tabs: bool = True,
    replace_whitespace: bool = True, fix_sentence_endings: bool = False, break_long_words: bool = True,
    drop_whitespace: bool = True, break_on_hyphens: bool = True, tabsize: int = 8, max_lines: int | None = None,
    placeholder: str = " [...]",
) -> list[str]: ...
