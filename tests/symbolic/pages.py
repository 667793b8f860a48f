"""A reader of the pages that the printers make, for their tests."""

from html.parser import HTMLParser

VOID = {"meta", "mspace"}
MATH = {"math", "mrow", "mi", "mn", "mo", "msub", "msup", "msubsup", "mfrac", "msqrt", "mover", "mspace", "mtable"}
PAGE = {"html", "head", "body", "title", "style", "meta", "div", "nav", "main", "header", "section", "h1", "h2", "p"}
PAGE |= {"ol", "li", "a", "span", "table", "thead", "tbody", "tr", "th", "td", "code"}
CHILDREN = {"msub": 2, "msup": 2, "msubsup": 3, "mfrac": 2, "mover": 2}


class Reader(HTMLParser):
    """Refuses what is not closed, not known, or has the wrong number of parts; gathers the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[list] = []
        self.words: list[str] = []
        self.targets: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list) -> None:
        assert tag in MATH | PAGE | {"mtr", "mtd"}, tag
        given = dict(attributes)
        assert not [name for name in given if name.startswith("on") or name in ("src", "style")]
        self.targets |= {given["id"]} if "id" in given else set()
        self.links |= {given["href"]} if "href" in given else set()
        if self.open:
            self.open[-1][1] += 1
        if tag not in VOID:
            self.open.append([tag, 0])

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        was, children = self.open.pop()
        assert was == tag
        assert children == CHILDREN.get(tag, children), tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
