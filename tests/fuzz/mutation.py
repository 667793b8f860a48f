"""Changes to bytes, texts and numbers: what damage, carelessness and malice leave behind.

Each mutator takes a random generator, one member of a corpus and the whole corpus, and gives other bytes. The same
generator gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

Mutator = Callable[[Random, bytes, Sequence[bytes]], bytes]

LARGEST = 200_000  # bytes of an input

#: Numbers at which arithmetic, counting and printing break.
NUMBERS = (
    *("0", "-0", "-0.0", "1", "-1", "2", "0.5", "3.0e0", "1e-3", "7", "90", "180", "1.5708", "6.283185307179586"),
    *("1e308", "-1e308", "1.8e308", "1e400", "1e-308", "1e-320", "5e-324", "1e-400", "1e16", "1e150", "1e-150", "1e9"),
    *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e", "1e+", "0x10", "1_0", "٣", "１", "1.2.3", "--1", "+-1"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("18446744073709551616", "1" + "0" * 30, "9" * 400, "0." + "0" * 350 + "1", "1" * 5000, "1,5", "1/0", "½"),
)
#: Texts that end something, hide something or are no text.
ODD = (
    *("", " ", "\n", "\r", "\t", "\0", "\x1b[31m", "\x1b]0;x\x07", "\x7f", "\x9b2J", "\ufeff", "\u202e", "\u2028"),
    *("\ud7ff", "é", "ß", "İ", "ǆ", "😀", "e\u0301", "\u200b", "a" * 300, "𝒙", "ﬁ", "K"),
    *("'", '"', "`", "\\", "/", "..", "../x", "/", "~", "%s", "%n", "{}", "{0}", "$(x)", "${x}"),
    *("&", "&amp;", "&#0;", "<", ">", "<!--", "-->", "]]>", "<![CDATA[", "<?x?>", "(", ")", "[", "]", "{", "}"),
    *(";", ",", ".", ":", "=", "==", "*", "**", "^"),
    *("#", "//", "/*", "*/", "!", "?", "@", "|", "-", "+", "__class__", "None", "true", "null", "NaN", "self", "time"),
)
_TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\s+|.", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def any_of(*mutators: tuple[int, Mutator]) -> Mutator:
    """One of several mutators, by their weights."""
    weights, functions = [weight for weight, _ in mutators], [function for _, function in mutators]

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        return rng.choices(functions, weights)[0](rng, data, corpus)

    return mutate


def damaged(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Bytes flipped, cut out, put in, doubled or cut short."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        n = len(out)
        at = rng.randrange(n + 1)
        match rng.randrange(9):
            case 0 | 1 if n:
                out[at % n] ^= 1 << rng.randrange(8)
            case 2 if n:
                out[at % n] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 3:
                del out[at : at + rng.choice((1, 2, 4, 16, 200))]
            case 4:
                out[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8)))
            case 5:
                end = min(n, at + rng.choice((1, 4, 30, 300)))
                out[at:at] = out[at:end] * rng.choice((1, 2, 20))
            case 6:
                size = rng.choice((1, 2, 4, 8))
                value = rng.choice((0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**63 - 1, rng.getrandbits(62)))
                word = (value % 2 ** (8 * size)).to_bytes(size, rng.choice(("little", "big")))
                out[at : at + size] = word
            case 7 if rng.random() < 0.3:
                del out[at:]
            case _:
                out = bytearray(spliced(rng, bytes(out), corpus)) if rng.random() < 0.2 else out
    return bytes(out[:LARGEST])


def spliced(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """A piece of another member in the place of a piece of this one."""
    other = rng.choice(corpus)
    a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    c, d = sorted((rng.randrange(len(other) + 1), rng.randrange(len(other) + 1)))
    if b - a > 400:
        b = a + rng.randrange(400)
    return (data[:a] + other[c : min(d, c + 2000)] + data[b:])[:LARGEST]


def number(rng: Random) -> str:
    """A number, or what looks like one."""
    return rng.choice(NUMBERS) if rng.random() < 0.8 else repr(rng.uniform(-10, 10) * 10.0 ** rng.randrange(-20, 20))


def reworded(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Words, numbers and signs of a text exchanged, left out, doubled, nested or made odd."""
    parts = list(_tokens(data))
    words = _words(tuple(corpus))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        n = len(parts)
        at = rng.randrange(n + 1)
        match rng.randrange(12):
            case 0 | 1:
                numbers = [k for k, part in enumerate(parts) if _NUMBER.fullmatch(part)]
                if numbers:
                    parts[rng.choice(numbers)] = number(rng)
            case 2 | 3:
                parts[at : at + 1] = [rng.choice(words)]
            case 4:
                parts[at:at] = [rng.choice((" ", "")), rng.choice(words), " "]
            case 5:
                del parts[at : at + rng.choice((1, 1, 2, 5, 20))]
            case 6:
                piece = parts[at : at + rng.choice((1, 3, 10, 30))]
                times = rng.choice((1, 1, 2, 5)) if rng.random() < 0.95 else rng.choice((50, 400))
                parts[at:at] = piece * times
            case 7 if n > 1:
                i, j = rng.randrange(n), rng.randrange(n)
                parts[i], parts[j] = parts[j], parts[i]
            case 8:
                parts[at:at] = [rng.choice(ODD)]
            case 9:
                depth = rng.choice((1, 2, 3, 10)) if rng.random() < 0.95 else rng.choice((60, 200, 3000))
                opening, nearest = rng.choice(("()", "[]", "{}", "-)", "(("))
                piece = parts[at : at + rng.choice((1, 3))]
                parts[at : at + len(piece)] = [opening * depth, *piece, nearest * depth]
            case 10 if n:
                k = at % n
                parts[k] = rng.choice((parts[k].upper(), parts[k].swapcase(), parts[k][::-1], parts[k] * 2))
            case _:
                parts[at:at] = [rng.choice(("*", "/", "+", "-", "^", "**", "<", ".", ",", "=", "(", ")", " ", "\n"))]
    return "".join(parts).encode("utf-8", "replace")[:LARGEST]


def repeated(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """One piece many times over: what is quadratic takes long."""
    a = rng.randrange(len(data) + 1)
    piece = data[a : a + rng.choice((1, 2, 5, 20, 80))] or b" "
    if rng.random() < 0.5:
        piece = rng.choice((b" ", b"\n", b"\t", b"(", b"-", b"0", b"a", b"<a>", b",", b"\\", b'"', b"\n ", b"1 ", b"_"))
    times = rng.choice((100, 1000, 4000, 20_000))
    return (data[:a] + piece * min(times, 40_000 // len(piece)) + data[a:])[:LARGEST]


@cache
def _tokens(data: bytes) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(data.decode("utf-8", "replace")))


@cache
def _words(corpus: tuple[bytes, ...]) -> list[str]:
    found = {part for data in corpus for part in _tokens(data) if len(part) < 60 and not part.isspace()}
    return sorted(found) or list(ODD)


text = any_of((800, reworded), (100, damaged), (96, spliced), (4, repeated))
binary = any_of((850, damaged), (146, spliced), (4, repeated))
