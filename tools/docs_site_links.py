"""Hooks of MkDocs: README.md and CONTRIBUTING.md become pages, folders of pages chapters, and links fit the site."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {"README.md": "first_plan.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_config(config):
    """Replaces `folder/*.md` in the navigation by the pages of the folder."""
    for entry in config.nav:
        for title, pages in entry.items():
            if isinstance(pages, str) and "*" in pages:
                found = pathlib.Path(config.docs_dir).glob(pages)
                entry[title] = sorted(str(page.relative_to(config.docs_dir)) for page in found)
    return config


def on_files(files, config):
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Sources are no part of the site: links to them become text."""
    uri = page.file.src_uri
    sources = {page: name for name, page in PAGES.items()}
    folder = posixpath.dirname(sources.get(uri, "docs/" + uri))
    here = posixpath.dirname(uri) or "."

    def rewrite(link):
        mark, text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        wanted = PAGES.get(path, path.removeprefix("docs/"))
        if not (path in PAGES or path.startswith("docs/")) or wanted not in files.src_uris:
            return text
        return f"{mark}[{text}]({posixpath.relpath(wanted, here)}{anchor or ''})"

    return LINK.sub(rewrite, markdown)
