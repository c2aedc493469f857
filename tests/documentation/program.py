"""`.venv/bin/python` of a scratch installation: `manage.py` as a fork of tests/fork_server.py, all else as it is.

Run as `python -IS program.py NAME PYTHON ARGUMENTS…`, NAME being that of the fork server's socket. The fork has the
streams, the folder and the environment of this process, is told to end when this one is, and this one ends as it did.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    name, python, *arguments = sys.argv[1:]
    if arguments[:1] != ["manage.py"]:
        os.execv(python, [python, *arguments])
    umask = os.umask(0o077)
    request = {"arguments": arguments, "environment": {**os.environ}, "folder": os.getcwd(), "umask": umask}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(f"\0{name}")
        socket.send_fds(server, [json.dumps(request | {"settings": True}).encode()], [0, 1, 2])
        pid = int(server.recv(1024))
        signal.signal(signal.SIGTERM, lambda number, _frame: os.kill(pid, number))
        code = int(server.recv(1024).split()[0])
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
