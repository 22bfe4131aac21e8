"""Token files for benchmarks, which learn nothing."""
import random
import struct


def write_tokens(file, vocabulary, count):
    """Random tokens as nanoGPT stores them: uint16 without a header; the same in each call."""
    draw = random.Random(1)
    with open(file, "wb") as stream:
        stream.write(struct.pack(f"<{count}H", *(draw.randrange(vocabulary) for _ in range(count))))
