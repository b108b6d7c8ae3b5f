"""The corpus is what its rule says, whatever else lies in the folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hideaway.hw.training.corpus import BOS, EOS, is_validation, read_corpus, windows
from hideaway.sim.errors import InputError


def write(folder: Path, name: str, text: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text)


def make_sources(folder: Path) -> dict[str, bytes]:
    """Forty files that belong, at least one of them held out."""
    sources = {f"part{index % 3}/module{index}.py": b"x = %04d\n" % index * 40 for index in range(40)}
    for name, text in sources.items():
        write(folder, name, text)
    return sources


def test_every_file_is_in_one_part_between_a_beginning_and_an_end(tmp_path: Path) -> None:
    sources = make_sources(tmp_path)
    corpus = read_corpus(tmp_path)
    held_out = [name for name in sorted(sources) if is_validation(name)]
    assert held_out
    assert corpus.files == tuple(held_out)
    expected = [token for name in held_out for token in (BOS, *sources[name], EOS)]
    assert corpus.validation.tolist() == expected
    assert len(corpus.training) == sum(len(text) + 2 for text in sources.values()) - len(expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("site-packages/a.py", b"y = 1\n" * 100),
        ("encodings/table.py", b"y = 1\n" * 100),
        ("letters.py", "ä = 1\n".encode() * 100),
        ("short.py", b"y = 1\n"),
        ("long.py", b"y = 1\n" * 50_000),
        ("zzz_again.py", b"x = 0000\n" * 40),
        ("notes.txt", b"y = 1\n" * 100),
    ],
)
def test_what_the_rule_excludes_changes_nothing(tmp_path: Path, name: str, text: bytes) -> None:
    make_sources(tmp_path)
    before = read_corpus(tmp_path).sha256
    write(tmp_path, name, text)
    assert read_corpus(tmp_path).sha256 == before


def test_a_folder_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 training and 0 validation files; give a folder"):
        read_corpus(tmp_path)


def test_windows_are_pieces_of_the_text_and_depend_on_the_generator_only() -> None:
    tokens = np.arange(1000, dtype=np.int16)
    drawn = windows(tokens, count=50, length=20, generator=np.random.default_rng(3))
    assert drawn.shape == (50, 20)
    assert (np.diff(drawn, axis=1) == 1).all()
    assert np.array_equal(drawn, windows(tokens, count=50, length=20, generator=np.random.default_rng(3)))
    with pytest.raises(InputError, match="a window is 20 tokens but the text has 10"):
        windows(tokens[:10], count=1, length=20, generator=np.random.default_rng(3))
