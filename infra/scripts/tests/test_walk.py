import unittest

from scripts import walk

PAGE = """
# A page

```console
$ make watch
…
it works
```

## Below

```sh
not a step
```

```console
$ curl here \\
    -d there
{"id":"01a1ffd8-e3a5-763f-b0ee-c07ae8f5712b",…}
$ python3 - <<'EOF'
print("$ no command")
EOF
204
```
"""


class Steps(unittest.TestCase):
    def test_step_has_command_heading_and_output(self) -> None:
        found = walk.steps(PAGE)
        self.assertEqual(found[0], walk.Step("A page", "make watch", "…\nit works"))
        self.assertEqual(found[1].heading, "Below")
        self.assertEqual(found[1].command, "curl here \\\n    -d there")

    def test_here_document_belongs_to_its_command(self) -> None:
        last = walk.steps(PAGE)[-1]
        self.assertEqual(last.command.splitlines()[1], 'print("$ no command")')
        self.assertEqual(last.output, "204")


class Matching(unittest.TestCase):
    def test_dots_match_anything(self) -> None:
        self.assertTrue(walk.matches('{"a":1,…"c":3}', '{"a":1,"b":2,\n"c":3}'))
        self.assertTrue(walk.matches('{"a":1,…\n"c":3}', '{"a":1,"b":2,"c":3}'))
        self.assertFalse(walk.matches('{"a":1,…"c":3}', '{"a":1,"b":2}'))

    def test_id_matches_any_id(self) -> None:
        expected = "search 01a1ffd8-e3a5-763f-b0ee-c07ae8f5712b is there"
        self.assertTrue(walk.matches(expected, expected.replace("01a1", "ffff")))
        self.assertFalse(walk.matches(expected, "search x is there"))

    def test_other_lines_may_intervene(self) -> None:
        self.assertTrue(walk.matches("one\ntwo", "zero\none\nand a half\ntwo\nthree"))
        self.assertFalse(walk.matches("one\ntwo", "two\none"))
