"""Do the page's own scripts parse? Asks the node that Playwright brings along, so that none need be installed."""

import subprocess
import sys
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

ROOT = Path(__file__).parent.parent
VENDORED = ROOT / "static" / "vendor"


def error_in(script: Path) -> str:
    """What node says about `script` read as a module; empty if it parses."""
    node = compute_driver_executable()[0]
    command = [node, "--check", "--input-type=module", "-"]
    answer = subprocess.run(command, input=script.read_bytes(), capture_output=True, check=False)
    return answer.stderr.decode() if answer.returncode else ""


def main() -> int:
    scripts = [path for path in sorted((ROOT / "static").rglob("*.js")) if VENDORED not in path.parents]
    errors = {path.relative_to(ROOT): error_in(path) for path in scripts}
    broken = {path: error for path, error in errors.items() if error}
    for path, error in broken.items():
        sys.stderr.write(f"{path} does not parse:\n{error}\n")
    sys.stdout.write(f"{len(scripts)} scripts, {len(broken)} of them broken\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
