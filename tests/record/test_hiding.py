"""What looks like a secret does not leave with the record's export, and the rest still verifies."""

from hitlchat.record.exporting import Hiding
from hitlchat.record.proofs import node, salts
from hitlchat.secrets.detection import Cover

SALT = salts("00" * 32)


def test_the_hash_of_a_value_with_a_secret_stands_for_it_with_how_the_rest_of_it_reads() -> None:
    data = {"arguments": {"password": "hunter22!", "to": "bob", "x": [{"hunter22!": 1}]}, "prompt": "Use hunter22!"}
    hiding = Hiding(Cover(data), SALT)
    given = hiding.of(data)
    assert "hunter22" not in str(given)
    assert given["arguments"]["password"] == "•••"
    assert given["prompt"] == "Use •••"
    assert given["arguments"]["to"] == "bob"
    assert sorted(hiding.hidden) == ["/arguments/password", "/arguments/x/0", "/prompt"]
    assert node(given, SALT, hiding.hidden) == node(data, SALT)
    assert node(given, SALT) != node(data, SALT)
