"""A hook of mkdocs.yml: converts pages written for GitHub to the Markdown that MkDocs understands."""
import re
from os.path import dirname, exists, join, normpath, relpath

from mkdocs.structure.files import File

ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}  # pages outside docs/
LINK = re.compile(r"\]\(([^)\s:#]+)")
ITEM = re.compile(r" *([-*]|\d+\.) +")
CODE = re.compile(r"`[^`\n]*`")


def on_files(files, config):
    for source, uri in ROOT.items():
        files.append(File.generated(config, uri, content=open(source, encoding="utf-8").read()))
    files.append(File.generated(config, "site.css", content=".md-typeset td code { word-break: normal }"))


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    source = {v: k for k, v in ROOT.items()}.get(uri, "docs/" + uri)

    def link(match):  # links to files that are not pages lead to GitHub
        path = normpath(join(dirname(source), match[1]))
        target = ROOT.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target):
            return "](" + relpath(target, dirname(uri) or ".")
        return f"]({config.repo_url}/blob/main/{path}" if exists(path) else match[0]

    # Lists need an empty line before them and four spaces for each level.
    lines, columns, fenced = [""], [], False  # columns: where the text of each open list item starts
    for line in LINK.sub(link, markdown).split("\n"):
        item = None if fenced else ITEM.match(line)
        depth = len(columns)
        while columns and line and not fenced and len(line) - len(line.lstrip()) < columns[-1]:
            columns.pop()
        if item and lines[-1] and depth == len(columns):  # the line continues a paragraph
            if item[1] not in "-*1.":
                item, line = None, line.replace(".", "\\.", 1)
            elif not columns:
                lines.append("")
        if line.startswith("|"):
            line = CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
        lines.append(" " * (4 * len(columns)) + line[columns[-1] if columns else 0:])
        columns += [item.end()] if item else []
        fenced ^= line.lstrip().startswith("```")
    return "\n".join(lines)
