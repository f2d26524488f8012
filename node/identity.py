"""Who this node is: an Ed25519 key, and a TLS certificate that the key vouches for.

The certificate holds a P-256 key, since TLS libraries differ on Ed25519, and one extension with
the Ed25519 identity and its signature over the TLS key. It is self-signed, issues nothing and is
kept for years: others pin it through a *contact card*, a small text file with a name, the
identity and the certificate.

* The secret key is a file that only its owner may read; a file open to others is refused.
* Whoever holds a copy of ``identity.key`` is the node: keep one copy offline.

Spec: docs/spec/network.md (NET-1..NET-3).
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

from identic.proofs.signatures import SigningKey, sign, verify
from identic.protocol.encoding import decode, encode
from identic.protocol.errors import Code, LocalError, ProtocolError
from identic.protocol.hashing import Domain
from identic.protocol.ids import PartyId, Signature

IDENTITY_OID: Final = ObjectIdentifier("2.25.206434857102344169384652073513318045971")
"""Our extension; the arc 2.25 is open to anyone who drew a UUID."""

TLS_NAME: Final = "node.identic"
"""DNS name in every certificate; nodes are told apart by identity, not by name."""

VALID_YEARS: Final = 20
KEY_FILE: Final = "identity.key"
TLS_KEY_FILE: Final = "tls.key"
CERTIFICATE_FILE: Final = "tls.crt"
MAX_CARD_BYTES: Final = 16_384

_KEY_HEADER: Final = "identic identity key, version 1; keep secret, keep a copy offline"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class TlsKey:
    """What the identity signs: the TLS key, as DER SubjectPublicKeyInfo."""

    spki: bytes


@dataclass(frozen=True)
class IdentityExtension:
    """Content of the certificate's extension.

    Attributes:
        party: the Ed25519 identity.
        signature: of ``party`` over the ``TlsKey`` under the TLS domain.
    """

    party: PartyId
    signature: Signature


@dataclass(frozen=True)
class Card:
    """A contact card: what one hands to others so that they accept this node.

    Attributes:
        name: for people; two cards may share it.
        party: the Ed25519 identity.
        certificate: the TLS certificate, PEM.
    """

    name: str
    party: PartyId
    certificate: bytes

    @property
    def text(self) -> str:
        """The card as the text of a file."""
        return (
            "# identic contact card. Public: hand it to whoever is to accept this node.\n"
            f'name = "{self.name}"\n'
            f'identity = "{self.party.hex()}"\n'
            f'certificate = """\n{self.certificate.decode()}"""\n'
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a card and check that its certificate carries its identity.

        Raises:
            ProtocolError: NET-2, the text is no card, or NET-1, its certificate is not sound.
        """
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _bad_card(str(error), "a contact card in TOML") from error
        # NET-2: a card has a name, an identity and a certificate, all text, and nothing else.
        if set(fields) != {"name", "identity", "certificate"} or not all(
            isinstance(value, str) for value in fields.values()
        ):
            raise _bad_card(f"fields {sorted(fields)}", "name, identity and certificate, as text")
        if not _NAME.fullmatch(fields["name"]):
            raise _bad_card(f"name {fields['name'][:80]!r}", "letters, digits, '_', '.' or '-'")
        certificate = fields["certificate"].encode()
        party = party_of_certificate(certificate)
        # NET-2: the identity of the card is the identity in its certificate.
        if party.hex() != fields["identity"]:
            raise _bad_card(
                f"identity {fields['identity'][:80]}", f"{party}, as in the certificate"
            )
        return cls(fields["name"], party, certificate)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a card from a file.

        Raises:
            LocalError: the file cannot be read, or holds no sound card.
        """
        try:
            with path.open("rb") as file:
                data = file.read(MAX_CARD_BYTES + 1)
        except OSError as error:
            raise LocalError(
                f"cannot read the contact card {path}: {error.strerror}",
                remedy="ask the other node's operator for its .card file and name its path here",
            ) from error
        try:
            if len(data) > MAX_CARD_BYTES:
                raise _bad_card("a longer file", f"at most {MAX_CARD_BYTES} bytes")
            return cls.parse(data.decode("utf-8", errors="replace"))
        except ProtocolError as error:
            raise LocalError(
                f"{path} is not a sound contact card: {error}",
                remedy="ask for the .card file again",
            ) from error


def _bad_card(got: str, want: str) -> ProtocolError:
    return ProtocolError("NET-2", Code.MALFORMED, got=got, want=want)


# ---- certificates ---------------------------------------------------------------------------


def _bad_certificate(got: str, want: str) -> ProtocolError:
    return ProtocolError("NET-1", Code.MALFORMED, got=got, want=want)


def _spki(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


_UNSOUND: Final = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What the library raises about a certificate that is not as it should be."""


@lru_cache(maxsize=4096)
def party_of_certificate(pem: bytes) -> PartyId:
    """Return the identity that vouches for the TLS key of a certificate.

    That the other end holds the TLS key is for the handshake to show.

    Raises:
        ProtocolError: NET-1, the certificate is not one of ours.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        extension = certificate.extensions.get_extension_for_oid(IDENTITY_OID).value
        issues = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        certificate.verify_directly_issued_by(certificate)
        key = certificate.public_key()
    except _UNSOUND as error:
        raise _bad_certificate(
            f"{type(error).__name__}: {error}"[:200], "a self-signed certificate with an identity"
        ) from error
    # NET-1: the TLS key is on P-256 and the certificate may issue no others.
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _bad_certificate("another kind of key", "a key on P-256")
    if issues:
        raise _bad_certificate("a certificate that may issue others", "one that may not")
    if not isinstance(extension, x509.UnrecognizedExtension):
        raise _bad_certificate("an extension of another kind", "the identity extension")
    return _party_of_extension(extension.value, _spki(key))


def _party_of_extension(value: bytes, spki: bytes) -> PartyId:
    """Check the content of the identity extension against the TLS key."""
    # NET-1: the extension is a DER octet string with the canonical encoding in it.
    if value[:1] != b"\x04" or value[1:2] != bytes([len(value) - 2 & 0xFF]) or len(value) > 129:
        raise _bad_certificate(value[:16].hex(), "a DER octet string in its short form")
    identity = decode(IdentityExtension, value[2:])
    try:
        verify(identity.party, Domain.TLS, TlsKey(spki), identity.signature)
    except ProtocolError as error:
        # NET-1: the identity's signature covers the TLS key.
        raise ProtocolError(
            "NET-1",
            Code.BAD_SIGNATURE,
            got=f"a signature that {identity.party.short} did not make",
            want="a signature of the identity over the TLS key",
        ) from error
    return identity.party


def make_certificate(signing_key: SigningKey) -> tuple[bytes, bytes]:
    """Make a TLS key and a certificate that the identity vouches for; both PEM."""
    party = signing_key.party
    tls_key = ec.generate_private_key(ec.SECP256R1())
    signature = sign(signing_key, Domain.TLS, TlsKey(_spki(tls_key.public_key())))
    content = encode(IdentityExtension(party, signature))
    # The subject is the identity, so that a server can find it among many roots by name.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party.hex())])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(tls_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=365 * VALID_YEARS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.UnrecognizedExtension(IDENTITY_OID, b"\x04" + bytes([len(content)]) + content),
            critical=False,
        )
        .sign(tls_key, hashes.SHA256())
    )
    return (
        tls_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


# ---- the node's own identity ----------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Identity:
    """This node's keys.

    Attributes:
        signing_key: the Ed25519 secret key; signs every message of the node.
        tls_key: the TLS secret key, PEM.
        card: what others need to know.
    """

    signing_key: SigningKey
    tls_key: bytes
    card: Card

    def __repr__(self) -> str:
        return f"Identity({self.card.name}, {self.party.short})"

    @property
    def party(self) -> PartyId:
        """The public identity."""
        return self.card.party

    @classmethod
    def create(cls, folder: Path, name: str) -> Self:
        """Draw a new identity and store it under ``folder``, with its card ``<name>.card``.

        Raises:
            LocalError: an identity is there already, or the folder cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise LocalError(
                f"a node cannot be called {name!r}", remedy="use letters, digits, '_', '.' or '-'"
            )
        seed = secrets.token_bytes(32)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        _write_new(folder / KEY_FILE, f"{_KEY_HEADER}\n{seed.hex()}\n".encode(), 0o600)
        return cls.load(folder, name)

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Read the identity under ``folder``; make its certificate and card where missing.

        Raises:
            LocalError: there is no identity, its file is open to others, or it is damaged.
        """
        signing_key = _read_key(folder / KEY_FILE)
        key_path, certificate_path = folder / TLS_KEY_FILE, folder / CERTIFICATE_FILE
        if not key_path.exists() and not certificate_path.exists():
            tls_key, certificate = make_certificate(signing_key)
            _write_new(key_path, tls_key, 0o600)
            _write_new(certificate_path, certificate, 0o644)
        tls_key = _read_secret(key_path)
        try:
            certificate = certificate_path.read_bytes()
            party = party_of_certificate(certificate)
        except (OSError, ProtocolError) as error:
            raise LocalError(
                f"cannot use the TLS certificate {certificate_path}: {error}",
                remedy=f"remove it and {key_path}, start again, and hand out the new card",
            ) from error
        if party != signing_key.party:
            raise LocalError(
                f"{certificate_path} belongs to another identity ({party.short})",
                remedy=f"remove it and {key_path}, start again, and hand out the new card",
            )
        card = Card(name, party, certificate)
        if not (folder / f"{name}.card").exists():
            _write_new(folder / f"{name}.card", card.text.encode(), 0o644)
        return cls(signing_key, tls_key, card)


def _cannot_write(path: Path, error: OSError) -> LocalError:
    return LocalError(
        f"cannot write {path}: {error.strerror}",
        remedy="choose a data_dir that this user may write to",
    )


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that must not exist yet, with its permissions from the first moment."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise LocalError(
            f"{path} exists already", remedy="keep it, or choose another data_dir for a new node"
        ) from error
    except OSError as error:
        raise _cannot_write(path, error) from error


def _read_secret(path: Path) -> bytes:
    """Read a file that only its owner may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            data = file.read(MAX_CARD_BYTES)
    except OSError as error:
        raise LocalError(
            f"cannot read {path}: {error.strerror}",
            remedy="run `identic node init`, or name the data_dir that holds this node's keys",
        ) from error
    # NET-1: a secret key is a file that only its owner may read.
    if mode & 0o077:
        raise LocalError(
            f"{path} can be read by other users (mode {mode:04o})", remedy=f"run: chmod 600 {path}"
        )
    return data


def _read_key(path: Path) -> SigningKey:
    """Read the Ed25519 secret key."""
    lines = _read_secret(path).decode("ascii", errors="replace").split("\n")
    if len(lines) != 3 or not re.fullmatch(r"[0-9a-f]{64}", lines[1]) or lines[2]:
        raise LocalError(
            f"{path} is damaged: it is not a key file of this software",
            remedy="put your offline copy in its place",
        )
    return SigningKey(bytes.fromhex(lines[1]))
