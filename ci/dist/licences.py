#!/usr/bin/env python3
"""Prints the licences of the Rust crates that are linked into what is packed, with their texts, and those of Rust's standard library.
The arguments are our crates that are in the package. Fails if a crate comes without a text.

The texts are the files that each crate is published with: a tool that knows licences by name would lose their copyright lines.
"""
import html
import json
import re
import subprocess
import sys
from pathlib import Path

TARGET = "x86_64-unknown-linux-gnu"
FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def printed(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_crates() -> list[dict]:
    """The packages of other people that code is linked from: no build scripts' and tests'."""
    metadata = json.loads(printed("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: set[str] = set()
    todo = [id for id, package in packages.items() if package["name"] in sys.argv[1:]]
    while todo:
        id = todo.pop()
        if id not in found:
            found.add(id)
            todo += [of["pkg"] for of in nodes[id]["deps"] if any(kind["kind"] is None for kind in of["dep_kinds"])]
    crates = [packages[id] for id in found if packages[id]["source"]]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def standard_library() -> str:
    root = Path(printed("rustc", "--print", "sysroot").strip())
    page = (root / "share/doc/rust/COPYRIGHT-library.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<(title|style).*?</\1>|<[^>]*>", "", page, flags=re.DOTALL))
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\s*\n\s*\n", "\n\n", text)).strip()


def main() -> None:
    # Most crates have one of a few texts: each is printed once, after the crates that have it.
    crates_of: dict[str, list[str]] = {}
    text_of: dict[str, str] = {}
    without = []
    lines = []
    for crate in linked_crates():
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"  {name}: {crate['license']}, {crate['repository'] or 'https://crates.io/crates/' + crate['name']}")
        directory = Path(crate["manifest_path"]).parent
        files = sorted(path for path in directory.iterdir() if path.is_file() and FILE.match(path.name))
        if not files:
            without.append(name)
        for path in files:
            text = path.read_text(encoding="utf-8").replace("\r\n", "\n").strip("\n")
            key = " ".join(text.split())
            text_of.setdefault(key, text)
            crates_of.setdefault(key, []).append(name)
    if without:
        sys.exit(f"no licence text is published with {', '.join(without)}")
    print("This package has code of these Rust crates; the texts of their licences follow.\n")
    print(*lines, sep="\n")
    for key, crates in sorted(crates_of.items(), key=lambda item: (item[1], item[0])):
        print(f"\n{'=' * 80}\n{', '.join(dict.fromkeys(crates))}\n{'=' * 80}\n\n{text_of[key]}")
    print(f"\n{'=' * 80}\nRust's standard library\n{'=' * 80}\n\n{standard_library()}")


if __name__ == "__main__":
    main()
