def capwords(s: str, sep: str | None = None) -> str: ...
ascii_letters: str
ascii_lowercase: str
ascii_uppercase: str
digits: str
hexdigits: str
octdigits: str
printable: str
punctuation: str
whitespace: str
