#!/usr/bin/env python3
"""A preprocessor of mdBook: links from the book's pages to files of the repository lead to the repository, and chapters
without a page get the page of the command with their name, which ci/book.sh has written.

mdBook runs it in the directory of book.toml. README.md and ARCHITECTURE.md are pages of the book too, included from one
directory up, so links are resolved against the file in which they stand.
"""
import json
import re
import sys
from pathlib import Path, PurePosixPath

REPOSITORY = "https://github.com/spinpark/spinpark/blob/main/"
DOCS = "docs"
INCLUDED = {"index.md": "README.md", "architecture.md": "ARCHITECTURE.md"}
LINK = re.compile(r"(!?\]\()([^)\s#:]+)(#[^)\s]*)?\)")


def resolved(page: str, target: str) -> str:
    """The path of a link's target in the repository."""
    base = PurePosixPath() if page in INCLUDED else PurePosixPath(DOCS, page).parent
    parts: list[str] = []
    for part in (base / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def rewritten(page: str, text: str) -> str:
    depth = "../" * (len(PurePosixPath(page).parts) - 1)
    pages = {source: name for name, source in INCLUDED.items()}

    def link(match: re.Match[str]) -> str:
        path = resolved(page, match[2])
        if path in pages:
            target = depth + pages[path]
        elif path.startswith(f"{DOCS}/"):
            target = depth + path.removeprefix(f"{DOCS}/")
        else:
            target = REPOSITORY + path
        return f"{match[1]}{target}{match[3] or ''})"

    return LINK.sub(link, text)


def fill(chapter: dict) -> None:
    """Gives a draft its generated page; a page of several commands is called more."""
    page = f"reference/{'more' if ',' in chapter['name'] else chapter['name']}.md"
    chapter["content"] = Path(page).read_text(encoding="utf-8")
    chapter["path"] = chapter["source_path"] = page


def walk(items: list) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if not chapter["path"]:
                fill(chapter)
            chapter["content"] = rewritten(chapter["path"], chapter["content"])
            walk(chapter["sub_items"])


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    walk(book.get("items") or book["sections"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
