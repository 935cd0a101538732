"""Puts the state machine's diagram and table, as the program draws them, between the README's markers."""

import re
import subprocess
import sys


def drawn(program: str, form: str) -> str:
    return subprocess.run([program, "diagram", "--format", form], check=True, capture_output=True, text=True).stdout


def main(program: str, path: str) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    sections = {"diagram": f"```mermaid\n{drawn(program, 'mermaid')}```\n", "table": drawn(program, "table")}
    for name, content in sections.items():
        pattern = rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
        text, count = re.subn(pattern, lambda match: match[1] + content + match[2], text, flags=re.DOTALL)
        if count != 1:
            sys.exit(f"{path}: expected one section \"{name}\", found {count}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
