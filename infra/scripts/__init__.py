"""What the programs of infra/ (services.py, tools.py, build.py, deployment.py, diagram.py) are made of.

servers/      real servers for the tests: services.py
deployment/   the template on a stand-in for AWS: deployment.py

Python's standard library is all that they need; only deployment/ runs with sam's boto3 beside it.
"""
