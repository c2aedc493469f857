"""Becomes another program as a fork of tests/fork_server.py, which saves the imports: for those that hitlchat starts.

Run as `python -IS tests/launcher.py NAME SCRIPT ARGUMENTS…`, NAME being that of the fork server's socket. The fork has
the streams, the folder and the environment of this process. It is killed when this process ends, and this one ends as
it did.
"""

import json
import os
import socket
import sys


def main() -> None:
    name, *arguments = sys.argv[1:]
    umask = os.umask(0o077)
    folder = os.getcwd()  # noqa: PTH109  # pathlib takes as long to import as all the rest of this
    request = {"arguments": arguments, "environment": {**os.environ}, "folder": folder, "umask": umask}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(f"\0{name}")
        socket.send_fds(server, [json.dumps(request | {"settings": False}).encode()], [0, 1, 2])
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        server.recv(1024)
        code = int(server.recv(1024).split()[0])
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
