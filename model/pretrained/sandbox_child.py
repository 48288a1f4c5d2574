"""The process that sandbox.py starts: python sandbox_child.py LIBRARY SECONDS BYTES, with the
tokenizer on its standard input. It prints why the tokenizer is refused, and ends with 1; where a
limit ends it, nothing is printed. It imports none of our modules, which would take seconds."""

import string
import sys
from collections.abc import Callable
from typing import NoReturn

MOST_GROWTH = 64  # tokens of a character; one of Arabic may stand for 18, of two bytes each
RUN = 40  # letters: enough for a regular expression that tries all ways to divide them
TEXTS = (
    "The dog sees the dog, and 12 cats see it: 3.50 € – “naïve”, isn't it?\n\n\tEin Größenwahn!",
    "Собака видит кошку. 犬は猫を見る。الكلب يرى القط ﷺ 🙂👩‍👩‍👧 e\u0301\u200b\u00a0\ufeff",
    *(f"{letter * RUN} " for letter in string.printable),
    " ".join(letter * RUN for letter in string.printable),
)


def main(library: str, seconds: str, size: str) -> None:
    limit(int(seconds), int(size))
    content = sys.stdin.buffer.read()
    try:
        read = LIBRARIES[library](content)
    except MemoryError:
        raise
    except Exception:
        return  # it is no tokenizer, as who opens it says better
    for text in TEXTS:
        try:
            length = read(text)
        except MemoryError:
            raise
        except BaseException as error:  # a panic of the library is no Exception
            refuse(f"it fails on a text: “{' '.join(str(error).split())[:120]}”")
        if length > MOST_GROWTH * len(text):
            refuse(
                f"it turns {len(text)} characters into {length:,} tokens or characters; the "
                f"limit is {MOST_GROWTH} for each"
            )


def limit(seconds: int, size: int) -> None:
    """Of what this process may take; where a system knows no such limits, none."""
    try:
        import resource
    except ImportError:
        return
    for kind, most in (("RLIMIT_AS", size), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, kind), (most, most))
        except (AttributeError, ValueError, OSError):
            continue


def refuse(why: str) -> NoReturn:
    print(why)
    sys.exit(1)


def of_tokenizers(content: bytes) -> Callable[[str], int]:
    """What tells how long a text becomes, in tokens or in characters."""
    import tokenizers

    backend = tokenizers.Tokenizer.from_str(content.decode("utf-8"))

    def read(text: str) -> int:
        ids = backend.encode(text).ids
        return max(len(ids), len(backend.decode(ids)))

    return read


def of_sentencepiece(content: bytes) -> Callable[[str], int]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return lambda text: max(len(processor.encode(text)), len(processor.normalize(text)))


LIBRARIES = {"tokenizers": of_tokenizers, "sentencepiece": of_sentencepiece}


if __name__ == "__main__":
    main(*sys.argv[1:])
