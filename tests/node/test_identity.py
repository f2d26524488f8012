"""Keys, certificates and contact cards: what is accepted, and what is refused with a remedy."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from identic.node.identity import (
    IDENTITY_OID,
    KEY_FILE,
    TLS_KEY_FILE,
    Card,
    Identity,
    party_of_certificate,
)
from identic.node.peers import Peers
from identic.protocol.errors import Code, LocalError, ProtocolError

ExtensionBytes = bytes


def forged(extension: ExtensionBytes | None, *, issues: bool = False, curve: bool = True) -> bytes:
    """Make a self-signed certificate with any extension."""
    key = ec.generate_private_key(ec.SECP256R1() if curve else ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forged")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=issues, path_length=None), critical=True)
    )
    if extension is not None:
        builder = builder.add_extension(
            x509.UnrecognizedExtension(IDENTITY_OID, extension), critical=False
        )
    certificate = builder.sign(key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM)


def extension_of(card: Card) -> bytes:
    """Return the content of the identity extension of a sound card."""
    certificate = x509.load_pem_x509_certificate(card.certificate)
    value = certificate.extensions.get_extension_for_oid(IDENTITY_OID).value
    assert isinstance(value, x509.UnrecognizedExtension)
    return value.value


def test_identity_survives_a_restart(tmp_path: Path) -> None:
    made = Identity.create(tmp_path, "ada")
    again = Identity.load(tmp_path, "ada")
    assert again.card == made.card
    assert again.signing_key.party == made.signing_key.party == made.party
    assert Card.load(tmp_path / "ada.card") == made.card
    seed = (tmp_path / KEY_FILE).read_text().split("\n")[1]
    assert seed not in repr(made) + repr(made.signing_key)


def test_net_1__secret_files_are_for_their_owner_only(tmp_path: Path) -> None:
    Identity.create(tmp_path, "ada")
    for name in (KEY_FILE, TLS_KEY_FILE):
        path = tmp_path / name
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        with pytest.raises(LocalError) as refusal:
            Identity.load(tmp_path, "ada")
        assert f"chmod 600 {path}" in refusal.value.remedy
        path.chmod(0o600)


def test_an_identity_is_never_overwritten(tmp_path: Path) -> None:
    before = Identity.create(tmp_path, "ada")
    with pytest.raises(LocalError):
        Identity.create(tmp_path, "ada")
    assert Identity.load(tmp_path, "ada").party == before.party


@pytest.mark.parametrize("text", [b"", b"x", b"\xff\xfe", b"a\nb\n", b"a\n" + b"0" * 63 + b"\n"])
def test_a_damaged_key_file_is_named(tmp_path: Path, text: bytes) -> None:
    Identity.create(tmp_path, "ada")
    (tmp_path / KEY_FILE).write_bytes(text)
    with pytest.raises(LocalError) as refusal:
        Identity.load(tmp_path, "ada")
    assert str(tmp_path / KEY_FILE) in refusal.value.problem


def test_a_missing_identity_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as refusal:
        Identity.load(tmp_path, "ada")
    assert "identic node init" in refusal.value.remedy


def test_the_certificate_of_another_identity_is_refused(tmp_path: Path) -> None:
    Identity.create(tmp_path / "a", "ada")
    other = Identity.create(tmp_path / "b", "bob")
    (tmp_path / "a" / "tls.crt").write_bytes(other.card.certificate)
    with pytest.raises(LocalError) as refusal:
        Identity.load(tmp_path / "a", "ada")
    assert other.party.short in refusal.value.problem


def test_net_1__a_copied_extension_does_not_fit_another_key(identities: list[Identity]) -> None:
    stolen = extension_of(identities[1].card)
    with pytest.raises(ProtocolError) as refusal:
        party_of_certificate(forged(stolen))
    assert (refusal.value.rule, refusal.value.code) == ("NET-1", Code.BAD_SIGNATURE)


@pytest.mark.parametrize(
    ("extension", "issues", "curve"),
    [
        (None, False, True),
        (b"", False, True),
        (b"\x04\x60" + bytes(95), False, True),
        (b"\x04\x61" + bytes(97), False, True),
        (b"\x04\x60" + bytes(96), True, True),
        (b"\x04\x60" + bytes(96), False, False),
    ],
)
def test_net_1__unsound_certificates_are_refused(
    extension: bytes | None, issues: bool, curve: bool
) -> None:
    with pytest.raises(ProtocolError):
        party_of_certificate(forged(extension, issues=issues, curve=curve))


@settings(deadline=None)
@given(at=st.integers(0, 2000), bit=st.integers(0, 7))
def test_net_2__a_card_with_a_flipped_bit_is_refused_or_names_the_same_identity(
    identities: list[Identity], at: int, bit: int
) -> None:
    text = bytearray(identities[1].card.text.encode())
    text[at % len(text)] ^= 1 << bit
    try:
        card = Card.parse(text.decode(errors="replace"))
    except ProtocolError:
        return
    assert card.party == identities[1].party


@pytest.mark.parametrize("text", ["", "name = 1", "[[[", 'name = "a"\nidentity = "b"'])
def test_net_2__what_is_no_card_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError) as refusal:
        Card.parse(text)
    assert refusal.value.rule == "NET-2"


def test_net_2__a_card_with_the_identity_of_another_is_refused(identities: list[Identity]) -> None:
    card = identities[1].card
    with pytest.raises(ProtocolError) as refusal:
        Card.parse(card.text.replace(card.party.hex(), identities[2].party.hex()))
    assert refusal.value.rule == "NET-2"


def test_net_3__the_folder_of_cards_is_followed(tmp_path: Path, identities: list[Identity]) -> None:
    hub, ada, bob = (identity.card for identity in identities)
    peers = Peers(tmp_path, [hub])
    assert peers.party(hub.certificate) == hub.party
    with pytest.raises(ProtocolError) as refusal:
        peers.party(ada.certificate)
    assert (refusal.value.rule, refusal.value.code) == ("NET-3", Code.FORBIDDEN)
    (tmp_path / "a.card").write_text(ada.text)
    (tmp_path / "broken.card").write_text("broken")
    assert peers.party(ada.certificate) == ada.party
    assert len(peers.problems) == 1
    assert "broken.card" in peers.problems[0]
    assert peers.roots.count(b"BEGIN CERTIFICATE") == 2
    before = peers.refresh()
    (tmp_path / "a.card").unlink()
    assert peers.refresh() > before
    with pytest.raises(ProtocolError):
        peers.party(ada.certificate)
    with pytest.raises(ProtocolError):
        peers.party(bob.certificate)
