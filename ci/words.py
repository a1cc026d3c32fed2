#!/usr/bin/env python3
"""Looks for words that the project's prose does not use: in documents, comments and strings.

The words are in ci/words.txt. A place that may stand as it is has a line in ci/words-allowed.txt: its file, a tab, and a part of
the line as it is. An allowance that nothing needs any more is an error, too.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = {".rs", ".c", ".h", ".cpp", ".js", ".css"}
WHOLE = {".md", ".toml", ".html", ".sh", ".py", ".snap", ".txt", ".yml"}
# Their subject are the words themselves.
SKIPPED = {"ci/words.txt", "ci/words.py", "ci/words-allowed.txt", "Cargo.lock"}

# A comment to the end of its line, a comment in slashes and stars, or a string.
PROSE = re.compile(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"', re.DOTALL)

# Part of a name in code.
IN_NAMES = re.compile(r"(?<![a-z])([Nn]obody|[Ss]omebody|[Ww]hoever|[Aa]nybody)(?![a-z])")


def prose(path: Path, text: str) -> str:
    """The text with everything but prose blanked out, line by line."""
    if path.suffix not in CODE:
        return text
    kept = [" " if character != "\n" else "\n" for character in text]
    for match in PROSE.finditer(text):
        start = match.start()
        words = re.sub(r'^\s*(?://[/!]?|/\*+!?|\*(?!/)|r?#*")', lambda m: " " * len(m[0]), match[0], flags=re.MULTILINE)
        kept[start : match.end()] = words
    return "".join(kept)


def patterns() -> list[tuple[re.Pattern[str], str, re.Pattern[str]]]:
    """Each word, what to write instead, and the files for which that holds."""
    found = []
    for line in (ROOT / "ci/words.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            expression, advice, *files = line.split("\t")
            found.append((re.compile(expression, re.IGNORECASE), advice, re.compile(*files or [""])))
    return found


def main() -> int:
    allowed = [
        tuple(line.split("\t", 1))
        for line in (ROOT / "ci/words-allowed.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    used = set()
    bad = 0
    words = patterns()
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    for name in files:
        path = ROOT / name
        if name in SKIPPED or path.suffix not in CODE | WHOLE or not path.is_file():
            continue
        text = path.read_text()
        for number, (line, whole) in enumerate(zip(prose(path, text).split("\n"), text.split("\n")), 1):
            line = line.strip()
            for pattern, advice, where in words:
                match = pattern.search(line)
                if not match or not where.search(name):
                    continue
                excuse = next((entry for entry in allowed if entry[0] == name and entry[1] in whole), None)
                if excuse:
                    used.add(excuse)
                    continue
                bad += 1
                print(f"{name}:{number}: '{match[0].strip()}': {advice}\n    {whole.strip()}")
            match = IN_NAMES.search(whole) if path.suffix in CODE else None
            if match and match[0] not in line:
                bad += 1
                print(f"{name}:{number}: '{match[0]}' in a name: say which thread, or 'no_thread'\n    {whole.strip()}")
    for entry in allowed:
        if entry not in used:
            bad += 1
            print(f"ci/words-allowed.txt: nothing needs '{entry[1]}' in {entry[0]}: delete the line")
    if bad:
        print(f"{bad} places; the rules are in CONTRIBUTING.md, exceptions in ci/words-allowed.txt", file=sys.stderr)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
