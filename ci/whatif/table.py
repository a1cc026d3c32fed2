#!/usr/bin/env python3
"""What whatif has said, beside what mending has brought: the table of ci/whatif.sh."""

import json
import pathlib
import sys


def change(ratio):
    low, high = sorted((ratio["low"] - 1, ratio["high"] - 1))
    return f"{ratio['median'] - 1:+.1%} [{low:+.1%}, {high:+.1%}]"


def half(estimate):
    """What half of a section less saves, if the line through longer ones goes on."""
    if estimate is None:
        return "–"
    return f"{-estimate['median'] / 2:+.1%} [{-estimate['high'] / 2:+.1%}, {-estimate['low'] / 2:+.1%}]"


def main():
    directory = pathlib.Path(sys.argv[1])
    for path in sorted(directory.glob("*.whatif.json")):
        name = path.name.removesuffix(".whatif.json")
        document = json.loads(path.read_text())
        lock = document["locks"][0]
        effect = lock["effect"]
        # The delay may be longer than a section.
        whole = lock["section_ns"] / lock["delay_ns"]
        scaled = {
            key: value and {part: number * whole for part, number in value.items()}
            for key, value in effect.items()
            if key in ("slope", "over_outside", "bend")
        }
        print(f"{name}: `{lock['name']}`, sections of {lock['section_ns']:.0f} ns, held {lock['held']:.0%},",
              f"waited {lock['waited']:.0%}, delay {lock['delay_ns']} ns")
        print(f"  {lock['answer']}")
        print(f"  half of the slope            {half(scaled['slope'])}")
        print(f"  half of it over outside      {half(scaled['over_outside'])}")
        print(f"  bend                         {half(scaled['bend'])}")
        for mended in sorted(directory.glob(f"{name}.*.json")):
            if mended == path:
                continue
            compared = json.loads(mended.read_text())["comparison"]
            wall = next(row for row in compared["metrics"] if row["metric"] == "wall")
            print(f"  mended, {mended.stem.removeprefix(name + '.'):20} {change(wall['change'])}")


if __name__ == "__main__":
    main()
