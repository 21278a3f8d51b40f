#!/usr/bin/python3
"""Checks the links of a site in a folder. Fails if a link leads to a file or an anchor that does not exist."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(encoding='utf-8', errors='replace'))

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        for name in ('id', 'name'):
            if of.get(name):
                self.anchors.add(of[name])
        for name in ('href', 'src'):
            if of.get(name):
                self.links.append(of[name])


site = pathlib.Path(sys.argv[1])
pages = {path.resolve(): Page(path) for path in site.rglob('*.html')}
broken = []
for path, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc or link.startswith('javascript:'):
            continue
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            broken.append(f'{path.relative_to(site.resolve())}: {link}: no such file')
        elif path.parent == site.resolve() / 'reference' and target == path:
            pass  # ignored: Doxygen links to sections of a page that Doxygen itself has left out
        elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
            broken.append(f'{path.relative_to(site.resolve())}: {link}: no such heading')
for line in sorted(set(broken)):
    print(line, file=sys.stderr)
if broken:
    print(f'error: {len(set(broken))} broken links', file=sys.stderr)
    sys.exit(1)
print(f'{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links')
