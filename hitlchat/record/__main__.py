"""`python -m hitlchat.record FILE [--key FINGERPRINT]`: check an exported file, with nothing else at hand."""

import argparse
import sys
from pathlib import Path

from hitlchat.record.checking import check, checked_words


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hitlchat.record", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", default="", help="the fingerprint noted when the record was started")
    given = parser.parse_args()
    try:
        with given.file.open("rb") as lines:
            found = check(lines, given.key.replace(" ", ""))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("\n".join(checked_words(found, given.key)) + "\n")
    return 0 if found.is_genuine else 1


if __name__ == "__main__":
    sys.exit(main())
