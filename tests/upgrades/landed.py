"""The manifest of landed migrations. After a release, add what landed with it and commit the file:

    .venv/bin/python -m tests.upgrades.landed

It only adds. What it names already is never written anew: a landed migration stays as it is, for good.
"""

import hashlib
import io
import json
import os
import tokenize
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = Path(__file__).with_name("landed.json")
APPS: Final = ("hitlchat.", "tools_studio")
LAYOUT: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)

Entry = dict[str, Any]


def on_record() -> dict[str, Entry]:
    found: dict[str, Entry] = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return found


def in_tree() -> dict[str, Entry]:
    """Read the migrations of our own apps as the manifest would have them."""
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415 - it needs settings

    found = MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
    return {
        f"{app}.{name}": entry(migration)
        for (app, name), migration in sorted(found.items())
        if migration.__module__.startswith(APPS)
    }


def entry(migration: Any) -> Entry:
    source = Path(__import__(migration.__module__, fromlist=["Migration"]).__file__ or "")
    return {
        "after": sorted(".".join(map(str, each)) for each in migration.dependencies),
        "digest": digest(source.read_text(encoding="utf-8")),
    }


def digest(source: str) -> str:
    """Hash the tokens, so that neither comments nor layout count."""
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(source).readline) if each.type not in LAYOUT]
    kept = [
        each.string for each, after in pairwise([*tokens, tokens[-1]]) if (each.string, after.string) not in CLOSING
    ]
    return hashlib.sha256("\0".join(kept).encode()).hexdigest()[:32]


CLOSING: Final = frozenset({(",", ")"), (",", "]"), (",", "}")})


def written(entries: dict[str, Entry]) -> str:
    """One line each, so that two branches that add some merge."""
    lines = [f"  {json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
    import django  # noqa: PLC0415

    django.setup()
    MANIFEST.write_text(written(in_tree() | on_record()), encoding="utf-8")


if __name__ == "__main__":
    main()
