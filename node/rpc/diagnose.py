"""Why a connection cannot be made, in words.

The gRPC library says "unavailable" whether nobody listens, the other end is another node than
the one that was pinned, or it does not know this node. A second handshake with the standard
library tells these apart.
"""

from __future__ import annotations

import os
import socket
import ssl
import tempfile

from identic.node.identity import TLS_NAME, Card, Identity
from identic.protocol.errors import LocalError

TIMEOUT_S = 5.0
_FIRST_FRAME_BYTES = 9


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port".

    Raises:
        LocalError: it is not of that form.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise LocalError(f"{address!r} is no address", remedy="write it as host:port")
    return host.strip("[]"), int(port)


def diagnose(address: str, identity: Identity, peer: Card) -> LocalError:
    """Return what is wrong with reaching ``peer`` at ``address``; blocks for seconds at most."""
    host, port = split_address(address)
    try:
        return _handshake(host, port, address, identity, peer)
    except ssl.SSLCertVerificationError:
        return LocalError(
            f"the node at {address} is not {peer.name} ({peer.party.short})",
            remedy=f"check the address; if {peer.name} has new keys, ask for its new .card file",
        )
    except ssl.SSLError as error:
        return LocalError(
            f"{address} does not speak TLS as a node does ({error.reason or error})",
            remedy="check that the address and port are those of the node",
        )
    except socket.gaierror:
        return LocalError(f"no machine is called {host}", remedy="check the address")
    except TimeoutError:
        return LocalError(
            f"{address} does not answer within {TIMEOUT_S:.0f} s",
            remedy="check that the node runs and that no firewall is between",
        )
    except OSError as error:
        return LocalError(
            f"cannot connect to {address}: {error.strerror or error}",
            remedy=f"check that {peer.name} runs and listens there",
        )


def _handshake(host: str, port: int, address: str, identity: Identity, peer: Card) -> LocalError:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=peer.certificate.decode())
    context.set_alpn_protocols(["h2"])
    # The standard library takes keys from files only; this one is removed at once.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(identity.tls_key + identity.card.certificate)
        file.flush()
        context.load_cert_chain(file.name)
    with (
        socket.create_connection((host, port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=TLS_NAME) as secure,
    ):
        try:
            answered = secure.recv(_FIRST_FRAME_BYTES)
        except (ssl.SSLError, ConnectionError):
            answered = b""
    # In TLS 1.3 a client learns only after its own part of the handshake that it is refused: a
    # server that accepts it speaks first, one that does not know it closes.
    if not answered:
        return LocalError(
            f"{peer.name} at {address} does not know this identity ({identity.party.short})",
            remedy=f"send {identity.card.name}.card from this node's data_dir to the operator of "
            f"{peer.name}, who puts it into the peers folder there; no restart is needed",
        )
    return LocalError(
        f"the connection to {peer.name} at {address} broke", remedy="it answers again; try again"
    )
