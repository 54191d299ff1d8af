"""An interpreter for a subset of the Lingo language, written for study.

Supported: comments, numbers, strings, booleans, nil, lists, calls, arrow
functions with one parameter, comparisons, sums, products and if/else.
Not supported: indexes, include, and/or/not, functions of two parameters.

    python lingo_interpreter.py program.lingo
"""

import re
import sys

TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\#[^\n]*)|(?P<newline>\n|;)
    |(?P<number>\d[\d_]*(?:\.\d+)?)|(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z][A-Za-z0-9_]*)|(?P<op>->|==|!=|<=|>=|[-+*/<>(){}\[\],])""",
    re.VERBOSE,
)
CONSTANTS = {"true": True, "false": False, "nil": None}


class LingoError(Exception):
    """An error with its code, for example LNG-103."""

    def __init__(self, code, line, message):
        super().__init__(f"{code} line {line}: {message}")
        self.code = code


def tokenize(source):
    """Return (kind, text, line) for each token; newlines inside ( and [ are dropped."""
    tokens, position, line, open_brackets = [], 0, 1, []
    while position < len(source):
        match = TOKEN.match(source, position)
        if match is None:
            raise LingoError("LNG-001", line, f"unexpected {source[position]!r}")
        kind, text = match.lastgroup, match.group()
        if kind == "op" and text in "([{":
            open_brackets.append(text)
        elif kind == "op" and text in ")]}" and open_brackets:
            open_brackets.pop()
        inside = open_brackets and open_brackets[-1] in "(["
        if kind != "space" and not (kind == "newline" and inside):
            tokens.append((kind, text, line))
        line += text.count("\n")
        position = match.end()
    tokens.append(("end", "", line))
    return tokens


class Parser:
    """Recursive descent; every method returns a tuple that begins with the node's kind."""

    def __init__(self, source):
        self.tokens, self.at = tokenize(source), 0

    def peek(self, text):
        return self.tokens[self.at][1] == text and self.tokens[self.at][0] != "string"

    def take(self, text=None):
        token = self.tokens[self.at]
        if text is not None and token[1] != text:
            raise LingoError("LNG-010", token[2], f"expected {text!r}, found {token[1]!r}")
        self.at += 1
        return token

    def statements(self, closing):
        found = []
        while True:
            while self.tokens[self.at][0] == "newline":
                self.at += 1
            if self.peek(closing) or self.tokens[self.at][0] == "end":
                return found
            found.append(self.conditional() if self.peek("if") else self.comparison())

    def block(self):
        self.take("{")
        body = self.statements("}")
        self.take("}")
        return ("block", body)

    def conditional(self):
        line = self.take("if")[2]
        test, then, otherwise = self.comparison(), self.block(), None
        if self.peek("else"):
            self.take()
            otherwise = self.conditional() if self.peek("if") else self.block()
        return ("if", test, then, otherwise, line)

    def binary(self, operators, operand):
        left = operand()
        while self.tokens[self.at][0] == "op" and self.tokens[self.at][1] in operators:
            _, operator, line = self.take()
            left = ("binary", operator, left, operand(), line)
        return left

    def comparison(self):
        return self.binary(("==", "!=", "<", "<=", ">", ">="), self.sum)

    def sum(self):
        return self.binary(("+", "-"), self.product)

    def product(self):
        return self.binary(("*", "/"), self.primary)

    def sequence(self, closing):
        found = []
        while not self.peek(closing):
            found.append(self.comparison())
            if not self.peek(closing):
                self.take(",")
        self.take(closing)
        return found

    def primary(self):
        kind, text, line = self.take()
        if kind == "number":
            return ("value", float(text.replace("_", "")))
        if kind == "string":
            return ("value", re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[1:-1]))
        if kind == "name" and self.peek("->"):
            self.take()
            return ("function", text, self.block() if self.peek("{") else self.comparison())
        if kind == "name" and self.peek("("):
            self.take()
            return ("call", text, self.sequence(")"), line)
        if kind == "name":
            return ("value", CONSTANTS[text]) if text in CONSTANTS else ("name", text, line)
        if text == "[":
            return ("list", self.sequence("]"))
        if text == "(":
            inner = self.comparison()
            self.take(")")
            return inner
        raise LingoError("LNG-001", line, f"unexpected {text!r}")


def show(value):
    """Return a value as text; whole numbers lose their decimal point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


class Interpreter:
    def __init__(self, write=print):
        self.scopes, self.write = [{}], write

    def find(self, name, line):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope
        raise LingoError("LNG-103", line, f"no variable named {name!r}")

    def run(self, source):
        for statement in Parser(source).statements(""):
            self.evaluate(statement)

    def evaluate(self, node):
        return getattr(self, "eval_" + node[0])(*node[1:])

    def eval_value(self, value):
        return value

    def eval_list(self, elements):
        return [self.evaluate(element) for element in elements]

    def eval_name(self, name, line):
        return self.find(name, line)[name]

    def eval_block(self, body):
        self.scopes.append({})
        try:
            result = None
            for statement in body:
                result = self.evaluate(statement)
            return result
        finally:
            self.scopes.pop()

    def eval_if(self, test, then, otherwise, line):
        chosen = self.evaluate(test)
        if not isinstance(chosen, bool):
            raise LingoError("LNG-203", line, "boolean expected after if")
        return self.evaluate(then) if chosen else self.evaluate(otherwise) if otherwise else None

    def eval_binary(self, operator, left, right, line):
        a, b = self.evaluate(left), self.evaluate(right)
        if operator in ("==", "!="):
            return (a == b) is (operator == "==")
        if type(a) is not type(b) or not isinstance(a, float if operator in "*/-" else (float, str)):
            raise LingoError("LNG-201", line, f"cannot apply {operator} to these types")
        if operator == "/" and b == 0:
            raise LingoError("LNG-404", line, "division by zero")
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b,
                "<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b}[operator]()

    def eval_function(self, parameter, body):
        captured = list(self.scopes)

        def call(argument):
            outer, self.scopes = self.scopes, [*captured, {parameter: argument}]
            try:
                return self.evaluate(body)
            finally:
                self.scopes = outer

        return call

    def eval_call(self, name, arguments, line):
        builtin = getattr(self, "do_" + name, None)
        if builtin is None:
            raise LingoError("LNG-101", line, f"unknown function {name!r}")
        return builtin(line, *[self.evaluate(argument) for argument in arguments])

    def do_addVar(self, line, name, value):
        if name in self.scopes[-1]:
            raise LingoError("LNG-102", line, f"variable {name!r} exists already")
        self.scopes[-1][name] = value
        return value

    def do_setVar(self, line, name, value):
        scope = self.find(name, line)
        former, scope[name] = scope[name], value
        return former

    def do_getVar(self, line, name, *fallback):
        if fallback and not self.do_hasVar(line, name):
            return fallback[0]
        return self.find(name, line)[name]

    def do_delVar(self, line, name):
        existed = name in self.scopes[-1]
        self.scopes[-1].pop(name, None)
        return existed

    def do_hasVar(self, line, name):
        return any(name in scope for scope in self.scopes)

    def do_forEach(self, line, elements, function):
        if not callable(function):
            raise LingoError("LNG-204", line, "function expected")
        for element in list(elements):
            function(element)
        return float(len(elements))

    def do_mapList(self, line, elements, function):
        return [function(element) for element in elements]

    def do_range(self, line, start, end, step=1.0):
        if step == 0:
            raise LingoError("LNG-402", line, "step of zero")
        return [float(n) for n in range(int(start), int(end), int(step))]

    def do_toText(self, line, value):
        return show(value)

    def do_print(self, line, text):
        self.write(show(text))


if __name__ == "__main__":
    try:
        with open(sys.argv[1], encoding="utf-8") as program:
            Interpreter().run(program.read())
    except LingoError as error:
        sys.exit(str(error))
