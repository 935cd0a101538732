"""The template on a substitute for AWS, which is ministack.

stack.py       deploys a new stack, and removes it
gaps.py        applies properties that the substitute ignores
references.py  replaces physical names and ARNs by references to logical ids
reading.py     describes the deployed resources as a template
checks.py      checks of deployed resources that the template does not show
search.py      imports a file: announcement, upload, result
program.py     runs the programs built for the tests
progress.py    prints the progress, and the state of a stalled search
"""
