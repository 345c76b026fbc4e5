"""Reduces a statement while a predicate holds: `reduced(text, differs)`.

Parentheses are replaced by constants and by their own parts, then runs of tokens are removed. PostgreSQL rejects what is not
SQL, so `differs` need not know the grammar. An ORDER BY stays while a clause depends on it.
"""

import re

TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_][\w.]*|\d+(?:\.\d+)?(?:e\d+)?|::|<>|<=|>=|!=|!~\*|!~|~\*|\|\||<<|>>|\S")
WORDS_BEFORE_PARENTHESES = set("IN AND OR NOT FROM WHERE SELECT ON BY ANY ALL EXISTS OVER VALUES AS WHEN THEN ELSE LATERAL HAVING IS CASE JOIN UNION EXCEPT INTERSECT".split())
SEPARATORS = {",", "AND", "OR", "=", "<", ">", "<=", ">=", "<>", "IN", "THEN", "ELSE", "+", "-", "*", "/", "||"}
DEPENDS_ON_ORDER = re.compile(r"\b(LIMIT|FETCH|OFFSET|OVER|row_number|lag|lead|first_value|last_value|nth_value|string_agg|array_agg)\b|DISTINCT ON", re.I)
CONSTANTS = [["true"], ["NULL"], ["1"], ["'a'"]]
PART_TOKENS_MAX = 40
TRIES_MAX = 600


def joined(tokens):
    out = ""
    for token in tokens:
        out += token if not out or token in "),;." or out[-1] == "(" else f" {token}"
    return out


def parentheses(tokens):
    """Pairs of places, the largest first."""
    opened, pairs = [], []
    for place, token in enumerate(tokens):
        if token in "([":
            opened.append(place)
        elif token in ")]" and opened:
            pairs.append((opened.pop(), place))
    return sorted(pairs, key=lambda pair: pair[0] - pair[1])


def parts(tokens):
    """The operands between separators outside of parentheses."""
    depth, out, current = 0, [], []
    for token in tokens:
        depth += (token in "([") - (token in ")]")
        if depth == 0 and token.upper() in SEPARATORS:
            out.append(current)
            current = []
        else:
            current.append(token)
    out.append(current)
    return [part for part in out if part and len(part) < PART_TOKENS_MAX] if len(out) > 1 else []


class Reducer:
    def __init__(self, text, differs):
        self.tokens, self.differs = TOKEN.findall(text), differs
        self.orders, self.tries, self.seen = text.count("ORDER BY"), 0, set()

    def holds(self, tokens):
        text = joined(tokens)
        if not tokens or text in self.seen or self.tries >= TRIES_MAX:
            return False
        self.seen.add(text)
        if DEPENDS_ON_ORDER.search(text) and text.count("ORDER BY") < self.orders:
            return False
        self.tries += 1
        return self.differs(text)

    def keep(self, tokens):
        """Takes the tokens if the predicate holds for them."""
        if not self.holds(tokens):
            return False
        self.tokens = tokens
        return True

    def replace_parentheses(self):
        """Replaces one pair of parentheses, with the name of a function before it or without."""
        tokens = self.tokens
        for first, last in parentheses(tokens):
            is_call = first > 0 and re.match(r"[A-Za-z_]\w*$", tokens[first - 1]) and tokens[first - 1].upper() not in WORDS_BEFORE_PARENTHESES
            inner = [tokens[a: b + 1] for a, b in parentheses(tokens) if first < a and b < last]
            candidates = CONSTANTS + inner[:4] + parts(tokens[first + 1: last])
            for start in ([first - 1] if is_call else []) + [first]:
                for candidate in candidates:
                    if len(candidate) < last - start + 1 and self.keep(tokens[:start] + candidate + tokens[last + 1:]):
                        return True
        return False

    def remove_runs(self):
        """Removes runs of tokens, long ones first."""
        is_changed, size = False, max(len(self.tokens) // 2, 1)
        while size:
            place = 0
            while place < len(self.tokens):
                if self.keep(self.tokens[:place] + self.tokens[place + size:]):
                    is_changed = True
                else:
                    place += max(size // 2, 1)
            size //= 2
        return is_changed


def reduced(text, differs):
    reducer = Reducer(text, differs)
    while reducer.tries < TRIES_MAX and (reducer.replace_parentheses() or reducer.remove_runs()):
        pass
    return joined(reducer.tokens)
