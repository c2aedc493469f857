"""The one table of addresses: what every connection that leaves this machine is held to."""

from ipaddress import ip_address

from hitlchat.outbound.addresses import is_local, is_local_name, is_metadata_name, is_public, literal, reach

# Special, reserved, wrapped in another form, or where a cloud keeps its keys: nobody on the internet is behind them.
NOBODYS = [
    "0.0.0.0", "0.1.2.3", "100.64.0.1", "100.100.100.200", "169.254.169.254", "169.254.0.23", "192.0.0.1",
    "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::808:808", "100::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::",
    "2002:a00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1",
    "ff02::1",
]  # fmt: skip
LOCAL = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "::1",
    "fc00::1", "fd00::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "93.184.216.34", "192.0.1.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"]
# What the name of a host says, before anybody looks it up.
REACH = {
    "localhost": "local", "app.localhost": "local", "127.0.0.1": "local", "127.9.9.9": "local", "::1": "local",
    "10.0.0.1": "private", "192.168.1.1": "private", "169.254.169.254": "private", "fd00::1": "private",
    "intranet": "private", "printer.local": "private", "db.internal": "private", "0.0.0.0": "private",
    "example.com": "public", "8.8.8.8": "public", "localhost.example.com": "public", "2130706433": "public",
    "0x7f000001": "public", "local": "private", "": "public",
}  # fmt: skip


def test_a_special_address_is_neither_public_nor_local() -> None:
    for address in map(ip_address, NOBODYS):
        assert (is_public(address), is_local(address)) == (False, False), address


def test_an_address_of_this_machine_or_a_private_network_is_local_only() -> None:
    for address in map(ip_address, LOCAL):
        assert (is_public(address), is_local(address)) == (False, True), address


def test_an_address_of_the_internet_is_public_only() -> None:
    for address in map(ip_address, PUBLIC):
        assert (is_public(address), is_local(address)) == (True, False), address


def test_another_spelling_of_an_address_is_no_address() -> None:
    for spelling in ("2130706433", "0177.0.0.1", "0x7f000001", "127.1", "0", "fe80::1%eth0", "[::1]"):
        assert literal(spelling) is None, spelling


def test_names_under_which_clouds_keep_their_keys_are_known() -> None:
    google = ("metadata", "metadata.google.internal", "metadata.goog")
    for name in (*google, "instance-data.ec2.internal", "rancher-metadata"):
        assert is_metadata_name(name), name


def test_a_name_that_no_public_dns_answers_for_is_local() -> None:
    for name, local in {"localhost": True, "x.localhost": True, "intranet": True, "a.b": False}.items():
        assert is_local_name(name) is local, name


def test_a_host_is_on_this_machine_on_a_private_network_or_public_as_its_name_says() -> None:
    for host, expected in REACH.items():
        assert reach(host) == expected, host
