#!/usr/bin/python3
"""Input filter of Doxygen: prints a header with its // comments as Doxygen documentation, so that headers need no
Doxygen syntax.

The rules for a header:
  - The first comment of a file describes the file.
  - A comment on lines of its own documents the declaration below it, and every further declaration up to the next
    blank line or comment.
  - A comment behind code documents the declaration of that line. Comment lines that follow at the same column continue
    that comment.
  - A comment with a blank line below it documents nothing. A comment inside a function documents nothing either.
"""
import re
import sys


def code_and_comment(line):
    """Splits a line at its // comment: (code, text, column). A // inside a literal does not count. Without a comment, text
    and column are None."""
    quote, i = None, 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == '\\':
                i += 1
            elif c == quote:
                quote = None
        elif c == '"' or (c == "'" and not (i and line[i - 1].isalnum())):
            quote = c
        elif line.startswith('//', i):
            return line[:i], line[i + 2:].removeprefix(' ').rstrip(), i
        i += 1
    return line, None, None


def without_literals(code):
    return re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '0', code)


SCOPE = re.compile(r'^(template\s*<.*>\s*)?(inline\s+)?(export\s+)?(extern\s+"C"|namespace|class|struct|union)\b')
ENUM = re.compile(r'^enum\b')


class Nesting:
    """Follows the braces of a header. Tells whether the next line declares members of a file, namespace or class, or is
    inside a function."""

    def __init__(self):
        self.stack, self.statement, self.parentheses = [], '', 0

    def declares(self):
        return all(kind == 'scope' for kind in self.stack) and not self.statement.strip() and self.parentheses == 0

    def enumerates(self):
        return bool(self.stack) and self.stack[-1] == 'enum' and all(k == 'scope' for k in self.stack[:-1])

    def take(self, code):
        for c in without_literals(code):
            if c in '([':
                self.parentheses += 1
            elif c in ')]':
                self.parentheses -= 1
            if c == '{':
                text = self.statement.strip()
                if self.parentheses == 0 and SCOPE.match(text) and '=' not in re.sub(r'<[^<>]*>', '', text):
                    self.stack.append('scope')
                elif ENUM.match(text):
                    self.stack.append('enum')
                else:
                    # 'inner': the braces are inside an argument.
                    self.stack.append('body' if self.parentheses == 0 else 'inner')
                if self.stack[-1] not in ('body', 'inner'):
                    self.statement = ''
            elif c == '}':
                kind = self.stack.pop() if self.stack else 'scope'
                # A statement with a function body ends at the closing brace. A statement with an initializer ends
                # at the semicolon.
                text = re.sub(r'operator\W+\(', '(', self.statement)
                while (shorter := re.sub(r'<[^<>]*>', '', text)) != text:
                    text = shorter
                if kind == 'body' and '(' in text and '=' not in text.split('(')[0]:
                    self.statement = ''
            elif c == ';':
                if not self.stack or self.stack[-1] not in ('body', 'inner'):
                    if self.parentheses == 0:
                        self.statement = ''
            elif not self.stack or self.stack[-1] not in ('body', 'inner'):
                self.statement += c
        self.statement = re.sub(r'^\s*(public|protected|private)\s*:', '', self.statement)
        if not self.stack or self.stack[-1] not in ('body', 'inner'):
            self.statement += '\n' if self.statement.strip() else ''


DIVIDER = re.compile(r'^-{3,} .*-{3,}$')


def escape(text):
    """Escapes the commands of Doxygen and HTML in a comment, and sets `code` as code."""
    def outside_quotes(part):
        part = re.sub(r'([\\@#<>%&])', r'\\\1', part)
        part = re.sub(r'`([^`]+)`', r'<tt>\1</tt>', part)
        # A full stop after these abbreviations does not end a sentence.
        return re.sub(r'\b(et al|e\.g|i\.e|cf|vs)\. ', r'\1.\\ ', part)

    parts = re.split(r'("[^"]*")', text)
    text = ''.join(part if i % 2 else outside_quotes(part) for i, part in enumerate(parts)).replace('*/', '*\u200b/').replace('/*', '/\u200b*')
    return re.sub(r'^(\s*)\.', r'\1\\.', text)  # Doxygen reads a full stop at the start of a line as the end of a list


def filtered(lines):
    """Returns the lines of a header with documentation. The number of lines does not change, so that warnings name the
    right lines."""
    out, nesting = [], Nesting()
    comment = []  # lines of the comment above the code, as (line, column, text)
    trailing = None  # column of the comment behind the code of the previous line
    run = None  # line at which the comment of the current run of declarations begins
    is_open = False  # whether the run has several declarations, which makes it a group
    file_is_described = shifted = False

    def write(first_word):
        """Writes the comment above the code into the lines of that comment. Indented lines keep their layout."""
        laid_out, in_list = [], False
        for _, _, text in comment:
            in_list = bool(re.match(r'\s*(-|\d+\.) ', text)) or (in_list and text.startswith('  '))
            laid_out.append(text.startswith('  ') and not in_list)
        for k, (i, column, text) in enumerate(comment):
            before = '<pre>' if laid_out[k] and not (k and laid_out[k - 1]) else ''
            after = '</pre>' if laid_out[k] and not (k + 1 < len(comment) and laid_out[k + 1]) else ''
            out[i] = ' ' * column + (first_word if k == 0 else '') + before + escape(text) + after
        out[comment[-1][0]] += ' */'

    def close_run():
        nonlocal run, is_open
        if is_open:
            out[-1] += ' /** @} */'
        run, is_open = None, False

    for line in lines:
        code, text, column = code_and_comment(line)
        if text is not None and not code.strip():  # a comment that is alone on its line
            if trailing == column and not comment:
                out.append(f'{" " * column}/**< {escape(text)} */')
            elif nesting.declares():
                close_run()
                trailing = None
                if not DIVIDER.match(text):
                    comment.append((len(out), column, text))
                out.append('')
            elif nesting.enumerates():
                out.append(f'{" " * column}/** {escape(text)} */')
            else:
                out.append('')
            continue
        if not line.strip() or (line.lstrip().startswith('#') and nesting.declares()):
            close_run()
            if comment and not file_is_described:
                write('/** @file\n')
                shifted = True
            elif comment and line.lstrip().startswith('#define'):
                write('/** ')
            file_is_described = True
            comment, trailing = [], None
            if shifted and not line.strip():
                shifted = False  # the @file line takes the place of this blank line
            else:
                out.append(line)
            continue
        file_is_described = True
        if code.strip().startswith('}') and nesting.stack and nesting.stack[-1] not in ('body', 'inner'):
            close_run()
        starts = nesting.declares() and not code.strip().startswith('}')
        if comment:
            write('/** ')
            run, comment = comment[0][0], []
        elif starts and run is not None and not is_open:
            out[run] = '/** @{ */ ' + out[run]
            is_open = True
        nesting.take(code)
        if text is not None and (starts or nesting.declares() or nesting.enumerates()):
            out.append(f'{code}/**< {escape(text)} */')
            trailing = column
        else:
            out.append(line if text is None else code)
            trailing = None
        if run is not None and nesting.stack and nesting.stack[-1] not in ('body', 'inner') and code.rstrip().endswith('{'):
            close_run()  # a type ends the run, because the members of a type have their own comments
    close_run()
    return out


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as header:
        print('\n'.join(filtered(header.read().split('\n'))))
