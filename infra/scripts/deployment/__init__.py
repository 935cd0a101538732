"""The template on a stand-in for AWS, which is ministack.

stack.py       deploys a stack of its own, and removes it
gaps.py        what the stand-in leaves undone
references.py  physical names and ARNs, as references to logical ids again
reading.py     reads what is deployed, as a template again
checks.py      what has to hold of the deployed resources and is not in that template
search.py      a file's way: announced, uploaded, imported
program.py     what the programs do here
progress.py    what the user is told, also about a search that got stuck
"""
