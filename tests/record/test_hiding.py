"""What looks like a secret does not leave with the record's export, and the rest still verifies."""

from hitlchat.record.commitment import HIDDEN, READS, node, salts
from hitlchat.record.hiding import keep_back
from hitlchat.secrecy import Cover

SALT = salts("00" * 32)


def test_the_hash_of_a_value_with_a_secret_stands_for_it_with_how_the_rest_of_it_reads() -> None:
    data = {"arguments": {"password": "hunter22!", "to": "bob", "x": [{"hunter22!": 1}]}, "prompt": "Use hunter22!"}
    given = keep_back(Cover(data), data, SALT)
    assert "hunter22" not in str(given)
    assert given["arguments"]["password"][READS] == "•••"
    assert given["prompt"][READS] == "Use •••"
    assert given["arguments"]["to"] == "bob"
    assert given["arguments"]["x"][0].keys() == {HIDDEN, READS}
    assert node(given, SALT) == node(data, SALT)
