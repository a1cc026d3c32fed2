#!/usr/bin/env bash
# Relative links and #anchors of the repository's Markdown files, the pages that sources name, and the files that scripts name:
# fails on a broken one. Tests of spinpark-lab check the pages of docs/reference, which are not in the repository, and that
# SUMMARY.md names them: without links, which ci/book-links.py adds.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 > /dev/null; then
    echo "skipped: python3 is not installed"
    exit 0
fi
exec python3 - <<'PYTHON'
import os, re, subprocess, sys, urllib.parse

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
LINK = re.compile(r"\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
HTML = re.compile(r"<(?:a|img|source)\s[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$")
PAGE = re.compile(r"(?<![\w./-])((?:(?:docs|notes)/[\w-]+|ARCHITECTURE|CONTRIBUTING|README|CHANGELOG)\.md)(#[\w-]+)?")

FILE = re.compile(r"(?<![\w./$}-])(?:crates|lab|ci|docs|notes|machines)/[\w./-]*\.(?:rs|c|sh|py|txt|toml|md)\b")


def files(*patterns):
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and os.path.exists(name)})


def prose(path):
    """Numbered lines outside of code blocks."""
    fence = None
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            mark = FENCE.match(line)
            if fence is None and mark:
                fence = mark[1]
            elif fence is not None:
                if mark and mark[1].startswith(fence) and not line.strip(" `~\n"):
                    fence = None
            else:
                yield number, line


def slug(heading):
    """The anchor that GitHub gives a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().rstrip("#").rstrip())
    heading = re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", heading).lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(path, known={}):
    if path not in known:
        known[path] = found = set()
        counts = {}
        for _, line in prose(path):
            found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
            if heading := re.match(r"^ {0,3}#{1,6}\s+(.*)$", line):
                name = slug(heading[1])
                seen = counts.get(name, 0)
                counts[name] = seen + 1
                found.add(f"{name}-{seen}" if seen else name)
    return known[path]


broken = []
checked = 0


def check(origin, number, base, link):
    global checked
    if re.match(r"^[a-zA-Z][\w+.-]*:|^//", link):
        return
    checked += 1
    target, _, anchor = urllib.parse.unquote(link).partition("#")
    path = os.path.normpath(os.path.join(base, target)) if target else origin
    if not os.path.exists(path):
        broken.append(f"{origin}:{number}: {link}: there is no {path}")
    elif anchor and path.endswith(".md") and anchor not in anchors(path):
        broken.append(f"{origin}:{number}: {link}: {path} has no heading #{anchor}")


for path in files("*.md"):
    for number, line in prose(path):
        line = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "``", line)
        for link in LINK.findall(line) + HTML.findall(line) + REFERENCE.findall(line):
            check(path, number, os.path.dirname(path), link)

# Sources name a page by its path from the top of the repository.
for path in files("*.rs", "*.toml", "*.sh", "*.h", ".ci/run"):
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            for page, anchor in PAGE.findall(line):
                check(path, number, "", page + anchor)

for path in files("*.sh", ".ci/run"):
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            for name in FILE.findall(line):
                check(path, number, "", name)

print(*broken, sep="\n", end="\n" if broken else "")
print(f"{checked} links checked, {len(broken)} broken")
sys.exit(1 if broken else 0)
PYTHON
