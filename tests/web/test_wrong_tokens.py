import time

import pytest

from surelabel.web.wrong_tokens import WrongTokenLimit, client_network


def test_an_address_waits_after_its_last_wrong_token():
    limit = WrongTokenLimit(3, 60.0)
    waits = []
    for _ in range(3):
        waits.append(limit.seconds_to_wait("192.0.2.7"))
        limit.add("192.0.2.7")
    assert waits == [0, 0, 0]
    assert limit.seconds_to_wait("192.0.2.7") == 60


def test_other_addresses_do_not_wait():
    limit = WrongTokenLimit(1, 60.0)
    limit.add("192.0.2.7")
    assert limit.seconds_to_wait("192.0.2.8") == 0
    assert limit.seconds_to_wait("192.0.2.7") == 60


def test_an_address_that_waited_can_send_tokens_again():
    limit = WrongTokenLimit(2, 0.05)
    limit.add("192.0.2.7")
    limit.add("192.0.2.7")
    assert limit.seconds_to_wait("192.0.2.7") == 1
    time.sleep(0.06)
    assert limit.seconds_to_wait("192.0.2.7") == 0


def test_the_number_of_addresses_is_bounded_and_the_oldest_is_forgotten():
    limit = WrongTokenLimit(1, 60.0, max_addresses=3)
    addresses = [f"192.0.2.{number}" for number in range(10)]
    for address in addresses:
        limit.add(address)
        limit.add(addresses[0])
    assert len(limit) == 3
    waits = [limit.seconds_to_wait(address) > 0 for address in addresses]
    assert waits == [True, *[False] * 7, True, True]


@pytest.mark.parametrize(
    ("first", "second", "are_one_client"),
    [
        ("2001:db8:0:1::7", "2001:db8:0:1:ffff::8", True),
        ("2001:db8:0:1::7", "2001:db8:0:2::7", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
        ("192.0.2.7", "192.0.2.8", False),
        ("no address", "another text", False),
    ],
)
def test_an_ipv6_network_is_one_client(first, second, are_one_client):
    assert (client_network(first) == client_network(second)) is are_one_client
