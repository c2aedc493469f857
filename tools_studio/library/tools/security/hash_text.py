import hashlib
from typing import Literal


def run(
    text: str, algorithm: Literal["sha256", "sha512", "sha1", "md5", "sha3_256", "blake2b"] = "sha256"
) -> dict[str, str]:
    """Compute the hash of a text's UTF-8 bytes.

    Args:
        text: the text
        algorithm: which hash; md5 and sha1 are only good for comparing with what others published
    """
    digest = hashlib.new(algorithm, text.encode()).hexdigest()
    return {"algorithm": algorithm, "hash": digest}
