"""``identic key``: who this machine is."""

from __future__ import annotations

from identic.node.cli.client import ConfigOption, IdentityOption, configured, identity_in
from identic.node.cli.faults import Usage
from identic.node.cli.output import Answer, columns
from identic.node.identity import Identity


def show(identity: IdentityOption = None, config: ConfigOption = None) -> Answer:
    """Show this identity, and the card to hand out.

    The secret key itself is never shown.
    """
    if identity is not None:
        folder, own = identity, identity_in(identity)
    else:
        settings = configured(config)
        if settings is None:
            raise Usage("whose keys?", remedy="give --identity DIR or --config FILE")
        folder, own = settings.data_path, Identity.load(settings.data_path, settings.name)
    card = folder / f"{own.card.name}.card"
    rows = [
        ["name", own.card.name],
        ["identity", own.party.hex()],
        ["card", f"{card}  (public: hand it to whoever is to accept this node)"],
        [
            "key",
            f"{folder / 'identity.key'}  (secret: whoever has it is you; keep a copy offline)",
        ],
    ]
    return Answer({"name": own.card.name, "identity": own.party, "card": card}, columns(rows))
