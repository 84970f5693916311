"""The journal's key: Ed25519, made when it is first needed, kept beside the journal."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.core.errors import SigningKeyUnusable
from orchestrator.journal.durable_files import sync_directory, write_synced

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE = "journal.key"


class KeyFile:
    """See `ports.Signer`. The key is a PEM file (PKCS 8, not encrypted) of mode 0600 in the state directory.

    `cryptography` is imported at first need: 40 ms that a start need not wait for.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / KEY_FILE
        self._lock = threading.Lock()
        self._key: Ed25519PrivateKey | None = None

    def sign(self, message: bytes) -> tuple[str, str]:
        with self._lock:
            if self._key is None:
                self._key = self._load() or self._make()
        return self._key.public_key().public_bytes_raw().hex(), self._key.sign(message).hex()

    def seal(self, message: bytes) -> bytes:
        """A keyed hash that only who has the key can make (HMAC-SHA-256). Raises SigningKeyUnusable."""
        with self._lock:
            if self._secret() is None:
                self._make()
            return hmac.digest(self._secret() or b"", message, "sha256")

    def sealed(self, message: bytes, seal: bytes) -> bool:
        """Whether `seal` made this of these bytes; False also where there is no key. Raises SigningKeyUnusable."""
        secret = self._secret()
        return secret is not None and hmac.compare_digest(hmac.digest(secret, message, "sha256"), seal)

    def _secret(self) -> bytes | None:
        """Of the file's bytes, so that a start need not import `cryptography`."""
        try:
            return hashlib.sha256(b"orchestrator snapshot seal 1\n" + self._path.read_bytes()).digest()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(str(error)) from error

    def _load(self) -> Ed25519PrivateKey | None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._path.read_bytes(), password=None)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise self._unusable(str(error)) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise self._unusable("it is of another kind than Ed25519")
        return key

    def _make(self) -> Ed25519PrivateKey:
        """A new key, whole and synced under its name or not there at all."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = Ed25519PrivateKey.generate()
        temp = self._path.with_suffix(f".key.{os.getpid()}-{threading.get_ident()}")
        try:
            write_synced(temp, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            try:
                os.link(temp, self._path)  # unlike a rename never over a key that another has made meanwhile
            except FileExistsError:
                return self._load() or key
            finally:
                temp.unlink()
            sync_directory(self._path.parent)
        except OSError as error:
            raise self._unusable(str(error)) from error
        return key

    def _unusable(self, why: str) -> SigningKeyUnusable:
        return SigningKeyUnusable(
            f"the journal's key {self._path} can't be used: {why}",
            hint="Restore it from a backup; or move it away, and a new one is made: verify then names the change.",
        )


def holds(key: str, message: bytes, signature: str) -> bool:
    """Whether this public key made this signature of these bytes; all hex but the message. Cost: 0.1 ms."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
