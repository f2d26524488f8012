"""Cutting wide levels into blocks, tabulated for small sizes."""

import itertools

from identic.proofs import merkle
from identic.protocol.dispute.questions import Agreed, Known, Published, Under
from identic.protocol.dispute.spans import Span, whole
from identic.protocol.hashing import fold, leaf_hash


def test_dsp_8__every_leaf_is_reached_by_aligned_blocks() -> None:
    for leaves, width, besides in itertools.product(range(1, 70), (2, 4, 8), (0, 1)):
        top = whole(leaves, width, besides)
        assert top.items + besides <= width or top.block >= leaves
        for leaf in range(leaves):
            span, rounds = top, 1
            while span.block > 1:
                item = (leaf - span.first) // span.block
                assert span.range(item)[0] % span.block == 0
                span = span.inside(item, width)
                assert span.items <= width
                rounds += 1
            assert span.first <= leaf < span.last
            assert width ** (rounds - 1) == top.block


def test_dsp_8__one_message_holds_what_it_can() -> None:
    assert whole(2048, 2048) == Span(0, 2048, 1)
    assert whole(2049, 2048) == Span(0, 2049, 2048)
    assert whole(2047, 2048, besides=1) == Span(0, 2047, 1)
    assert whole(2048, 2048, besides=1) == Span(0, 2048, 2048)
    assert whole(1 << 34, 2048).block == 1 << 33
    assert whole((1 << 22) + 1, 2048).items == 2


def test_dsp_8__blocks_fold_to_the_root() -> None:
    hashes = [leaf_hash(bytes([i])) for i in range(50)]
    for leaves in range(1, 51):
        span = whole(leaves, 4)
        roots = [fold(hashes[slice(*span.range(i))]) for i in range(span.items)]
        assert fold(roots) == merkle.root(hashes[:leaves])


def test_dsp_7__what_is_agreed_is_found_where_it_was_published() -> None:
    hashes = tuple(leaf_hash(bytes([i])) for i in range(9))
    agreed = Agreed((Published(0, 4, 8, hashes[:2]), Published(8, 1, 10, hashes[2:4])))
    assert agreed.find(5) == Under(hashes[1], 5, 4, 4)
    assert agreed.find(9) == Known(hashes[3])
