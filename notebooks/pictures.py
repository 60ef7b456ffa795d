"""The main pictures of the lectures as files, for who reads a lecture on a code host, where cells have no results.

python notebooks/pictures.py        # all lectures, into the folder figures/lectures/
python notebooks/pictures.py 04 07  # these two

A line ``![what is to be seen](../figures/lectures/NAME.png)`` below a cell of a lecture names its picture.  The line is
left out wherever the cell itself shows the picture: in notebooks, slides, sheets, the book and the documentation.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from prepare import NOTEBOOKS, PICTURE
from sheets import lectures

FOLDER = NOTEBOOKS.parent / "figures" / "lectures"
COLOURS = 256


def named(cells: list) -> Iterator[tuple[str, object]]:
    """The name of each picture, and the cell that draws it: the last one above the line."""
    drawn = None
    for cell in cells:
        if cell.cell_type == "code":
            drawn = cell
        else:
            yield from ((name, drawn) for _, name in PICTURE.findall(cell.source))


def small(data: bytes) -> bytes:
    """The same picture with few colours."""
    from PIL import Image

    made = io.BytesIO()
    few = Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(made, format="PNG", optimize=True)
    return made.getvalue()


def write(cells: list, folder: Path = FOLDER) -> list[Path]:
    """Write the pictures that executed cells show."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, cell in named(cells):
        shown = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
        if not shown:
            raise ValueError(f"{name}: the cell above shows no picture:\n{cell.source}")
        written.append(folder / f"{name}.png")
        written[-1].write_bytes(small(base64.b64decode(shown[-1])))
    return written


def main(*words: str) -> int:
    """Execute the lectures and write their pictures; 1 if a lecture fails."""
    import jupytext
    from slides import executed

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", help="lectures, 04 for example; all of them if none is named")
    arguments = parser.parse_args(words)
    failed = 0
    for path in lectures(*arguments.numbers):
        print(f"{path.stem}: is run, which takes a minute or two the first time", flush=True)
        try:
            for picture in write(executed(jupytext.read(path)).cells):
                print(picture.relative_to(NOTEBOOKS.parent), flush=True)
        except Exception as error:  # of a cell, or of a kernel that died: the other lectures are run all the same
            failed = 1
            print(f"{path.stem}: FAILED\n{error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
