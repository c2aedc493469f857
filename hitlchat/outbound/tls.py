"""TLS of connections that leave this machine."""

import functools
import ssl

import httpx2


@functools.cache
def tls() -> ssl.SSLContext:
    """Return the trusted authorities: the usual ones, or the operator's own in SSL_CERT_FILE.

    All connections share them, since reading them costs 20 ms of processor time.
    """
    return httpx2.create_ssl_context()
